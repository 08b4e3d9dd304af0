// SPDX-License-Identifier: Apache-2.0
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include "bindings/init.h"
#include "bindings/python_hooks.h"

PYBIND11_MODULE(_C, m) {
  using namespace tpu::bindings;
  m.doc() = "Private. Use torch.tpu.";
  // Only torch knows which Python exception stands for which exception of c10.
  pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const c10::Error&) {
      torch::translate_exception_to_python(std::current_exception());
    } catch (const python_error&) {
      torch::translate_exception_to_python(std::current_exception());
    }
  });
  InstallPythonHooks();
  InitBase(m);
  InitPjrt(m);
  InitLower(m);
  InitEngine(m);
  InitAten(m);
  InitCompile(m);
}
