// SPDX-License-Identifier: Apache-2.0
#include "aten/errors.h"

#include <c10/util/Exception.h>

#include <atomic>

namespace tpu::aten {
namespace {

std::atomic<void (*)()> g_throw_pending{nullptr};

}  // namespace

void SetInterruptHook(void (*throw_pending)()) { g_throw_pending = throw_pending; }

void ThrowIfError(const Status& status) {
  if (__builtin_expect(status.ok(), 1)) return;
  if (auto throw_pending = g_throw_pending.load()) throw_pending();
  switch (status.kind()) {
    case ErrorKind::kIndex:
      C10_THROW_ERROR(IndexError, status.message());
    case ErrorKind::kValue:
      C10_THROW_ERROR(ValueError, status.message());
    case ErrorKind::kType:
      C10_THROW_ERROR(TypeError, status.message());
    case ErrorKind::kNotImplemented:
      C10_THROW_ERROR(NotImplementedError, status.message());
    case ErrorKind::kOutOfMemory:
      C10_THROW_ERROR(OutOfMemoryError, status.message());
    case ErrorKind::kOk:
    case ErrorKind::kRuntime:
      break;
  }
  C10_THROW_ERROR(Error, status.message());
}

}  // namespace tpu::aten
