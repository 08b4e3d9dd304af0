// SPDX-License-Identifier: Apache-2.0
// Literals of constants, exact to the bit.
#pragma once
#include <complex>
#include <cstdint>
#include <string>

#include "base/tensor_type.h"

namespace tpu::hlo {

// The bits of `v` rounded to nearest even as `dtype` (a float type). f8E4M3FN saturates at 448, as ATen does.
uint64_t EncodeFloat(double v, DType dtype);

// Appends one element: "true", "-3", "0x3F800000", "(0x..., 0x...)".
void AppendElement(std::string* out, DType dtype, int64_t v);
void AppendElement(std::string* out, DType dtype, double v);
void AppendElement(std::string* out, DType dtype, std::complex<double> v);

void AppendInt(std::string* out, int64_t v);
void AppendType(std::string* out, const TensorType& type);

}  // namespace tpu::hlo
