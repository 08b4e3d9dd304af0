// SPDX-License-Identifier: Apache-2.0
#include "bindings/python_hooks.h"

#include <sys/syscall.h>
#include <torch/csrc/Exceptions.h>
#include <unistd.h>

#include <memory>

#include "aten/errors.h"
#include "engine/memory.h"
#include "engine/runtime.h"

namespace tpu::bindings {
namespace {

// What a signal handler raised in a wait. It is kept here, not in Python, until somebody throws it: a wait whose outcome is
// ignored must not leave an exception behind a call that succeeds. Main thread only.
std::unique_ptr<python_error>& Interrupt() {
  static auto* interrupt = new std::unique_ptr<python_error>;
  return *interrupt;
}

bool Finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

// Python runs signal handlers in the main thread alone. Others must not ask for the GIL in a wait: its holder may be
// waiting for what they do.
bool HandlesSignals() {
  return syscall(SYS_gettid) == getpid() && Py_IsInitialized() && PyGILState_GetThisThreadState() != nullptr;
}

void* BeginWait() {
  if (!Py_IsInitialized() || !PyGILState_Check()) return nullptr;
  return PyEval_SaveThread();
}

void EndWait(void* thread_state) {
  if (thread_state) PyEval_RestoreThread(static_cast<PyThreadState*>(thread_state));
}

void CollectGarbage() {
  if (!Py_IsInitialized() || Finalizing()) return;
  pybind11::gil_scoped_acquire gil;
  pybind11::error_scope keep;  // the caller may be on its way out with an exception
  try {
    pybind11::module_::import("gc").attr("collect")();
  } catch (pybind11::error_already_set& error) {
    error.discard_as_unraisable("torch_tpu: garbage collection");
  }
}

}  // namespace

bool ContinueWaiting() {
  if (!HandlesSignals()) return true;
  if (Interrupt()) return false;
  pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return true;
  auto error = std::make_unique<python_error>();
  error->persist();
  Interrupt() = std::move(error);
  return false;
}

void ThrowInterrupt() {
  if (!HandlesSignals() || !Interrupt()) return;
  auto error = std::move(Interrupt());
  throw python_error(*error);
}

void InstallPythonHooks() {
  engine::SetWaitHook({&BeginWait, &EndWait, &ContinueWaiting});
  engine::SetCollectHook(&CollectGarbage);
  aten::SetInterruptHook(&ThrowInterrupt);
}

}  // namespace tpu::bindings
