// SPDX-License-Identifier: Apache-2.0
// ATen's conversions between element types, where they differ from StableHLO's.
#pragma once
#include "hlo/builder.h"

namespace tpu::lower {

// `x` as `dtype`, as Tensor::to does it: float to integer wraps through int64, f8E4M3FN saturates, complex to real takes
// the real part, anything to bool is x != 0.
hlo::Value Cast(hlo::Builder& b, hlo::Value x, DType dtype);

// c10::promoteTypes. kInvalid stands for "no type yet".
DType PromoteTypes(DType a, DType b);

}  // namespace tpu::lower
