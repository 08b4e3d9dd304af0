// SPDX-License-Identifier: Apache-2.0
// Losses that compare element with element. The negative log likelihood is in loss_nll.cc.
#include <iterator>

#include "lower/loss.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

constexpr int64_t kNone = 0, kMean = 1;

// Broadcast shape of operands a and b: what the losses are taken over.
Ints CommonDims(const TensorType& x, const TensorType& y) {
  const TensorType& longer = x.rank >= y.rank ? x : y;
  const TensorType& shorter = x.rank >= y.rank ? y : x;
  Ints dims(longer.begin(), longer.end());
  for (int i = 0; i < shorter.rank; ++i) {
    int64_t& d = dims[longer.rank - shorter.rank + i];
    if (d == 1) d = shorter.dims[i].size();
  }
  return dims;
}

// Argument i in the type that the loss is computed in, over all elements.
struct Operands {
  DType acc;
  Ints dims;
  Value Get(Lowering& l, int i) const { return l.b.Broadcast(l.Tensor(i, acc), dims); }
};

Operands OperandsOf(const Lowering& l, int x, int y) {
  return {OpMathType(l.ResultType(0).dtype), CommonDims(l.TypeOf(x), l.TypeOf(y))};
}

void SetReduced(Lowering& l, Value losses, int64_t reduction) {
  Builder& b = l.b;
  if (reduction == kNone) return SetResultAs(l, 0, losses);
  const double n = static_cast<double>(b.type(losses).numel());
  const Value sum = ReduceSum(l, losses, AllDims(b.rank(losses)));
  SetResultAs(l, 0, reduction == kMean ? DivideByCount(b, sum, n) : sum);
}

// The incoming gradient for each element: divided by the count where the loss was a mean.
Value GradEach(Lowering& l, const Operands& o, int grad_arg, int64_t reduction, int64_t count) {
  Value grad = l.Tensor(grad_arg, o.acc);
  if (reduction == kMean) grad = DivideByCount(l.b, grad, static_cast<double>(count));
  return l.b.Broadcast(grad, o.dims);
}

Value Difference(Lowering& l, const Operands& o, int x, int y) { return l.b.Sub(o.Get(l, x), o.Get(l, y)); }

// mse_loss(self, target, reduction)
void MseLoss(Lowering& l) {
  const Value d = Difference(l, OperandsOf(l, 0, 1), 0, 1);
  SetReduced(l, l.b.Mul(d, d), l.Int(2));
}

// mse_loss_backward(grad_output, self, target, reduction)
void MseLossBackward(Lowering& l) {
  Builder& b = l.b;
  const Operands o = OperandsOf(l, 1, 2);
  const Value d = Difference(l, o, 1, 2);
  SetResultAs(l, 0, b.Mul(b.Binary("multiply", d, 2.0), GradEach(l, o, 0, l.Int(3), l.TypeOf(1).numel())));
}

// smooth_l1_loss(self, target, reduction, beta)
void SmoothL1(Lowering& l) {
  Builder& b = l.b;
  const double beta = l.Double(3);
  const Value z = b.Unary("abs", Difference(l, OperandsOf(l, 0, 1), 0, 1));
  const Value linear = b.Binary("subtract", z, 0.5 * beta);
  const Value square = beta == 0 ? linear : b.Div(b.Mul(b.Binary("multiply", z, 0.5), z), b.Like(z, beta));
  SetReduced(l, b.Select(b.Cmp(Compare::kLt, z, beta), square, linear), l.Int(2));
}

// smooth_l1_loss_backward(grad_output, self, target, reduction, beta)
void SmoothL1Backward(Lowering& l) {
  Builder& b = l.b;
  const double beta = l.Double(4);
  const Operands o = OperandsOf(l, 1, 2);
  const Value d = Difference(l, o, 1, 2);
  const Value grad = GradEach(l, o, 0, l.Int(3), l.TypeOf(1).numel());
  Value y = beta == 0 ? grad : b.Div(b.Mul(d, grad), b.Like(d, beta));
  y = b.Select(b.Cmp(Compare::kGe, d, beta), grad, y);
  SetResultAs(l, 0, b.Select(b.Cmp(Compare::kLe, d, -beta), b.Neg(grad), y));
}

// huber_loss(self, target, reduction, delta)
void Huber(Lowering& l) {
  Builder& b = l.b;
  const double delta = l.Double(3);
  const Value z = b.Unary("abs", Difference(l, OperandsOf(l, 0, 1), 0, 1));
  const Value square = b.Mul(b.Binary("multiply", z, 0.5), z);
  const Value linear = b.Binary("multiply", b.Binary("subtract", z, 0.5 * delta), delta);
  SetReduced(l, b.Select(b.Cmp(Compare::kLe, z, delta), square, linear), l.Int(2));
}

