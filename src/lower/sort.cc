// SPDX-License-Identifier: Apache-2.0
// Sorting and selecting by rank. NaN is the greatest value; equal elements keep their order.
#include <limits>

#include "lower/parts.h"

namespace tpu::lower {
namespace {

bool TooLong(Lowering& l, int64_t n) {
  if (n <= std::numeric_limits<int32_t>::max()) return false;
  l.Unsupported("sorting more than 2^31 elements");
  return true;
}

struct Sorted {
  Value values, positions;  // positions: s32
};

// Numbers of up to 32 bits as s32 in the same order: NaN last, -0 equal to 0.
Value OrderedBits(Builder& b, Value x) {
  const DType dtype = b.dtype(x);
  if (!IsFloat(dtype)) {
    if (dtype == DType::kU32) return b.BitcastConvert(b.Binary("xor", x, int64_t{0x80000000}), DType::kI32);
    return b.Convert(x, DType::kI32);
  }
  x = b.Convert(x, DType::kF32);
  x = b.Select(b.Cmp(Compare::kEq, x, 0.0), b.Like(x, 0.0), x);
  x = b.Select(b.IsNan(x), b.Like(x, std::numeric_limits<double>::quiet_NaN()), x);
  const Value bits = b.BitcastConvert(x, DType::kI32);
  return b.Select(b.Cmp(Compare::kLt, bits, 0), b.Binary("xor", bits, 0x7fffffff), bits);
}

// Value and position packed in one 64-bit number, which CPU engines sort 2 to 8 times faster than a pair: no comparator
// of ours is called, and equal elements keep their order by their positions.
Sorted SortPacked(Lowering& l, Value x, int dim, bool descending) {
  Builder& b = l.b;
  Value bits = OrderedBits(b, x);
  if (descending) bits = b.Not(bits);
  const Value high = b.Binary("shift_left", b.Convert(bits, DType::kI64), 32);
  const Value packed = b.Or(high, b.Iota(TensorType::Of(DType::kI64, b.dims(x)), dim));
  const Values sorted =
      b.Sort({packed}, dim, false, [&](const Values& v) -> Values { return {b.Cmp(Compare::kLt, v[0], v[1])}; });
  if (sorted.empty()) return {};
  const Value positions = b.Convert(sorted[0], DType::kI32);
  return {GatherElements(l, x, dim, positions), positions};
}

Sorted SortAlong(Lowering& l, Value x, int dim, bool descending) {
  Builder& b = l.b;
  const DType dtype = b.dtype(x);
  if (l.profile.kind == pjrt::EngineKind::kCpu && ItemSize(dtype) <= 4) return SortPacked(l, x, dim, descending);
  const Value positions = b.Iota(TensorType::Of(DType::kI32, b.dims(x)), dim);
  const auto precedes = [&](const Values& v) -> Values {
    if (dtype == DType::kBool) {
      // True after false (before it when descending): no comparison of bools is needed.
      return {descending ? b.And(v[0], b.Not(v[1])) : b.And(b.Not(v[0]), v[1])};
    }
    const Value ordered = b.Cmp(descending ? Compare::kGt : Compare::kLt, v[0], v[1]);
    if (!IsFloat(dtype)) return {ordered};
    if (!descending && !l.profile.sort_needs_nan_comparator) return {ordered};
    const Value nan0 = b.IsNan(v[0]), nan1 = b.IsNan(v[1]);
    return {b.Or(ordered, descending ? b.And(nan0, b.Not(nan1)) : b.And(nan1, b.Not(nan0)))};
  };
  const Values sorted = b.Sort({x, positions}, dim, true, precedes);
  return sorted.size() == 2 ? Sorted{sorted[0], sorted[1]} : Sorted{};
}

void SortBy(Lowering& l, int dim_arg, bool descending) {
  Builder& b = l.b;
  const Value x = AtLeast1d(b, l.Tensor(0));
  if (ResultIsEmpty(l, 0)) {
    SetResultFill(l, 0, 0);
    return SetResultFill(l, 1, 0);
  }
  if (IsComplex(b.dtype(x))) return l.Unsupported("sorting complex numbers");
  const int dim = WrapDim(l.Int(dim_arg), b.rank(x));
  if (TooLong(l, b.dim(x, dim))) return;
  const Sorted s = SortAlong(l, x, dim, descending);
  SetResultAs(l, 0, s.values);
  SetResultAs(l, 1, s.positions);
}
// sort(self, dim, descending), sort.stable(self, *, stable, dim, descending)
void Sort(Lowering& l) { SortBy(l, 1, l.Bool(2)); }
void SortStable(Lowering& l) { SortBy(l, 2, l.Bool(3)); }

// chlo.top_k along the last dimension.
Sorted TopK(Builder& b, Value x, int64_t k) {
  TensorType values = TensorType::Scalar(b.dtype(x));
  for (int i = 0; i < b.rank(x); ++i) values.Append(i + 1 < b.rank(x) ? b.dim(x, i) : k);
  const Values top = b.Op("chlo.top_k", {x}, {values, values.With(DType::kI32)}, "k = " + std::to_string(k) + " : i64");
  return top.size() == 2 ? Sorted{top[0], top[1]} : Sorted{};
}

// The k largest or smallest along the last dimension, in order. top_k compares float bits: NaN of either sign has to
// become the one that is greatest, and for the smallest, which are the largest negatives, the one that is least.
Sorted TopFloats(Builder& b, Value x, int64_t k, bool largest) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const DType dtype = b.dtype(x);
  Value y = x;
  if (largest) {
    y = b.Select(b.IsNan(x), b.Like(x, kNan), x);
  } else {
    const Value least = b.BitcastConvert(b.Constant(b.type(x).With(DType::kI32), -0x400000), dtype);
    y = b.Select(b.IsNan(x), least, b.Neg(x));
  }
  Sorted s = TopK(b, y, k);
  if (!largest) s.values = b.Neg(s.values);
  return s;
}

// topk(self, k, dim, largest, sorted)
void TopKRule(Lowering& l) {
  Builder& b = l.b;
  const int64_t k = l.Int(1);
  const bool largest = l.Bool(3);
  if (ResultIsEmpty(l, 0)) {
    SetResultFill(l, 0, 0);
    return SetResultFill(l, 1, 0);
  }
  const Value x = AtLeast1d(b, l.Tensor(0));
  const DType dtype = b.dtype(x);
  const int rank = b.rank(x), dim = WrapDim(l.Int(2), rank);
  if (TooLong(l, b.dim(x, dim))) return;
  // Sorting everything costs ten times as much and more; but only float32 has a fast top_k everywhere.
  const bool fast = dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
  if (!fast) {
    const Sorted s = SortAlong(l, x, dim, largest);
    SetResultAs(l, 0, b.SliceDim(s.values, dim, 0, k));
    return SetResultAs(l, 1, b.SliceDim(s.positions, dim, 0, k));
  }
  Ints last = OtherDims(rank, {dim}), back = AllDims(rank);
  last.push_back(dim);
  for (int i = 0; i < rank; ++i) back[last[i]] = i;
  const Sorted s = TopFloats(b, b.Transpose(b.Convert(x, DType::kF32), last), k, largest);
  SetResultAs(l, 0, b.Transpose(s.values, back));
  SetResultAs(l, 1, b.Transpose(s.positions, back));
}

// Sets value and position at sorted place `place` (s32, x without dim, clamped) of each row.
void SetAtPlace(Lowering& l, const Sorted& s, int dim, Value place, bool with_position) {
  Builder& b = l.b;
  Ints one = b.dims(s.values);
  if (one.empty()) return;  // an error has been reported
  one[dim] = 1;
  const Value index = b.Reshape(place, one);
  SetResultAs(l, 0, GatherElements(l, s.values, dim, index));
  if (with_position) SetResultAs(l, 1, GatherElements(l, s.positions, dim, index));
}

// kthvalue(self, k, dim, keepdim)
void KthValue(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) {
    SetResultFill(l, 0, 0);
    return SetResultFill(l, 1, 0);
  }
  const Value x = AtLeast1d(b, l.Tensor(0));
  const int dim = WrapDim(l.Int(2), b.rank(x));
  const int64_t k = l.Int(1);
  if (k < 1 || k > b.dim(x, dim)) return l.Unsupported("k is out of range");
  if (TooLong(l, b.dim(x, dim))) return;
  const Sorted s = SortAlong(l, x, dim, false);
  SetResultAs(l, 0, b.SliceDim(s.values, dim, k - 1, k));
  SetResultAs(l, 1, b.SliceDim(s.positions, dim, k - 1, k));
}

