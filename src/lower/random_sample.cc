// SPDX-License-Identifier: Apache-2.0
// Random integers, permutations and draws from a table of weights.
#include <algorithm>
#include <limits>

#include "lower/parts.h"
#include "lower/random.h"

namespace tpu::lower {
namespace {

Value Low32(Builder& b, Value u64) { return b.Binary("and", u64, int64_t{0xffffffff}); }
Value High32(Builder& b, Value u64) { return b.Binary("shift_right_logical", u64, 32); }
Value AsU64(Builder& b, Value u32) { return b.Convert(u32, DType::kU64); }

// High 64 bits of word * range, by 32-bit halves: a remainder by a 64-bit number takes a TPU compiler 15 s, and the
// spread of the error is better.
Value MultiplyHigh(Builder& b, const Lowering::RandomWords& words, uint64_t range) {
  const Value lo = AsU64(b, words.w[0]), hi = AsU64(b, words.w[1]);
  const Value range_lo = b.Like(lo, static_cast<int64_t>(range & 0xffffffff));
  const Value range_hi = b.Like(lo, static_cast<int64_t>(range >> 32));
  const Value lo_lo = b.Mul(lo, range_lo), lo_hi = b.Mul(lo, range_hi), hi_lo = b.Mul(hi, range_lo);
  const Value middle = b.Add(b.Add(High32(b, lo_lo), Low32(b, lo_hi)), Low32(b, hi_lo));
  const Value high = b.Add(b.Mul(hi, range_hi), b.Add(High32(b, lo_hi), High32(b, hi_lo)));
  return b.Add(high, High32(b, middle));
}

// Uniform integers in [0, range), ui32 or ui64; 0 stands for 2^64.
Value IntegersBelow(Builder& b, const Lowering::RandomWords& words, uint64_t range) {
  if (range - 1 <= 0xffffffffull) {
    if ((range & (range - 1)) == 0) return b.Binary("and", words.w[0], static_cast<int64_t>(range - 1));
    // (word * range) / 2^32.
    const Value wide =
        b.Mul(AsU64(b, words.w[0]), b.Constant(b.type(words.w[0]).With(DType::kU64), static_cast<int64_t>(range)));
    return b.Convert(High32(b, wide), DType::kU32);
  }
  if ((range & (range - 1)) == 0) {
    const Value high = b.Binary("shift_left", AsU64(b, words.w[1]), 32);
    const Value word = b.Or(high, AsU64(b, words.w[0]));
    return b.Binary("and", word, static_cast<int64_t>(range - 1));
  }
  return MultiplyHigh(b, words, range);
}

// Integers from `base` on, `range` of them (0: 2^64).
void Integers(Lowering& l, int64_t base, uint64_t range) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  if (type.numel() == 0) return SetResultFill(l, 0, 0);
  const Value k = IntegersBelow(b, l.Random(type.numel()), range);
  // In 32 bits where base and all values fit.
  const bool narrow = b.dtype(k) == DType::kU32 && range - 1 <= 0x7fffffff && base >= std::numeric_limits<int32_t>::min() &&
                      base <= std::numeric_limits<int32_t>::max() - static_cast<int64_t>(range - 1);
  const DType integer = narrow ? DType::kI32 : DType::kI64;
  SetResultAs(l, 0, b.Binary("add", b.Convert(k, integer), base));
}

// The largest integer up to which all integers are numbers of this type.
int64_t LargestOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 1;
    case DType::kBF16:
      return 1 << 8;
    case DType::kF16:
      return 1 << 11;
    case DType::kF32:
      return 1 << 24;
    case DType::kF64:
      return int64_t{1} << 53;
    default:
      return static_cast<int64_t>(~uint64_t{0} >> (64 - 8 * ItemSize(dtype) + IsSigned(dtype)));
  }
}

