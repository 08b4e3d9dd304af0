// SPDX-License-Identifier: Apache-2.0
#include "pjrt/dtype.h"

#include <gtest/gtest.h>

namespace tpu::pjrt {
namespace {

TEST(DTypeTest, RoundTrip) {
  for (int d = 0; d < static_cast<int>(DType::kInvalid); ++d) {
    const auto dtype = static_cast<DType>(d);
    EXPECT_NE(ToPjrtType(dtype), PJRT_Buffer_Type_INVALID);
    EXPECT_EQ(FromPjrtType(ToPjrtType(dtype)), dtype);
  }
  EXPECT_EQ(ToPjrtType(DType::kInvalid), PJRT_Buffer_Type_INVALID);
  EXPECT_EQ(FromPjrtType(PJRT_Buffer_Type_S4), DType::kInvalid);
  EXPECT_EQ(FromPjrtType(PJRT_Buffer_Type_TOKEN), DType::kInvalid);
  EXPECT_EQ(FromPjrtType(33), DType::kInvalid);  // of a newer header
  EXPECT_EQ(ToPjrtType(DType::kC64), PJRT_Buffer_Type_C64);
}

}  // namespace
}  // namespace tpu::pjrt
