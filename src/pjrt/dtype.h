// SPDX-License-Identifier: Apache-2.0
// Element types of PJRT buffers.
#pragma once
#include "base/dtype.h"
#include "pjrt/api.h"

namespace tpu::pjrt {

// PJRT_Buffer_Type_INVALID for kInvalid.
PJRT_Buffer_Type ToPjrtType(DType dtype);
// `type` is the number of a PJRT_Buffer_Type. kInvalid for types that DType does not have (4-bit integers, tokens, ...).
DType FromPjrtType(int type);

}  // namespace tpu::pjrt
