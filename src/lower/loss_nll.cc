// SPDX-License-Identifier: Apache-2.0
// Negative log likelihood: nll_loss over [C] or [N, C], nll_loss2d over [N, C, H, W].
#include <limits>

#include "lower/loss.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

constexpr int64_t kNone = 0, kMean = 1;

// Targets with the ignored ones told apart. All have the target's shape.
struct Targets {
  Value index;   // 0 where ignored
  Value valid;   // i1
  Value weight;  // of each target, 0 where ignored
};

int ClassDim(const TensorType& self) { return self.rank == 1 ? 0 : 1; }

// The target's dims for self [.., C, ..]; a single target may come as shape [] or [1].
Ints TargetDims(const TensorType& self) {
  Ints dims;
  for (int i = 0; i < self.rank; ++i)
    if (i != ClassDim(self)) dims.push_back(self.dims[i].size());
  return dims;
}

Targets ReadTargets(Lowering& l, const TensorType& self, int target_arg, int weight_arg, int64_t ignore_index, DType acc) {
  Builder& b = l.b;
  Targets t;
  const int64_t classes = self.dims[ClassDim(self)].size();
  const Value target = b.Reshape(l.Tensor(target_arg), TargetDims(self));
  // uint8 targets are allowed and cannot hold every ignore_index.
  const Value wide = b.Convert(target, DType::kI64);
  t.valid = b.Cmp(Compare::kNe, wide, ignore_index);
  const Value index = b.Select(t.valid, wide, b.Like(wide, 0));
  l.TrapIfOutOfRange(index, 0, classes, ErrorKind::kIndex, "Target %v is out of bounds.");
  t.index = NarrowIndex(b, index, classes);
  const Value zero = b.Constant(b.type(target).With(acc), 0);
  Value weight = b.Like(zero, 1);
  if (!l.IsNone(weight_arg)) weight = TakeAlong(b, l.Tensor(weight_arg, acc), 0, t.index);
  t.weight = b.Select(t.valid, weight, zero);
  return t;
}

// nll_loss_forward(self, target, weight, reduction, ignore_index) -> (output, total_weight)
void Forward(Lowering& l) {
  Builder& b = l.b;
  const TensorType self = l.TypeOf(0);
  const DType acc = OpMathType(self.dtype);
  const int64_t reduction = l.Int(3);
  const int dim = ClassDim(self);
  if (self.numel() == 0) {
    // A mean over nothing is NaN.
    SetResultFill(l, 0, reduction == kMean ? std::numeric_limits<double>::quiet_NaN() : 0);
    return SetResultFill(l, 1, 0);
  }
  const Targets t = ReadTargets(l, self, 1, 2, l.Int(4), acc);
  Ints one = TargetDims(self);
  one.insert(one.begin() + dim, 1);
  const Value picked = GatherElements(l, l.Tensor(0), dim, b.Reshape(t.index, one));
  const Value x = b.Reshape(b.Convert(picked, acc), TargetDims(self));
  // Not x * 0: what is ignored may be infinite.
  const Value losses = b.Select(t.valid, b.Neg(b.Mul(x, t.weight)), b.Constant(b.type(x), 0));
  // A single sample without batch dimension still reports its weight.
  if (reduction == kNone && self.rank > 1) {
    SetResultAs(l, 0, losses);
    return SetResultFill(l, 1, 0);
  }
  const Ints all = AllDims(b.rank(losses));
  const Value sum = ReduceSum(l, losses, all), total = ReduceSum(l, t.weight, all);
  SetResultAs(l, 0, reduction == kMean ? b.Div(sum, total) : sum);
  SetResultAs(l, 1, total);
}

// nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight)
void Backward(Lowering& l) {
  Builder& b = l.b;
  const TensorType self = l.TypeOf(1);
  const DType acc = OpMathType(self.dtype);
  if (self.numel() == 0) return SetResultFill(l, 0, 0);
  const Ints dims(self.begin(), self.end());
  const int dim = ClassDim(self);
  const Targets t = ReadTargets(l, self, 2, 3, l.Int(5), acc);
  Value grad = l.Tensor(0, acc);
  if (l.Int(4) == kMean) grad = b.Div(b.Reshape(grad, {}), l.Scalar(6, acc));
  grad = l.Int(4) == kNone ? b.Reshape(grad, TargetDims(self)) : b.BroadcastLike(b.Reshape(grad, {}), t.weight);
  // Written as a comparison with the class number: one pass over the output, no scatter into zeros.
  const Value each = ExpandReduced(b, b.Neg(b.Mul(t.weight, grad)), dims, {dim});
  const Value index = b.Select(t.valid, t.index, b.Like(t.index, -1));
  const Value number = b.Iota(TensorType::Of(b.dtype(index), dims), dim);
  const Value hit = b.Cmp(Compare::kEq, number, ExpandReduced(b, index, dims, {dim}));
  SetResultAs(l, 0, b.Select(hit, each, b.Constant(self.With(acc), 0)));
}

constexpr Rule kRules[] = {
    {.name = "nll_loss_forward", .lower = Forward},
    {.name = "nll_loss_backward", .lower = Backward},
    {.name = "nll_loss2d_forward", .lower = Forward},
    {.name = "nll_loss2d_backward", .lower = Backward},
};

}  // namespace

std::span<const Rule> NllLossRules() { return kRules; }

}  // namespace tpu::lower