// random_(self)
void Random(Lowering& l) {
  const DType dtype = l.ResultType(0).dtype;
  Integers(l, 0, static_cast<uint64_t>(LargestOf(dtype)) + 1);
}
// random_.to(self, to)
void RandomTo(Lowering& l) {
  if (l.Int(1) <= 0) return l.Unsupported("an empty range");
  Integers(l, 0, static_cast<uint64_t>(l.Int(1)));
}
// random_.from(self, from, to)
void RandomFrom(Lowering& l) {
  const int64_t from = l.Int(1);
  const DType dtype = l.ResultType(0).dtype;
  if (!l.IsNone(2)) {
    if (l.Int(2) <= from) return l.Unsupported("an empty range");
    return Integers(l, from, static_cast<uint64_t>(l.Int(2)) - static_cast<uint64_t>(from));
  }
  Integers(l, from, static_cast<uint64_t>(LargestOf(dtype)) - static_cast<uint64_t>(from) + 1);
}

// randperm(n): positions sorted by random bits. Position and bits share one 64-bit number (SortPacked in sort.cc says why);
// that leaves 64 - log2(n) random bits, so that equal ones, which would keep the original order, are rare for every n.
void RandPerm(Lowering& l) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  const int64_t n = type.numel();
  if (n == 0) return SetResultFill(l, 0, 0);
  int64_t mask = 1;
  while (mask < n) mask *= 2;
  mask -= 1;
  const Lowering::RandomWords words = l.Random(n);
  const Value random = b.Or(b.Binary("shift_left", AsU64(b, words.w[0]), 32), AsU64(b, words.w[1]));
  const Value packed = b.Or(b.Binary("and", random, ~mask), b.Iota(TensorType(DType::kU64, {n}), 0));
  const Values sorted = b.Sort({b.BitcastConvert(packed, DType::kI64)}, 0, false,
                               [&](const Values& v) -> Values { return {b.Cmp(Compare::kLt, v[0], v[1])}; });
  SetResultAs(l, 0, sorted.empty() ? Value{} : b.Binary("and", sorted[0], mask));
}

// Draws with replacement: how many cumulated weights lie at or below a uniform share of the sum.
Value WithReplacement(Lowering& l, Value weights, Value totals, int64_t samples) {
  Builder& b = l.b;
  const int64_t rows = b.dim(weights, 0), n = b.dim(weights, 1);
  const DType acc = b.dtype(weights);
  const Value sums = PrefixScan(l, weights, 1, b.Constant(acc, 0), AddTo());
  const Value u = b.Reshape(UniformFrom(b, l.Random(rows * samples), acc), {rows, samples});
  const Value share = b.Mul(u, b.BroadcastInDim(totals, {rows, samples}, {0}));
  const Ints all{rows, samples, n};
  const Value below = b.Cmp(Compare::kLe, b.BroadcastInDim(sums, all, {0, 2}), b.BroadcastInDim(share, all, {0, 1}));
  const Value count = ReduceSum(l, b.Convert(below, DType::kI32), {2});
  // Rounding must not lead past the last category that has a weight.
  const TensorType index = TensorType::Of(DType::kI32, Ints{rows, n});
  const Value possible = b.Select(b.Cmp(Compare::kGt, weights, 0.0), b.Iota(index, 1), b.Constant(index, 0));
  const Value last = b.Reduce(possible, b.Constant(DType::kI32, 0), {1}, "maximum");
  return b.Min(count, b.BroadcastInDim(last, {rows, samples}, {0}));
}

// Draws without replacement: the largest of weight / exponential number, which is what drawing one by one comes to.
Value WithoutReplacement(Lowering& l, Value weights, int64_t samples) {
  Builder& b = l.b;
  const int64_t rows = b.dim(weights, 0), n = b.dim(weights, 1);
  const Value u = OpenUniformFrom(b, l.Random(rows * n), b.dtype(weights));
  const Value score = b.Div(weights, b.Reshape(b.Neg(b.Unary("log", u)), {rows, n}));
  if (samples == 1) return FirstPosition(b, score, ReduceMax(l, score, {1}, false), 1);
  const Value positions = b.Iota(TensorType(DType::kI32, {rows, n}), 1);
  const Values sorted =
      b.Sort({score, positions}, 1, true, [&](const Values& v) -> Values { return {b.Cmp(Compare::kGt, v[0], v[1])}; });
  return sorted.size() == 2 ? b.SliceDim(sorted[1], 1, 0, samples) : Value{};
}

