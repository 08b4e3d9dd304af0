// SPDX-License-Identifier: Apache-2.0
// Reductions, in the form that the engine is fast at.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lower/parts.h"

namespace tpu::lower {
namespace {

Value Extreme(Lowering& l, Value x, const Ints& dims, bool max, bool carry_nan) {
  Builder& b = l.b;
  const DType dtype = b.dtype(x);
  if (dims.empty()) return x;
  if (dtype == DType::kBool) return b.Reduce(x, b.Constant(dtype, max ? 0 : 1), dims, max ? "or" : "and");
  // Narrow floats have no vector instructions on CPUs: widening is free and exact.
  if (OpMathType(dtype) != dtype) return b.Convert(Extreme(l, b.Convert(x, OpMathType(dtype)), dims, max, carry_nan), dtype);
  const Value init = max ? LowestOf(b, dtype) : HighestOf(b, dtype);
  const bool native = l.profile.native_reduce_minmax_ok || (l.profile.native_reduce_minmax_fast && !carry_nan);
  if (!IsFloat(dtype) || native) return b.Reduce(x, init, dims, max ? "maximum" : "minimum");
  const auto body = [&](const Values& v) -> Values {
    Value keep = b.Cmp(max ? Compare::kGt : Compare::kLt, v[0], v[1]);
    if (carry_nan) keep = b.Or(keep, b.IsNan(v[0]));
    return {b.Select(keep, v[0], v[1])};
  };
  return b.Reduce(Values{x}, Values{init}, dims, body)[0];
}

// The sums of fewer elements than this take too little time to make it worth a step of their own.
constexpr int64_t kLeastForDot = 1 << 14;
// A narrower product is slower than the reduction.
constexpr int64_t kLeastDotWidth = 128;

// How many elements each product with ones adds up; 0: a plain reduction. Up to some hundred elements the products round
// no worse than reductions, which add in groups.
int64_t DotWidth(const Lowering& l, Value x, const Ints& dims) {
  Builder& b = l.b;
  const DType dtype = b.dtype(x);
  if (!l.profile.sum_as_dot_width || (dtype != DType::kF32 && dtype != DType::kF64)) return 0;
  if (dims.empty() || b.type(x).numel() < kLeastForDot || dims.front() + static_cast<int64_t>(dims.size()) != b.rank(x))
    return 0;
  const int64_t n = CountOf(b, x, dims);
  for (int64_t width = std::min(n, l.profile.sum_as_dot_width); width >= kLeastDotWidth; --width)
    if (n % width == 0) return width;
  return 0;
}

// Those of `dims` that are the last ones of x.
Ints Innermost(Builder& b, Value x, const Ints& dims) {
  Ints last;
  for (int64_t d = b.rank(x) - 1; last.size() < dims.size() && dims[dims.size() - 1 - last.size()] == d; --d)
    last.insert(last.begin(), d);
  return last;
}

// Into how many slices a sum over leading dimensions is cut. The slices are added to each other first, which is one pass
// over long vectors; the engine's own way goes down the columns. 0: a plain reduction.
int64_t ColumnSlices(const Lowering& l, Value x, const Ints& dims) {
  Builder& b = l.b;
  constexpr int64_t kLeastRows = 512;
  const int64_t slices = l.profile.column_sum_slices, rows = CountOf(b, x, dims);
  const bool leading = dims.back() + 1 == static_cast<int64_t>(dims.size()) && dims.back() + 1 < b.rank(x);
  return leading && IsFloat(b.dtype(x)) && slices && rows >= kLeastRows && rows % slices == 0 ? slices : 0;
}

}  // namespace

Value ReduceSum(Lowering& l, Value x, const Ints& dims) {
  Builder& b = l.b;
  if (dims.empty() || !x.valid()) return x;
  // The innermost dimensions first, where they have a faster (and more exact) way than the others.
  const Ints innermost = Innermost(b, x, dims);
  if (innermost.size() < dims.size() && DotWidth(l, x, innermost))
    return ReduceSum(l, ReduceSum(l, x, innermost), Ints(dims.begin(), dims.end() - static_cast<int64_t>(innermost.size())));
  if (const int64_t width = DotWidth(l, x, dims)) {
    const Ints all = b.dims(x), kept(all.begin(), all.end() - static_cast<int64_t>(dims.size()));
    const int64_t rows = Product(kept), parts = CountOf(b, x, dims) / width;
    const Value ones = b.Constant(TensorType(b.dtype(x), {width}), 1);
    const Value sums = b.DotGeneral(b.Reshape(x, {rows * parts, width}), ones, {{}, {}, {1}, {0}}, hlo::Precision::kHighest);
    if (parts == 1) return b.Reshape(sums, kept);
    return b.Reshape(b.Reduce(b.Reshape(sums, {rows, parts}), b.Constant(b.dtype(x), 0), {1}, "add"), kept);
  }
  const Value zero = b.Constant(b.dtype(x), 0);
  if (const int64_t slices = ColumnSlices(l, x, dims)) {
    const Ints all = b.dims(x);
    Ints cut{slices, CountOf(b, x, dims) / slices};
    cut.insert(cut.end(), all.begin() + static_cast<int64_t>(dims.size()), all.end());
    return b.Reduce(b.OptimizationBarrier(b.Reduce(b.Reshape(x, cut), zero, {0}, "add")), zero, {0}, "add");
  }
  return b.Reduce(x, zero, dims, "add");
}

Value ReduceMax(Lowering& l, Value x, const Ints& dims, bool carry_nan) { return Extreme(l, x, dims, true, carry_nan); }
Value ReduceMin(Lowering& l, Value x, const Ints& dims, bool carry_nan) { return Extreme(l, x, dims, false, carry_nan); }

Value LowestOf(Builder& b, DType dtype) {
  if (IsFloat(dtype)) return b.Constant(dtype, -std::numeric_limits<double>::infinity());
  if (!IsSigned(dtype)) return b.Constant(dtype, 0);
  return b.Constant(dtype, std::numeric_limits<int64_t>::min() >> (64 - 8 * ItemSize(dtype)));
}

Value HighestOf(Builder& b, DType dtype) {
  if (IsFloat(dtype)) return b.Constant(dtype, std::numeric_limits<double>::infinity());
  if (dtype == DType::kBool) return b.Constant(dtype, 1);
  const uint64_t ones = ~uint64_t{0} >> (64 - 8 * ItemSize(dtype));
  return b.Constant(dtype, static_cast<int64_t>(IsSigned(dtype) ? ones >> 1 : ones));
}

Value BetweenPasses(Lowering& l, Value x) { return l.profile.barrier_between_passes ? l.b.OptimizationBarrier(x) : x; }

Value Stored(Builder& b, Value x) { return b.Div(x, b.OptimizationBarrier(b.Like(x, 1))); }

Value DivideByCount(Builder& b, Value x, double count) {
  const DType dtype = b.dtype(x);
  int exponent;
  // By a power of two the reciprocal is exact; a count of 0 has to give NaN, which the reciprocal does as well.
  if (IsComplex(dtype) || std::frexp(count, &exponent) == 0.5 || count == 0) return b.Div(x, b.Like(x, count));
  return b.Div(x, b.BroadcastLike(b.OptimizationBarrier(b.Constant(dtype, count)), x));
}

Value FirstPosition(Builder& b, Value x, Value extreme, int dim) {
  const Ints dims = b.dims(x);
  Value hit = b.Cmp(Compare::kEq, x, ExpandReduced(b, extreme, dims, {dim}));
  if (IsFloat(b.dtype(x))) hit = b.Or(hit, b.IsNan(x));
  const TensorType type = TensorType::Of(DType::kI32, dims);
  const Value position = b.Select(hit, b.Iota(type, dim), b.Constant(type, std::numeric_limits<int32_t>::max()));
  return b.Reduce(position, HighestOf(b, DType::kI32), {dim}, "minimum");
}

}  // namespace tpu::lower
