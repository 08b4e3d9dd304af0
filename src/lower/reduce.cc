// SPDX-License-Identifier: Apache-2.0
// Reductions: sums, extremes, tests. Moments and norms are in reduce_moments.cc, scans in reduce_scan.cc.
#include <iterator>

#include "lower/cast.h"
#include "lower/parts.h"
#include "lower/reduce.h"

namespace tpu::lower {
namespace {

constexpr int64_t kMaxInt32 = 0x7fffffff;

// The type a sum accumulates in. Sums of bools and small integers come out as 64-bit numbers, but 32 bits are enough
// for them while the count is small, and 64-bit integers are slow everywhere and emulated on TPUs.
DType SumType(DType from, DType to, int64_t count) {
  if (to != DType::kI64) return OpMathType(to);
  const int64_t largest = from == DType::kBool ? 1 : ItemSize(from) == 1 ? 255 : ItemSize(from) == 2 ? 65535 : 0;
  return largest && count <= kMaxInt32 / largest ? DType::kI32 : to;
}

// self as the reduction sees it: in the result's type, as ATen converts it, then widened.
Value SumOperand(Lowering& l, const Ints& dims) {
  const TensorType type = l.TypeOf(0);
  const DType to = l.ResultType(0).dtype;
  int64_t count = 1;
  for (int64_t d : dims) count *= type.dims[d].size();
  const DType acc = SumType(type.dtype, to, count);
  if (acc == DType::kI32) return l.Tensor(0, acc);
  return l.b.Convert(l.Tensor(0, to), acc);
}

// sum(self, *, dtype), sum.dim_IntList(self, dim, keepdim, *, dtype), nansum
void Sum(Lowering& l, bool whole, bool skip_nan) {
  Builder& b = l.b;
  const int rank = l.TypeOf(0).rank;
  const Ints dims = whole ? AllDims(rank) : DimsArg(l, 1, rank);
  Value x = SumOperand(l, dims);
  if (skip_nan && IsFloat(b.dtype(x))) x = b.Select(b.IsNan(x), b.Like(x, 0.0), x);
  SetResultAs(l, 0, ReduceSum(l, x, dims));
}
void SumAll(Lowering& l) { Sum(l, true, false); }
void SumDims(Lowering& l) { Sum(l, false, false); }
void NanSum(Lowering& l) { Sum(l, false, true); }

void Mean(Lowering& l, bool whole) {
  Builder& b = l.b;
  const int rank = l.TypeOf(0).rank;
  const Ints dims = whole ? AllDims(rank) : DimsArg(l, 1, rank);
  const Value x = SumOperand(l, dims);
  SetResultAs(l, 0, DivideByCount(b, ReduceSum(l, x, dims), static_cast<double>(CountOf(b, x, dims))));
}
void MeanAll(Lowering& l) { Mean(l, true); }
void MeanDims(Lowering& l) { Mean(l, false); }

void Prod(Lowering& l, bool whole) {
  Builder& b = l.b;
  const int rank = l.TypeOf(0).rank;
  const Ints dims = whole ? AllDims(rank) : DimsArg(l, 1, rank);
  const DType to = l.ResultType(0).dtype;
  const Value x = b.Convert(l.Tensor(0, to), OpMathType(to));
  SetResultAs(l, 0, dims.empty() ? x : b.Reduce(x, b.Constant(b.dtype(x), 1), dims, "multiply"));
}
void ProdAll(Lowering& l) { Prod(l, true); }
void ProdDim(Lowering& l) { Prod(l, false); }

// amax(self, dim, keepdim), max(self)
void Extreme(Lowering& l, bool max) {
  const Value x = l.Tensor(0);
  const Ints dims = DimsArg(l, 1, l.b.rank(x));
  SetResultAs(l, 0, max ? ReduceMax(l, x, dims) : ReduceMin(l, x, dims));
}
void Max(Lowering& l) { Extreme(l, true); }
void Min(Lowering& l) { Extreme(l, false); }

// aminmax(self, *, dim, keepdim)
void MinMax(Lowering& l) {
  const Value x = l.Tensor(0);
  const Ints dims = DimsArg(l, 1, l.b.rank(x));
  SetResultAs(l, 0, ReduceMin(l, x, dims));
  SetResultAs(l, 1, ReduceMax(l, x, dims));
}

// Narrow types are compared in a type with vector instructions; both are exact.
Value Comparable(Builder& b, Value x) {
  const DType d = b.dtype(x);
  if (d == DType::kBool) return b.Convert(x, DType::kI32);
  return b.Convert(x, OpMathType(d));
}

// max.dim(self, dim, keepdim) -> (values, indices)
void ExtremeWithIndex(Lowering& l, bool max) {
  Builder& b = l.b;
  const Value x = Comparable(b, AtLeast1d(b, l.Tensor(0)));
  const int dim = WrapDim(l.Int(1), b.rank(x));
  if (ResultIsEmpty(l, 0)) {
    SetResultFill(l, 0, 0);
    SetResultFill(l, 1, 0);
    return;
  }
  // A reduction of pairs is 4 to 7 times slower on CPUs than the value first and then its first place.
  const Value value = max ? ReduceMax(l, x, {dim}) : ReduceMin(l, x, {dim});
  SetResultAs(l, 0, value);
  SetResultAs(l, 1, FirstPosition(b, x, value, dim));
}
void MaxDim(Lowering& l) { ExtremeWithIndex(l, true); }
void MinDim(Lowering& l) { ExtremeWithIndex(l, false); }

// argmax(self, dim, keepdim)
void ArgExtreme(Lowering& l, bool max) {
  Builder& b = l.b;
  Value x = Comparable(b, AtLeast1d(b, l.Tensor(0)));
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  if (l.IsNone(1)) x = b.Flatten(x);
  const int dim = l.IsNone(1) ? 0 : WrapDim(l.Int(1), b.rank(x));
  if (b.dim(x, dim) > kMaxInt32) return l.Unsupported("argmax over more than 2^31 elements");
  const Value value = max ? ReduceMax(l, x, {dim}) : ReduceMin(l, x, {dim});
  SetResultAs(l, 0, FirstPosition(b, x, value, dim));
}
void ArgMax(Lowering& l) { ArgExtreme(l, true); }
void ArgMin(Lowering& l) { ArgExtreme(l, false); }

// all(self), all.dim(self, dim, keepdim), all.dims
void Test(Lowering& l, bool all) {
  Builder& b = l.b;
  const Value x = l.Tensor(0, DType::kBool);
  const Ints dims = DimsArg(l, 1, b.rank(x));
  SetResultAs(l, 0, dims.empty() ? x : b.Reduce(x, b.Constant(DType::kBool, all), dims, all ? "and" : "or"));
}
void All(Lowering& l) { Test(l, true); }
void Any(Lowering& l) { Test(l, false); }

// count_nonzero(self, dim?), count_nonzero.dim_IntList(self, dim)
void CountNonzero(Lowering& l) {
  Builder& b = l.b;
  const Value x = l.Tensor(0, DType::kBool);
  const Ints dims = DimsArg(l, 1, b.rank(x));
  const DType acc = CountOf(b, x, dims) <= kMaxInt32 ? DType::kI32 : DType::kI64;
  SetResultAs(l, 0, ReduceSum(l, b.Convert(x, acc), dims));
}

void Trace(Lowering& l) {
  Builder& b = l.b;
  const Value x = l.Tensor(0, l.ResultType(0).dtype);
  const int64_t rows = b.dim(x, 0), columns = b.dim(x, 1), n = rows < columns ? rows : columns;
  if (n == 0) return SetResultFill(l, 0, 0);
  const Value diagonal = b.SliceDim(b.Flatten(x), 0, 0, (n - 1) * (columns + 1) + 1, columns + 1);
  SetResultAs(l, 0, ReduceSum(l, b.Convert(diagonal, OpMathType(b.dtype(x))), {0}));
}

constexpr Rule kRules[] = {
    {.name = "sum", .lower = SumAll},
    {.name = "sum.dim_IntList", .lower = SumDims, .dtype_of_out = true},
    {.name = "nansum", .lower = NanSum, .dtype_of_out = true},
    {.name = "mean", .lower = MeanAll},
    {.name = "mean.dim", .lower = MeanDims},
    {.name = "prod", .lower = ProdAll},
    {.name = "prod.dim_int", .lower = ProdDim, .dtype_of_out = true},
    {.name = "amax", .lower = Max},
    {.name = "amin", .lower = Min},
    {.name = "max", .lower = Max},
    {.name = "min", .lower = Min},
    {.name = "aminmax", .lower = MinMax},
    {.name = "max.dim", .lower = MaxDim},
    {.name = "min.dim", .lower = MinDim},
    {.name = "argmax", .lower = ArgMax},
    {.name = "argmin", .lower = ArgMin},
    {.name = "all", .lower = All},
    {.name = "all.dim", .lower = All},
    {.name = "all.dims", .lower = All},
    {.name = "any", .lower = Any},
    {.name = "any.dim", .lower = Any},
    {.name = "any.dims", .lower = Any},
    {.name = "count_nonzero", .lower = CountNonzero},
    {.name = "count_nonzero.dim_IntList", .lower = CountNonzero},
    {.name = "trace", .lower = Trace},
};

}  // namespace

// One list out of the three files of the family.
std::span<const Rule> ReduceRules() {
  static const std::vector<Rule>& rules = *[] {
    auto* all = new std::vector<Rule>(std::begin(kRules), std::end(kRules));
    for (const auto& more : {MomentRules(), ScanRules()}) all->insert(all->end(), more.begin(), more.end());
    return all;
  }();
  return rules;
}

}  // namespace tpu::lower