// multinomial(self, num_samples, replacement)
void Multinomial(Lowering& l) {
  Builder& b = l.b;
  const TensorType self = l.TypeOf(0);
  const int64_t samples = l.Int(1), n = self.dims[self.rank - 1].size(), rows = self.rank == 1 ? 1 : self.dims[0].size();
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  if (n > (1 << 24) || (!l.Bool(2) && samples > n)) return l.Unsupported("this number of categories or samples");
  const DType acc = self.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const Value weights = b.Reshape(l.Tensor(0, acc), {rows, n});
  const bool replace = l.Bool(2) && samples > 1;
  const Value finite = b.Cmp(Compare::kLt, weights, std::numeric_limits<double>::infinity());
  const Value not_negative = b.Cmp(Compare::kGe, weights, 0.0);
  // ATen has two implementations, and each has its words.
  if (replace) {
    TrapIf(l, b.Not(not_negative), ErrorKind::kRuntime,
           "invalid multinomial distribution (encountering probability entry < 0)");
    TrapIf(l, b.Not(finite), ErrorKind::kRuntime,
           "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  } else {
    TrapIf(l, b.Not(b.And(finite, not_negative)), ErrorKind::kRuntime,
           "probability tensor contains either `inf`, `nan` or element < 0");
  }
  const Value totals = ReduceSum(l, weights, {1});
  TrapIf(l, b.Cmp(Compare::kLe, totals, 0.0), ErrorKind::kRuntime,
         "invalid multinomial distribution (sum of probabilities <= 0)");
  // One draw is the same either way.
  if (replace) return SetResultAs(l, 0, WithReplacement(l, weights, totals, samples));
  SetResultAs(l, 0, WithoutReplacement(l, weights, samples));
}

// rrelu_with_noise_functional(self, noise, lower, upper, training) -> (result, noise)
void RRelu(Lowering& l) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  const DType acc = OpMathType(type.dtype);
  const Value x = l.Tensor(0, acc), lower = l.Scalar(2, acc), upper = l.Scalar(3, acc);
  if (type.numel() == 0 || !l.Bool(4)) {
    const Value slope = b.Mul(b.Add(lower, upper), b.Constant(acc, 0.5));
    SetResultAs(l, 0, b.Select(b.Cmp(Compare::kLe, x, 0.0), b.Mul(x, b.BroadcastLike(slope, x)), x));
    return l.SetResult(1, l.Tensor(1));
  }
  const Value u = b.Reshape(UniformFrom(b, l.Random(type.numel()), acc), b.dims(x));
  const Value slope = b.Add(b.Mul(u, b.BroadcastLike(b.Sub(upper, lower), x)), b.BroadcastLike(lower, x));
  const Value noise = b.Select(b.Cmp(Compare::kLe, x, 0.0), slope, b.Like(x, 1.0));
  SetResultAs(l, 0, b.Mul(x, noise));
  SetResultAs(l, 1, noise);
}

constexpr Rule kRules[] = {
    {.name = "random_", .lower = Random, .random = true},
    {.name = "random", .lower = Random, .random = true},
    {.name = "random_.to", .lower = RandomTo, .random = true},
    {.name = "random.to", .lower = RandomTo, .random = true},
    {.name = "random_.from", .lower = RandomFrom, .random = true},
    {.name = "random.from", .lower = RandomFrom, .random = true},
    {.name = "randperm", .lower = RandPerm, .random = true},
    {.name = "randperm.generator", .lower = RandPerm, .random = true},
    {.name = "multinomial", .lower = Multinomial, .random = true},
    {.name = "rrelu_with_noise_functional", .lower = RRelu, .random = true},
};

}  // namespace

std::span<const Rule> SampleRules() { return kRules; }

}  // namespace tpu::lower
