// SPDX-License-Identifier: Apache-2.0
// Layer norm and group norm. Both see the input as [rows, row] and normalize each row; they differ in how weight and
// bias lie over it.
#include <limits>

#include "lower/normalize.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

// The input as groups: row r is normalized by itself, element (r, j) has weight number `channel(r, j)`, which
// `channels` (broadcast_in_dim places of a weight) says for the shape `dims`.
struct Rows {
  Ints dims;      // of the input as we look at it
  Ints reduced;   // its dimensions that make up a row
  Ints channels;  // its dimensions that weight and bias run over
};

// Layer norm: [rows, row]; weight [row].
Rows LayerRows(int64_t rows, int64_t row) { return {{rows, row}, {1}, {1}}; }

// Group norm: [N, groups, channels a group, HxW]; weight [groups, channels a group].
Rows GroupRows(int64_t n, int64_t groups, int64_t each, int64_t spatial) {
  return {{n, groups, each, spatial}, {2, 3}, {1, 2}};
}

Ints ChannelDims(const Rows& r) {
  Ints dims;
  for (int64_t d : r.channels) dims.push_back(r.dims[d]);
  return dims;
}

Value OverRow(Builder& b, Value per_row, const Rows& r) { return ExpandReduced(b, per_row, r.dims, r.reduced); }

// A weight or bias over the whole input; invalid when the argument is None.
Value OverChannels(Lowering& l, int i, DType acc, const Rows& r) {
  if (l.IsNone(i)) return {};
  return l.b.BroadcastInDim(l.b.Reshape(l.Tensor(i, acc), ChannelDims(r)), r.dims, r.channels);
}

// The sum of each row of x times `weight`, which is argument `weight_arg` over the whole input, or invalid.
Value WeightedSum(Lowering& l, Value x, Value weight, int weight_arg, const Rows& r) {
  Builder& b = l.b;
  if (!weight.valid()) return ReduceSum(l, x, r.reduced);
  if (!l.profile.row_sum_as_dot || r.channels != r.reduced) return ReduceSum(l, b.Mul(x, weight), r.reduced);
  const Value vector = b.Reshape(l.Tensor(weight_arg, b.dtype(x)), ChannelDims(r));
  return b.DotGeneral(x, vector, {{}, {}, {1}, {0}}, hlo::Precision::kHighest);
}

// results: output, mean, rstd
void Forward(Lowering& l, const Rows& r, int weight_arg, int bias_arg, double eps) {
  Builder& b = l.b;
  const DType acc = OpMathType(l.TypeOf(0).dtype);
  if (Product(r.dims) == 0) {
    SetResultFill(l, 0, 0);
    SetResultFill(l, 1, 0);
    return SetResultFill(l, 2, l.ResultType(2).numel() ? std::numeric_limits<double>::quiet_NaN() : 0);
  }
  const Value x = b.Reshape(l.Tensor(0, acc), r.dims);
  const double n = static_cast<double>(CountOf(b, x, r.reduced));
  const Value mean = DivideByCount(b, ReduceSum(l, x, r.reduced), n);
  const Value centered = BetweenPasses(l, b.Sub(x, OverRow(b, mean, r)));
  const Value var = DivideByCount(b, ReduceSum(l, b.Mul(centered, centered), r.reduced), n);
  const Value rstd = b.Unary("rsqrt", b.Add(var, b.Like(var, eps)));
  Value y = b.Mul(centered, OverRow(b, rstd, r));
  if (const Value weight = OverChannels(l, weight_arg, acc, r); weight.valid()) y = b.Mul(y, weight);
  if (const Value bias = OverChannels(l, bias_arg, acc, r); bias.valid()) y = b.Add(y, bias);
  SetResultAs(l, 0, y);
  SetResultAs(l, 1, mean);
  SetResultAs(l, 2, rstd);
}

// grad_out, input are arguments 0 and 1; results: gradients of input, weight, bias
void Backward(Lowering& l, const Rows& r, int mean_arg, int weight_arg) {
  Builder& b = l.b;
  const DType acc = OpMathType(l.TypeOf(1).dtype);
  if (Product(r.dims) == 0) {
    for (int k = 0; k < 3; ++k)
      if (l.ResultDefined(k)) SetResultFill(l, k, 0);
    return;
  }
  Ints row_dims;
  for (int d : OtherDims(static_cast<int>(r.dims.size()), r.reduced)) row_dims.push_back(r.dims[d]);
  const Value grad = b.Reshape(l.Tensor(0, acc), r.dims), x = b.Reshape(l.Tensor(1, acc), r.dims);
  const Value mean = b.Reshape(l.Tensor(mean_arg, acc), row_dims);
  const Value rstd = b.Reshape(l.Tensor(mean_arg + 1, acc), row_dims);
  const Value normal = b.Mul(b.Sub(x, OverRow(b, mean, r)), OverRow(b, rstd, r));
  if (l.ResultDefined(0)) {
    const Value weight = OverChannels(l, weight_arg, acc, r);
    const Value g = weight.valid() ? b.Mul(grad, weight) : grad;
    const double n = static_cast<double>(CountOf(b, x, r.reduced));
    const Value mean_g = DivideByCount(b, WeightedSum(l, grad, weight, weight_arg, r), n);
    const Value mean_gx = DivideByCount(b, WeightedSum(l, b.Mul(grad, normal), weight, weight_arg, r), n);
    const Value inner = b.Sub(b.Sub(g, OverRow(b, mean_g, r)), b.Mul(normal, OverRow(b, mean_gx, r)));
    SetResultAs(l, 0, b.Mul(inner, OverRow(b, rstd, r)));
  }
  const Ints others = OtherDims(static_cast<int>(r.dims.size()), r.channels);
  if (l.ResultDefined(1)) SetResultAs(l, 1, ReduceSum(l, b.Mul(grad, normal), others));
  if (l.ResultDefined(2)) SetResultAs(l, 2, ReduceSum(l, grad, others));
}

Rows LayerRowsOf(const Lowering& l, const TensorType& input, int shape_arg) {
  const int64_t row = Product(l.IntList(shape_arg));
  int64_t rows = 1;
  for (size_t i = 0; i + l.IntList(shape_arg).size() < input.rank; ++i) rows *= input.dims[i].size();
  return LayerRows(rows, row);
}

// native_layer_norm(input, normalized_shape, weight, bias, eps)
void LayerNorm(Lowering& l) { Forward(l, LayerRowsOf(l, l.TypeOf(0), 1), 2, 3, l.Double(4)); }

// native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
void LayerNormBackward(Lowering& l) { Backward(l, LayerRowsOf(l, l.TypeOf(1), 2), 3, 5); }

// native_group_norm(input, weight, bias, N, C, HxW, group, eps)
void GroupNorm(Lowering& l) { Forward(l, GroupRows(l.Int(3), l.Int(6), l.Int(4) / l.Int(6), l.Int(5)), 1, 2, l.Double(7)); }

// native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
void GroupNormBackward(Lowering& l) { Backward(l, GroupRows(l.Int(5), l.Int(8), l.Int(6) / l.Int(8), l.Int(7)), 2, 4); }

constexpr Rule kRules[] = {
    {.name = "native_layer_norm", .lower = LayerNorm},
    {.name = "native_layer_norm_backward", .lower = LayerNormBackward},
    {.name = "native_group_norm", .lower = GroupNorm},
    {.name = "native_group_norm_backward", .lower = GroupNormBackward},
};

}  // namespace

std::span<const Rule> LayerNormRules() { return kRules; }

}  // namespace tpu::lower
