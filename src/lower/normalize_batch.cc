// SPDX-License-Identifier: Apache-2.0
// Batch norm. The functional forms return the new running statistics as further results. native_batch_norm changes its
// arguments without saying so in its schema: a record of it that updates statistics has to carry results 3 and 4, with
// arguments running_mean and running_var as their targets (ATen's own functional form, under another name).
#include "lower/normalize.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

// Positions in the schema; -1 where a form has no such argument.
struct Form {
  int running_mean, training, momentum, eps;
  int new_mean;  // result number of the new running mean; -1: none
  bool always_training = false;
};

// [C] over the input, whose dimension 1 is C.
Value OverInput(Builder& b, Value per_channel, Value x) { return b.BroadcastInDim(per_channel, b.dims(x), {1}); }

Value InverseStd(Builder& b, Value var, double eps) { return b.Unary("rsqrt", b.Add(var, b.Like(var, eps))); }

// new = (1 - momentum) * old + momentum * batch
void UpdateRunning(Lowering& l, int k, Value old, Value batch, Value momentum) {
  Builder& b = l.b;
  momentum = b.BroadcastLike(momentum, old);
  SetResultAs(l, k, b.Add(b.Mul(momentum, batch), b.Mul(b.Sub(b.Like(momentum, 1.0), momentum), old)));
}

void SetStatistic(Lowering& l, int k, Value value) {
  // In evaluation ATen's saved statistics have no elements.
  if (ResultIsEmpty(l, k)) return SetResultFill(l, k, 0);
  SetResultAs(l, k, value);
}

void Forward(Lowering& l, const Form& f) {
  Builder& b = l.b;
  const TensorType input = l.TypeOf(0);
  const DType acc = OpMathType(input.dtype);
  const bool training = f.always_training || l.Bool(f.training);
  const bool has_running = f.running_mean >= 0 && !l.IsNone(f.running_mean);
  const bool updates = training && has_running;
  const int new_mean = f.new_mean >= 0 ? f.new_mean : l.num_results() >= 5 ? 3 : -1;
  if (updates && new_mean < 0) return l.Unsupported("running statistics without a place to go");
  if (input.numel() == 0) return l.Unsupported("batch norm of nothing");
  if (!training && !has_running) return l.Unsupported("evaluation without running statistics");
  const Value x = l.Tensor(0, acc);
  const Ints reduced = OtherDims(b.rank(x), {1});
  Value mean, var;
  Value running_mean, running_var;
  if (has_running) {
    running_mean = l.Tensor(f.running_mean, acc);
    running_var = l.Tensor(f.running_mean + 1, acc);
  }
  const double n = static_cast<double>(CountOf(b, x, reduced));
  if (training) {
    mean = DivideByCount(b, ReduceSum(l, x, reduced), n);
    const Value centered = b.Sub(x, OverInput(b, mean, x));
    var = DivideByCount(b, ReduceSum(l, b.Mul(centered, centered), reduced), n);
  } else {
    mean = running_mean;
    var = running_var;
  }
  const Value invstd = InverseStd(b, var, l.Double(f.eps));
  Value scale = invstd;
  if (!l.IsNone(1)) scale = b.Mul(scale, l.Tensor(1, acc));
  Value y = b.Mul(b.Sub(x, OverInput(b, mean, x)), OverInput(b, scale, x));
  if (!l.IsNone(2)) y = b.Add(y, OverInput(b, l.Tensor(2, acc), x));
  SetResultAs(l, 0, y);
  SetStatistic(l, 1, mean);
  SetStatistic(l, 2, invstd);
  for (int k = 3; k < new_mean; ++k) SetResultFill(l, k, 0);  // the reserve of _batch_norm_with_update
  if (new_mean < 0) return;
  if (!updates) {
    if (!has_running) return;
    SetResultAs(l, new_mean, running_mean);
    SetResultAs(l, new_mean + 1, running_var);
    return;
  }
  const Value momentum = l.Scalar(f.momentum, acc);
  // Running variances are unbiased.
  const Value unbiased = b.Binary("multiply", var, n / (n - 1));
  UpdateRunning(l, new_mean, running_mean, mean, momentum);
  UpdateRunning(l, new_mean + 1, running_var, unbiased, momentum);
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps)
void BatchNorm(Lowering& l) { Forward(l, {.running_mean = 3, .training = 5, .momentum = 6, .eps = 7, .new_mean = -1}); }
void BatchNormFunctional(Lowering& l) {
  Forward(l, {.running_mean = 3, .training = 5, .momentum = 6, .eps = 7, .new_mean = 3});
}
// (input, weight, bias, training, momentum, eps)
void BatchNormNoStats(Lowering& l) { Forward(l, {.running_mean = -1, .training = 3, .momentum = 4, .eps = 5, .new_mean = -1}); }
// (input, weight, bias, running_mean, running_var, momentum, eps)
void BatchNormWithUpdate(Lowering& l) {
  Forward(l, {.running_mean = 3, .training = -1, .momentum = 5, .eps = 6, .new_mean = 4, .always_training = true});
}

// native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
// output_mask)
void BatchNormBackward(Lowering& l) {
  Builder& b = l.b;
  const TensorType input = l.TypeOf(1);
  const DType acc = OpMathType(input.dtype);
  if (input.numel() == 0) {
    for (int k = 0; k < 3; ++k)
      if (l.ResultDefined(k)) SetResultFill(l, k, 0);
    return;
  }
  const bool train = l.Bool(7);
  if (l.IsNone(train ? 5 : 3)) return l.Unsupported("statistics are missing");
  const Value grad = l.Tensor(0, acc), x = l.Tensor(1, acc);
  const Ints reduced = OtherDims(b.rank(x), {1});
  const Value mean = l.Tensor(train ? 5 : 3, acc);
  const Value invstd = train ? l.Tensor(6, acc) : InverseStd(b, l.Tensor(4, acc), l.Double(8));
  const Value normal = b.Mul(b.Sub(x, OverInput(b, mean, x)), OverInput(b, invstd, x));
  const Value sum = ReduceSum(l, grad, reduced), dot = ReduceSum(l, b.Mul(grad, normal), reduced);
  if (l.ResultDefined(0)) {
    Value scale = invstd;
    if (!l.IsNone(2)) scale = b.Mul(scale, l.Tensor(2, acc));
    Value g = grad;
    if (train) {
      const double n = static_cast<double>(CountOf(b, x, reduced));
      g = b.Sub(b.Sub(g, OverInput(b, DivideByCount(b, sum, n), x)), b.Mul(normal, OverInput(b, DivideByCount(b, dot, n), x)));
    }
    SetResultAs(l, 0, b.Mul(g, OverInput(b, scale, x)));
  }
  if (l.ResultDefined(1)) SetResultAs(l, 1, dot);
  if (l.ResultDefined(2)) SetResultAs(l, 2, sum);
}

constexpr Rule kRules[] = {
    {.name = "native_batch_norm",
     .lower = BatchNorm,
     .runtime_floats = "momentum",
     .updates = "running_mean,running_var",
     .updates_if = "training"},
    {.name = "_native_batch_norm_legit_functional", .lower = BatchNormFunctional, .runtime_floats = "momentum"},
    {.name = "_native_batch_norm_legit.no_stats", .lower = BatchNormNoStats, .runtime_floats = "momentum"},
    {.name = "_batch_norm_with_update_functional", .lower = BatchNormWithUpdate, .runtime_floats = "momentum"},
    {.name = "native_batch_norm_backward", .lower = BatchNormBackward},
};

}  // namespace

std::span<const Rule> BatchNormRules() { return kRules; }

}  // namespace tpu::lower
