// SPDX-License-Identifier: Apache-2.0
// From PJRT errors to Status: the one place.
#pragma once
#include "base/status.h"
#include "pjrt/api.h"

namespace tpu::pjrt {

// Takes ownership of `error` and destroys it. Requires: error != nullptr.
Status ConsumeError(const PJRT_Api* api, PJRT_Error* error);

// The outcome of a C call; null is success. Takes ownership of `error`.
inline Status ToStatus(const PJRT_Api* api, PJRT_Error* error) {
  if (__builtin_expect(error == nullptr, 1)) return {};
  return ConsumeError(api, error);
}

}  // namespace tpu::pjrt
