// SPDX-License-Identifier: Apache-2.0
#include "pjrt/dtype.h"

namespace tpu::pjrt {
namespace {

// In the order of DType.
constexpr PJRT_Buffer_Type kTypes[] = {
    PJRT_Buffer_Type_PRED,     PJRT_Buffer_Type_U8,     PJRT_Buffer_Type_U16,    PJRT_Buffer_Type_U32, PJRT_Buffer_Type_U64,
    PJRT_Buffer_Type_S8,       PJRT_Buffer_Type_S16,    PJRT_Buffer_Type_S32,    PJRT_Buffer_Type_S64, PJRT_Buffer_Type_F16,
    PJRT_Buffer_Type_BF16,     PJRT_Buffer_Type_F32,    PJRT_Buffer_Type_F64,    PJRT_Buffer_Type_C64, PJRT_Buffer_Type_C128,
    PJRT_Buffer_Type_F8E4M3FN, PJRT_Buffer_Type_F8E5M2, PJRT_Buffer_Type_INVALID};
constexpr int kCount = sizeof(kTypes) / sizeof(kTypes[0]);
static_assert(kCount == static_cast<int>(DType::kInvalid) + 1);

}  // namespace

PJRT_Buffer_Type ToPjrtType(DType dtype) { return kTypes[static_cast<int>(dtype)]; }

DType FromPjrtType(int type) {
  for (int i = 0; i < kCount; ++i) {
    if (kTypes[i] == type) return static_cast<DType>(i);
  }
  return DType::kInvalid;
}

}  // namespace tpu::pjrt