// median(self), median.dim(self, dim, keepdim), nanmedian: the lower of two middle elements.
void Median(Lowering& l, bool whole, bool ignore_nan) {
  Builder& b = l.b;
  Value x = AtLeast1d(b, l.Tensor(0));
  if (ResultIsEmpty(l, 0)) {
    SetResultFill(l, 0, 0);
    return SetResultFill(l, 1, 0);
  }
  if (b.type(x).numel() == 0) {
    if (!whole || !IsFloat(b.dtype(x))) return l.Unsupported("median of nothing");
    return SetResultFill(l, 0, std::numeric_limits<double>::quiet_NaN());
  }
  if (whole) x = b.Flatten(x);
  const int dim = whole ? 0 : WrapDim(l.Int(1), b.rank(x));
  const int64_t n = b.dim(x, dim);
  if (TooLong(l, n)) return;
  const Sorted s = SortAlong(l, x, dim, false);
  if (!IsFloat(b.dtype(x))) {
    const int64_t middle = (n - 1) / 2;
    SetResultAs(l, 0, b.SliceDim(s.values, dim, middle, middle + 1));
    if (!whole) SetResultAs(l, 1, b.SliceDim(s.positions, dim, middle, middle + 1));
    return;
  }
  const Value nans = ReduceSum(l, b.Convert(b.IsNan(x), DType::kI32), {dim});
  const Value numbers = b.Sub(b.Like(nans, n), nans);
  Value place;
  if (ignore_nan) {
    place = b.Binary("shift_right_arithmetic", b.Max(b.Binary("subtract", numbers, 1), b.Like(nans, 0)), 1);
  } else {
    // NaN wins if there is one: the first NaN stands behind all numbers.
    place = b.Select(b.Cmp(Compare::kGt, nans, 0), numbers, b.Like(nans, (n - 1) / 2));
  }
  SetAtPlace(l, s, dim, place, !whole);
}
void MedianAll(Lowering& l) { Median(l, true, false); }
void MedianDim(Lowering& l) { Median(l, false, false); }
void NanMedianAll(Lowering& l) { Median(l, true, true); }
void NanMedianDim(Lowering& l) { Median(l, false, true); }

constexpr Rule kRules[] = {
    {.name = "sort", .lower = Sort},
    {.name = "sort.stable", .lower = SortStable},
    {.name = "topk", .lower = TopKRule},
    {.name = "kthvalue", .lower = KthValue},
    {.name = "median", .lower = MedianAll},
    {.name = "median.dim", .lower = MedianDim},
    {.name = "nanmedian", .lower = NanMedianAll},
    {.name = "nanmedian.dim", .lower = NanMedianDim},
};

}  // namespace

std::span<const Rule> SortRules() { return kRules; }

}  // namespace tpu::lower
