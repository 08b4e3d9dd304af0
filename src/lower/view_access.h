// SPDX-License-Identifier: Apache-2.0
// Reading and writing a strided view of a base value, inside a program. The analysis is graph::Analyse's; here it
// becomes operations.
#pragma once
#include <functional>

#include "graph/op_record.h"
#include "hlo/builder.h"

namespace tpu::lower {

// The run-time start index number k of the view, as a rank-0 value of kI32 or kI64.
using StartIndex = std::function<hlo::Value(int k, DType dtype)>;

// The same bytes as `dtype`. Type: graph::Reinterpret's.
hlo::Value ReinterpretValue(hlo::Builder& b, hlo::Value base, DType dtype);

// The view's elements, in its own dtype and sizes; conj and neg bits applied.
hlo::Value ReadView(hlo::Builder& b, const graph::Operand& view, hlo::Value base, const StartIndex& start);

// The base after the view received `update` (the view's dtype and sizes, logical values: conj and neg bits are applied
// on the way). The result has the view's dtype and graph::Reinterpret's dims.
hlo::Value WriteView(hlo::Builder& b, const graph::Operand& view, hlo::Value base, hlo::Value update, const StartIndex& start);

// Applies the conj and neg bits.
hlo::Value ApplyBits(hlo::Builder& b, const graph::Operand& view, hlo::Value x);

}  // namespace tpu::lower
