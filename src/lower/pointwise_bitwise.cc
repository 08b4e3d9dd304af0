// SPDX-License-Identifier: Apache-2.0
// Bitwise and logical operations.
#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

void Named(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Binary(l.rule().hlo, e.In(0), e.In(1)));
}

// Counts that are negative or too large: StableHLO says 0 or the sign, as ATen does.
void ShiftRight(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Binary(IsSigned(e.math) ? "shift_right_arithmetic" : "shift_right_logical", e.In(0), e.In(1)));
}

// On truth values, whatever the operands' dtypes.
void Logical(Lowering& l) {
  Ints dims;
  for (Dim d : l.ResultType(0)) dims.push_back(d.size());
  auto in = [&](int i) { return l.b.Broadcast(l.Tensor(i, DType::kBool), dims); };
  l.SetResult(0, l.Cast(l.b.Binary(l.rule().hlo, in(0), in(1)), l.ResultType(0).dtype));
}

constexpr Pad kPass = Pad::kPass;
const Rule kRules[] = {
    {.name = "bitwise_and.Tensor", .lower = Named, .hlo = "and", .pad = kPass},
    {.name = "bitwise_and.Scalar", .lower = Named, .hlo = "and", .pad = kPass},
    {.name = "bitwise_and.Scalar_Tensor", .lower = Named, .hlo = "and", .pad = kPass},
    {.name = "bitwise_or.Tensor", .lower = Named, .hlo = "or", .pad = kPass},
    {.name = "bitwise_or.Scalar", .lower = Named, .hlo = "or", .pad = kPass},
    {.name = "bitwise_or.Scalar_Tensor", .lower = Named, .hlo = "or", .pad = kPass},
    {.name = "bitwise_xor.Tensor", .lower = Named, .hlo = "xor", .pad = kPass},
    {.name = "bitwise_xor.Scalar", .lower = Named, .hlo = "xor", .pad = kPass},
    {.name = "bitwise_xor.Scalar_Tensor", .lower = Named, .hlo = "xor", .pad = kPass},
    {.name = "bitwise_left_shift.Tensor", .lower = Named, .hlo = "shift_left", .pad = kPass},
    {.name = "bitwise_left_shift.Tensor_Scalar", .lower = Named, .hlo = "shift_left", .pad = kPass},
    {.name = "bitwise_left_shift.Scalar_Tensor", .lower = Named, .hlo = "shift_left", .pad = kPass},
    {.name = "bitwise_right_shift.Tensor", .lower = ShiftRight, .pad = kPass},
    {.name = "bitwise_right_shift.Tensor_Scalar", .lower = ShiftRight, .pad = kPass},
    {.name = "bitwise_right_shift.Scalar_Tensor", .lower = ShiftRight, .pad = kPass},
    {.name = "__lshift__.Tensor", .lower = Named, .hlo = "shift_left", .pad = kPass},
    {.name = "__lshift__.Scalar", .lower = Named, .hlo = "shift_left", .pad = kPass},
    {.name = "__rshift__.Tensor", .lower = ShiftRight, .pad = kPass},
    {.name = "__rshift__.Scalar", .lower = ShiftRight, .pad = kPass},
    {.name = "logical_and", .lower = Logical, .hlo = "and", .pad = kPass},
    {.name = "logical_or", .lower = Logical, .hlo = "or", .pad = kPass},
    {.name = "logical_xor", .lower = Logical, .hlo = "xor", .pad = kPass},
};

}  // namespace

std::span<const Rule> BitwiseRules() { return kRules; }

}  // namespace tpu::lower
