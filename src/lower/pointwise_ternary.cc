// SPDX-License-Identifier: Apache-2.0
// Operations of three operands: selections, clamps, interpolation.
#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

Ints ResultDims(const Lowering& l) {
  Ints dims;
  for (Dim d : l.ResultType(0)) dims.push_back(d.size());
  return dims;
}

// Argument i as it is, in the result's dtype: selections do not compute.
Value Plain(Lowering& l, int i) { return l.b.Broadcast(l.Tensor(i, l.ResultType(0).dtype), ResultDims(l)); }

Value Mask(Lowering& l, int i) { return l.b.Broadcast(l.Tensor(i, DType::kBool), ResultDims(l)); }

void Where(Lowering& l) { l.SetResult(0, l.b.Select(Mask(l, 0), Plain(l, 1), Plain(l, 2))); }

void MaskedFill(Lowering& l) { l.SetResult(0, l.b.Select(Mask(l, 1), Plain(l, 2), Plain(l, 0))); }

// min(max(x, low), high): NaN in any of the three wins, and high wins over low.
void ClampBetween(Lowering& l, int low, int high) {
  Elementwise e(l);
  Value x = e.In(0);
  if (low >= 0 && !l.IsNone(low)) x = l.b.Max(x, e.In(low));
  if (high >= 0 && !l.IsNone(high)) x = l.b.Min(x, e.In(high));
  e.Out(x);
}
void Clamp(Lowering& l) { ClampBetween(l, 1, 2); }
void ClampMin(Lowering& l) { ClampBetween(l, 1, -1); }
void ClampMax(Lowering& l) { ClampBetween(l, -1, 1); }

// From the nearer end, as ATen does it: exact at both.
void Lerp(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value start = e.In(0), end = e.In(1), weight = e.In(2), distance = b.Sub(end, start);
  Value size = e.complex() ? b.Unary("abs", weight) : weight;
  Value near = e.complex() ? b.Cmp(Compare::kLt, size, 0.5) : b.Cmp(Compare::kLt, b.Unary("abs", size), 0.5);
  e.Out(b.Select(near, b.Add(start, b.Mul(weight, distance)), b.Sub(end, b.Mul(distance, b.Sub(e.Const(1), weight)))));
}

Value Scaled(Elementwise& e, Value x, int i) { return ClassOf(e.l, i) == 1 ? x : e.b.Mul(e.In(i), x); }

void Addcmul(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Add(e.In(0), l.b.Mul(Scaled(e, e.In(1), 3), e.In(2))));
}

void Addcdiv(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Add(e.In(0), l.b.Div(Scaled(e, e.In(1), 3), e.Divisor(2))));
}

uint8_t ClassifyValue(int argument, double v, bool) { return argument == 3 && v == 1; }

constexpr Pad kPass = Pad::kPass;
const Rule kRules[] = {
    {.name = "where.self", .lower = Where, .pad = kPass},
    {.name = "where.ScalarOther", .lower = Where, .pad = kPass},
    {.name = "where.ScalarSelf", .lower = Where, .pad = kPass},
    {.name = "where.Scalar", .lower = Where, .pad = kPass},
    {.name = "masked_fill.Scalar", .lower = MaskedFill, .pad = kPass},
    {.name = "masked_fill.Tensor", .lower = MaskedFill, .pad = kPass},
    {.name = "clamp", .lower = Clamp, .pad = kPass},
    {.name = "clamp.Tensor", .lower = Clamp, .pad = kPass},
    {.name = "clamp_min", .lower = ClampMin, .pad = kPass},
    {.name = "clamp_min.Tensor", .lower = ClampMin, .pad = kPass},
    {.name = "clamp_max", .lower = ClampMax, .pad = kPass},
    {.name = "clamp_max.Tensor", .lower = ClampMax, .pad = kPass},
    {.name = "lerp.Scalar", .lower = Lerp, .pad = kPass},
    {.name = "lerp.Tensor", .lower = Lerp, .pad = kPass},
    {.name = "addcmul", .lower = Addcmul, .classify = ClassifyValue, .pad = kPass},
    {.name = "addcdiv", .lower = Addcdiv, .classify = ClassifyValue, .pad = kPass},
};

}  // namespace

std::span<const Rule> TernaryRules() { return kRules; }

}  // namespace tpu::lower