// huber_loss_backward(grad_output, self, target, reduction, delta)
void HuberBackward(Lowering& l) {
  Builder& b = l.b;
  const double delta = l.Double(4);
  const Operands o = OperandsOf(l, 1, 2);
  const Value d = Difference(l, o, 1, 2);
  const Value grad = GradEach(l, o, 0, l.Int(3), l.TypeOf(1).numel());
  const Value edge = b.Binary("multiply", grad, delta);
  const Value y = b.Select(b.Cmp(Compare::kGe, d, delta), edge, b.Mul(d, grad));
  SetResultAs(l, 0, b.Select(b.Cmp(Compare::kLe, d, -delta), b.Neg(edge), y));
}

void TrapUnlessProbability(Lowering& l, Value x, const std::string& name) {
  Builder& b = l.b;
  // NaN is outside as well.
  const Value inside = b.And(b.Cmp(Compare::kGe, x, 0.0), b.Cmp(Compare::kLe, x, 1.0));
  TrapIf(l, b.Not(inside), ErrorKind::kRuntime, "all elements of " + name + " should be between 0 and 1");
}

// binary_cross_entropy(self, target, weight, reduction)
void BinaryCrossEntropy(Lowering& l) {
  Builder& b = l.b;
  const Operands o = OperandsOf(l, 0, 1);
  const Value x = o.Get(l, 0), target = o.Get(l, 1);
  if (Product(o.dims) > 0) {
    TrapUnlessProbability(l, x, "input");
    TrapUnlessProbability(l, target, "target");
  }
  // Logarithms are cut off, so that a sure and wrong answer costs 100 and not infinity.
  const auto floored = [&](Value v) { return b.Max(v, b.Like(v, -100.0)); };
  const Value log_x = floored(b.Unary("log", x)), log_not_x = floored(b.Unary("log_plus_one", b.Neg(x)));
  Value y = b.Sub(b.Mul(b.Binary("subtract", target, 1.0), log_not_x), b.Mul(target, log_x));
  if (!l.IsNone(2)) y = b.Mul(y, o.Get(l, 2));
  SetReduced(l, y, l.Int(3));
}

// binary_cross_entropy_backward(grad_output, self, target, weight, reduction)
void BinaryCrossEntropyBackward(Lowering& l) {
  Builder& b = l.b;
  const Operands o = OperandsOf(l, 1, 2);
  const Value x = o.Get(l, 1), target = o.Get(l, 2);
  const Value spread = b.Mul(b.Sub(b.Like(x, 1.0), x), x);
  Value y = b.Div(b.Sub(x, target), b.Max(spread, b.Like(spread, 1e-12)));
  y = b.Mul(y, GradEach(l, o, 0, l.Int(4), l.TypeOf(1).numel()));
  if (!l.IsNone(3)) y = b.Mul(y, o.Get(l, 3));
  SetResultAs(l, 0, y);
}

// binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction)
void BinaryCrossEntropyWithLogits(Lowering& l) {
  Builder& b = l.b;
  const Operands o = OperandsOf(l, 0, 1);
  const Value x = o.Get(l, 0), target = o.Get(l, 1);
  // -log(sigmoid(x)) = log1p(exp(-|x|)) + max(-x, 0)
  const Value tail = b.Unary("log_plus_one", b.Unary("exponential", b.Neg(b.Unary("abs", x))));
  Value negative_log = b.Add(tail, b.Max(b.Neg(x), b.Like(x, 0.0)));
  if (!l.IsNone(3)) {
    const Value weight = b.Mul(b.Binary("subtract", o.Get(l, 3), 1.0), target);
    negative_log = b.Mul(b.Binary("add", weight, 1.0), negative_log);
  }
  Value y = b.Add(b.Mul(b.Sub(b.Like(target, 1.0), target), x), negative_log);
  if (!l.IsNone(2)) y = b.Mul(y, o.Get(l, 2));
  SetReduced(l, y, l.Int(4));
}

constexpr Rule kRules[] = {
    {.name = "mse_loss", .lower = MseLoss},
    {.name = "mse_loss_backward", .lower = MseLossBackward},
    {.name = "smooth_l1_loss", .lower = SmoothL1},
    {.name = "smooth_l1_loss_backward", .lower = SmoothL1Backward},
    {.name = "huber_loss", .lower = Huber},
    {.name = "huber_loss_backward", .lower = HuberBackward},
    {.name = "binary_cross_entropy", .lower = BinaryCrossEntropy},
    {.name = "binary_cross_entropy_backward", .lower = BinaryCrossEntropyBackward},
    {.name = "binary_cross_entropy_with_logits", .lower = BinaryCrossEntropyWithLogits},
};

}  // namespace

// One list out of the two files of the family.
std::span<const Rule> LossRules() {
  static const std::vector<Rule>& rules = *[] {
    auto* all = new std::vector<Rule>(std::begin(kRules), std::end(kRules));
    all->insert(all->end(), NllLossRules().begin(), NllLossRules().end());
    return all;
  }();
  return rules;
}

}  // namespace tpu::lower
