// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

namespace tpu {

const char* HloName(DType dtype) {
  static constexpr const char* kNames[] = {
      "i1",  "ui8",  "ui16", "ui32", "ui64",         "i8",           "i16",      "i32",    "i64",
      "f16", "bf16", "f32",  "f64",  "complex<f32>", "complex<f64>", "f8E4M3FN", "f8E5M2", "invalid",
  };
  return kNames[static_cast<int>(dtype)];
}

}  // namespace tpu
