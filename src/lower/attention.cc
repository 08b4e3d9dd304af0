// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention and its gradient, each one program: softmax(scale q k^T + mask) v. The operators are
// those that core's scaled_dot_product_attention calls on devices without kernels in its own binary (aten/attention.cc
// says when). q: [batch, heads, queries, width]; k, v: [batch, kv heads, keys, width], where heads is a multiple of kv
// heads: the heads of a group lie side by side, so that a group is read as one head with more queries.
#include <cmath>
#include <limits>

#include "lower/parts.h"

namespace tpu::lower {
namespace {

// [batches, rows, width] times [batches, columns, width], and the forms with one side transposed.
const hlo::DotDims kRowsByRows{.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {2}};
const hlo::DotDims kRowsByColumns{.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}};
const hlo::DotDims kColumnsByColumns{.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {1}, .rhs_contract = {1}};

class Attention {
 public:
  // The positions of q, of is_causal, and of attn_mask and scale behind it, in the operator's schema.
  Attention(Lowering& l, int q, int causal) : l_(l), b_(l.b), q_(q), causal_(causal) {
    const TensorType query = l.TypeOf(q), key = l.TypeOf(q + 1);
    batch_ = query.dims[0].size(), heads_ = query.dims[1].size(), queries_ = query.dims[2].size();
    width_ = query.dims[3].size(), groups_ = key.dims[1].size(), keys_ = key.dims[2].size();
    acc_ = OpMathType(query.dtype);
    scale_ = l.IsNone(causal + 2) ? 1 / std::sqrt(static_cast<double>(width_)) : l.Double(causal + 2);
  }

  DType acc() const { return acc_; }
  bool empty() const { return batch_ * heads_ * queries_ * width_ == 0 || groups_ == 0 || keys_ == 0; }
  const Ints& scores_dims() const { return scores_; }

  // Argument i (q, or of q's shape) as [batch * kv heads, queries of a group, width].
  Value Queries(int i) { return b_.Reshape(l_.Tensor(i), {batch_ * groups_, heads_ / groups_ * queries_, width_}); }
  Value Keys(int i) { return b_.Reshape(l_.Tensor(i), {batch_ * groups_, keys_, width_}); }

  Value Dot(Value x, Value y, const hlo::DotDims& dims) {
    return DotGeneral(l_, x, y, dims, PrecisionFor(l_, b_.dtype(x)), acc_);
  }

  Value Scaled(Value x) { return b_.Mul(x, b_.Like(x, scale_)); }

  // scale q k^T + mask; -inf where nothing is to be seen.
  Value Scores() {
    Value q = Queries(q_);
    // Scaling the queries is less work than scaling the scores, and as exact in a type that is not rounded again.
    const bool early = b_.dtype(q) == acc_;
    Value s = Dot(early ? Scaled(q) : q, Keys(q_ + 1), kRowsByRows);
    if (!early) s = Scaled(s);
    scores_ = b_.dims(s);
    const Ints all{batch_, heads_, queries_, keys_};
    if (!l_.IsNone(causal_ + 1)) {
      const Value mask = l_.Tensor(causal_ + 1, acc_);
      s = b_.Add(s, b_.Reshape(b_.Broadcast(mask, all), scores_));
    }
    if (l_.Bool(causal_)) {
      const TensorType square(DType::kI32, {queries_, keys_});
      const Value seen = b_.Cmp(Compare::kLe, b_.Iota(square, 1), b_.Iota(square, 0));
      const Value everywhere = b_.Reshape(b_.BroadcastInDim(seen, all, {2, 3}), scores_);
      s = b_.Select(everywhere, s, b_.Like(s, -std::numeric_limits<double>::infinity()));
    }
    return s;
  }

  Value OverScores(Value per_row) { return ExpandReduced(b_, per_row, scores_, {2}); }

 private:
  Lowering& l_;
  Builder& b_;
  int q_, causal_;
  int64_t batch_, heads_, queries_, width_, groups_, keys_;
  DType acc_;
  double scale_;
  Ints scores_;
};

// _scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, *, attn_mask, scale)
// Results: output; the logarithm of each row's sum of exponentials, 0 for a row that sees nothing (its output is 0).
void Forward(Lowering& l) {
  Builder& b = l.b;
  Attention a(l, 0, 4);
  if (a.empty()) {
    SetResultFill(l, 0, 0);
    return SetResultFill(l, 1, 0);
  }
  const Value s = a.Scores();
  const Value largest = ReduceMax(l, s, {2}, false);
  const Value blind = b.Cmp(Compare::kEq, largest, -std::numeric_limits<double>::infinity());
  const Value shift = b.Select(blind, b.Like(largest, 0.0), largest);
  const Value e = BetweenPasses(l, b.Unary("exponential", b.Sub(s, a.OverScores(shift))));
  const Value total = ReduceSum(l, e, {2});
  const Value divisor = b.Select(blind, b.Like(total, 1.0), total);
  const DType dtype = l.TypeOf(2).dtype;
  if (dtype == a.acc()) {
    SetResultAs(l, 0, a.Dot(b.Div(e, a.OverScores(divisor)), a.Keys(2), kRowsByColumns));
  } else {  // divided after the product: the weights are rounded once, as torch's own kernel does it
    const Value y = a.Dot(b.Convert(e, dtype), a.Keys(2), kRowsByColumns);
    SetResultAs(l, 0, b.Div(y, ExpandReduced(b, divisor, b.dims(y), {2})));
  }
  SetResultAs(l, 1, b.Add(shift, b.Unary("log", divisor)));
}

// _scaled_dot_product_flash_attention_for_cpu_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal,
// *, attn_mask, scale). Results: gradients of query, key, value.
void Backward(Lowering& l) {
  Builder& b = l.b;
  Attention a(l, 1, 7);
  if (a.empty()) {
    for (int k = 0; k < 3; ++k) SetResultFill(l, k, 0);
    return;
  }
  const DType dtype = l.TypeOf(1).dtype;
  const Value grad = a.Queries(0), s = a.Scores();
  const Ints rows{a.scores_dims()[0], a.scores_dims()[1]};
  const Value p = b.Unary("exponential", b.Sub(s, a.OverScores(b.Reshape(l.Tensor(5, a.acc()), rows))));
  const Value by_row = ReduceSum(l, b.Mul(b.Convert(grad, a.acc()), b.Convert(a.Queries(4), a.acc())), {2});
  const Value seen = b.Sub(a.Dot(grad, a.Keys(3), kRowsByRows), a.OverScores(by_row));
  const Value grad_scores = b.Convert(b.Mul(p, seen), dtype);
  SetResultAs(l, 0, a.Scaled(a.Dot(grad_scores, a.Keys(2), kRowsByColumns)));
  SetResultAs(l, 1, a.Scaled(a.Dot(grad_scores, a.Queries(1), kColumnsByColumns)));
  SetResultAs(l, 2, a.Dot(b.Convert(p, dtype), grad, kColumnsByColumns));
}

constexpr Rule kRules[] = {
    {.name = "_scaled_dot_product_flash_attention_for_cpu", .lower = Forward, .precision = true},
    {.name = "_scaled_dot_product_flash_attention_for_cpu_backward", .lower = Backward, .precision = true},
};

}  // namespace

std::span<const Rule> AttentionRules() { return kRules; }

}  // namespace tpu::lower
