// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax with their gradients. Layer and group norm are in normalize_layer.cc, batch norm in
// normalize_batch.cc.
#include <iterator>
#include <limits>

#include "lower/normalize.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

// x - max(x) along dim, and what it takes to make a softmax of it.
struct Shifted {
  Value x, largest;
  Ints dims;
  int dim = 0;
};

Shifted Shift(Lowering& l, DType from, int dim_arg, bool carry_nan) {
  Builder& b = l.b;
  Shifted s;
  const Value x = AtLeast1d(b, b.Convert(l.Tensor(0, from), OpMathType(from)));
  s.dims = b.dims(x);
  s.dim = WrapDim(l.Int(dim_arg), b.rank(x));
  // NaN reaches the result through the exponential; only a test on the maximum itself needs it there.
  s.largest = ReduceMax(l, x, {s.dim}, carry_nan);
  s.x = b.Sub(x, ExpandReduced(b, s.largest, s.dims, {s.dim}));
  return s;
}

Value SoftmaxOf(Lowering& l, const Shifted& s) {
  Builder& b = l.b;
  const Value e = b.Unary("exponential", s.x);
  return b.Div(e, ExpandReduced(b, ReduceSum(l, e, {s.dim}), s.dims, {s.dim}));
}

// _softmax(self, dim, half_to_float)
void Softmax(Lowering& l) {
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  SetResultAs(l, 0, SoftmaxOf(l, Shift(l, l.TypeOf(0).dtype, 1, false)));
}

// _safe_softmax(self, dim, dtype): rows that are -inf everywhere become 0.
void SafeSoftmax(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Shifted s = Shift(l, l.ResultType(0).dtype, 1, true);
  const Value masked = b.Cmp(Compare::kEq, s.largest, -std::numeric_limits<double>::infinity());
  const Value y = SoftmaxOf(l, s);
  SetResultAs(l, 0, b.Select(ExpandReduced(b, masked, s.dims, {s.dim}), b.Like(y, 0.0), y));
}

// _log_softmax(self, dim, half_to_float)
void LogSoftmax(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Shifted s = Shift(l, l.TypeOf(0).dtype, 1, false);
  const Value sum = ReduceSum(l, b.Unary("exponential", s.x), {s.dim});
  SetResultAs(l, 0, b.Sub(s.x, ExpandReduced(b, b.Unary("log", sum), s.dims, {s.dim})));
}

// _softmax_backward_data(grad_output, output, dim, input_dtype)
void SoftmaxBackward(Lowering& l, bool log) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const DType acc = OpMathType(l.TypeOf(0).dtype);
  const Value grad = AtLeast1d(b, l.Tensor(0, acc)), y = AtLeast1d(b, l.Tensor(1, acc));
  const Ints dims = b.dims(y);
  const int dim = WrapDim(l.Int(2), b.rank(y));
  if (log) {
    const Value sum = ExpandReduced(b, ReduceSum(l, grad, {dim}), dims, {dim});
    return SetResultAs(l, 0, b.Sub(grad, b.Mul(b.Unary("exponential", y), sum)));
  }
  const Value sum = ExpandReduced(b, ReduceSum(l, b.Mul(grad, y), {dim}), dims, {dim});
  SetResultAs(l, 0, b.Mul(y, b.Sub(grad, sum)));
}
void PlainSoftmaxBackward(Lowering& l) { SoftmaxBackward(l, false); }
void LogSoftmaxBackward(Lowering& l) { SoftmaxBackward(l, true); }

constexpr Rule kRules[] = {
    {.name = "_softmax", .lower = Softmax},
    {.name = "_safe_softmax", .lower = SafeSoftmax},
    {.name = "_log_softmax", .lower = LogSoftmax},
    {.name = "_softmax_backward_data", .lower = PlainSoftmaxBackward},
    {.name = "_log_softmax_backward_data", .lower = LogSoftmaxBackward},
};

}  // namespace

// One list out of the three files of the family.
std::span<const Rule> NormalizeRules() {
  static const std::vector<Rule>& rules = *[] {
    auto* all = new std::vector<Rule>(std::begin(kRules), std::end(kRules));
    for (const auto& more : {LayerNormRules(), BatchNormRules()}) all->insert(all->end(), more.begin(), more.end());
    return all;
  }();
  return rules;
}

}  // namespace tpu::lower
