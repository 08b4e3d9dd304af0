// SPDX-License-Identifier: Apache-2.0
// The one place where a Status becomes an exception of PyTorch's.
#pragma once
#include "base/status.h"

namespace tpu::aten {

// Throws the exception that status.kind() names: c10::Error -> RuntimeError, IndexError, ValueError, TypeError,
// NotImplementedError, OutOfMemoryError. Does nothing when ok. When a wait was interrupted (Ctrl-C), throws
// python_error-compatible so that the pending Python exception surfaces (hook set by bindings).
void ThrowIfError(const Status& status);

// Called first by ThrowIfError: throws when a host wait of this thread was abandoned because Python has an exception for it.
void SetInterruptHook(void (*throw_pending)());

template <class T>
T ValueOrThrow(Result<T> result) {
  ThrowIfError(result.status());
  return std::move(*result);
}

}  // namespace tpu::aten
