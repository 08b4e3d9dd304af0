// SPDX-License-Identifier: Apache-2.0
// The one loop behind broadcast, transpose, slice, reverse, ...: a dense result whose element at multi-index i is the
// operand's element at offset + sum(i[d] * strides[d]).
#pragma once
#include "tensor.h"

namespace fake_pjrt {

// Strides and offset are in elements.
Tensor CopyStrided(const Tensor& operand, const Type& result, const Dims& strides, int64_t offset = 0);
// The reverse: dense `source` is written into `*target` at offset + sum(i[d] * strides[d]).
void WriteStrided(const Tensor& source, const Dims& strides, int64_t offset, Tensor* target);
Tensor Copy(const Tensor& t);
Tensor TransposedTo(const Tensor& t, const std::vector<int64_t>& permutation);

}  // namespace fake_pjrt
