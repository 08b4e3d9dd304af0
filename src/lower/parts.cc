// SPDX-License-Identifier: Apache-2.0
#include "lower/parts.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  if (b.type(x).numel() < kLeastForDot || dims.front() + static_cast<int64_t>(dims.size()) != b.rank(x)) return 0;
  const int64_t n = CountOf(b, x, dims);
  for (int64_t width = std::min(n, l.profile.sum_as_dot_width); width >= kLeastDotWidth; --width)
    if (n % width == 0) return width;
  return 0;
}

}  // namespace

int WrapDim(int64_t dim, int rank) {
  if (rank == 0) return 0;
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

Ints AllDims(int rank) {
  Ints dims(rank);
  for (int i = 0; i < rank; ++i) dims[i] = i;
  return dims;
}

Ints DimsArg(const Lowering& l, int i, int rank) {
  if (i >= l.num_args() || l.IsNone(i)) return AllDims(rank);
  Ints dims;
  if (l.arg(i).kind == graph::ArgKind::kInt)
    dims = {l.Int(i)};
  else
    dims = l.IntList(i);
  if (dims.empty()) return AllDims(rank);
  if (rank == 0) return {};
  for (int64_t& d : dims) d = WrapDim(d, rank);
  std::sort(dims.begin(), dims.end());
  return dims;
}

Ints OtherDims(int rank, const Ints& dims) {
  Ints others;
  for (int i = 0; i < rank; ++i)
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) others.push_back(i);
  return others;
}

int64_t Product(const Ints& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

int64_t CountOf(Builder& b, Value x, const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= b.dim(x, static_cast<int>(d));
  return n;
}

Value ExpandReduced(Builder& b, Value reduced, const Ints& to, const Ints& dims) {
  return b.BroadcastInDim(reduced, to, OtherDims(static_cast<int>(to.size()), dims));
}

Value AtLeast1d(Builder& b, Value x) { return b.rank(x) == 0 ? b.Reshape(x, {1}) : x; }

Value Zeros(Builder& b, const TensorType& type) { return b.Constant(type, 0); }

uint8_t ClassOf(const Lowering& l, int i) {
  const graph::Argument& a = l.arg(i);
  const bool number = a.kind == graph::ArgKind::kInt || a.kind == graph::ArgKind::kDouble;
  if (!number) return a.scalar_class;
  if (!l.rule().classify) return l.Double(i) == 1;
  return l.rule().classify(i, l.Double(i), a.kind == graph::ArgKind::kInt);
}

void SetResultAs(Lowering& l, int k, Value value) {
  const TensorType type = l.ResultType(k);
  l.SetResult(k, l.b.Reshape(l.b.Convert(value, type.dtype), Ints(type.begin(), type.end())));
}

void SetResultFill(Lowering& l, int k, double v) { l.SetResult(k, l.b.Constant(l.ResultType(k), v)); }

bool ResultIsEmpty(const Lowering& l, int k) { return l.ResultType(k).numel() == 0; }

Value ReduceSum(Lowering& l, Value x, const Ints& dims) {
  Builder& b = l.b;
  if (dims.empty() || !x.valid()) return x;
  if (const int64_t width = DotWidth(l, x, dims)) {
    const Ints all = b.dims(x), kept(all.begin(), all.end() - static_cast<int64_t>(dims.size()));
    const int64_t rows = Product(kept), parts = CountOf(b, x, dims) / width;
    const Value ones = b.Constant(TensorType(b.dtype(x), {width}), 1);
    const Value sums = b.DotGeneral(b.Reshape(x, {rows * parts, width}), ones, {{}, {}, {1}, {0}}, hlo::Precision::kHighest);
    if (parts == 1) return b.Reshape(sums, kept);
    return b.Reshape(b.Reduce(b.Reshape(sums, {rows, parts}), b.Constant(b.dtype(x), 0), {1}, "add"), kept);
  }
  return b.Reduce(x, b.Constant(b.dtype(x), 0), dims, "add");
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

void TrapIf(Lowering& l, Value bad, ErrorKind kind, const std::string& message) {
  const Ints dims = AllDims(l.b.rank(bad));
  if (!dims.empty()) bad = l.b.Reduce(bad, l.b.Constant(DType::kBool, 0), dims, "or");
  l.Trap(l.b.Convert(bad, DType::kI32), kind, message);
}

}  // namespace tpu::lower
