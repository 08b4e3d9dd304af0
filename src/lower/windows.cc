// SPDX-License-Identifier: Apache-2.0
#include "lower/windows.h"

#include <algorithm>

namespace tpu::lower {
namespace {

// Terms an output has from which on one gather and one reduction replace a chain of additions.
constexpr size_t kLongChain = 16;

bool EvenlySpaced(const Ints& p, int64_t* step) {
  *step = p.size() > 1 ? p[1] - p[0] : 1;
  for (size_t i = 1; i < p.size(); ++i)
    if (p[i] - p[i - 1] != *step) return false;
  return *step > 0;
}

// 0 0 0 1 1 1 2 2: how often each, or 0.
int64_t TimesRepeated(const Ints& p) {
  int64_t times = 0;
  while (times < static_cast<int64_t>(p.size()) && p[static_cast<size_t>(times)] == 0) ++times;
  for (size_t i = 0; i < p.size() && times; ++i)
    if (p[i] != static_cast<int64_t>(i) / times) return 0;
  return times;
}

Value Spaced(Builder& b, Value x, int dim, const Ints& p, int64_t step, Value fill) {
  const int64_t size = b.dim(x, dim);
  Ints low(static_cast<size_t>(b.rank(x)), 0), high = low;
  low[static_cast<size_t>(dim)] = std::max<int64_t>(-p.front(), 0);
  high[static_cast<size_t>(dim)] = std::max<int64_t>(p.back() - (size - 1), 0);
  const int64_t first = p.front() + low[static_cast<size_t>(dim)];
  return b.SliceDim(b.Pad(x, fill, low, high), dim, first, first + (p.back() - p.front()) + 1, step);
}

Value Repeated(Builder& b, Value x, int dim, int64_t times, int64_t count, Value fill) {
  const auto at = static_cast<size_t>(dim);
  Ints behind(static_cast<size_t>(b.rank(x)), 0);
  behind[at] = (count + times - 1) / times - b.dim(x, dim);
  x = b.Pad(x, fill, Ints(behind.size(), 0), behind);
  Ints dims = b.dims(x), split = dims, from;
  split.insert(split.begin() + dim + 1, times);
  for (int64_t i = 0; i < static_cast<int64_t>(split.size()); ++i)
    if (i != dim + 1) from.push_back(i);
  dims[at] *= times;
  return b.SliceDim(b.Reshape(b.BroadcastInDim(x, split, from), dims), dim, 0, count);
}

Value Along(Builder& b, Value list, Value like, int dim) { return b.BroadcastInDim(list, b.dims(like), {dim}); }

// The sum of `count` neighbours, without a chain.
Value SumOfNeighbours(Lowering& l, Value x, int dim, int64_t count) {
  Ints split = l.b.dims(x);
  split[static_cast<size_t>(dim)] /= count;
  split.insert(split.begin() + dim + 1, count);
  return ReduceSum(l, l.b.Reshape(x, split), {dim + 1});
}

// Term number j of every output.
Value OneOfEach(Builder& b, Value x, int dim, const Terms& terms, size_t j) {
  Ints positions;
  std::vector<double> weights;
  bool weighted = false, missing = false;
  for (const auto& list : terms) {
    const bool has = j < list.size();
    // A missing term takes the place that keeps the spacing, if it can.
    const int64_t guess = positions.empty() ? 0 : positions.back();
    positions.push_back(has ? list[j].source : guess);
    weights.push_back(has ? list[j].weight : 0);
    weighted = weighted || (has && list[j].weight != 1);
    missing = missing || !has;
  }
  const Value zero = b.Constant(b.dtype(x), 0);
  Value taken = TakePositions(b, x, dim, positions, zero);
  const int64_t n = static_cast<int64_t>(terms.size());
  if (weighted) taken = b.Mul(taken, Along(b, b.ConstantList(TensorType(b.dtype(x), {n}), weights), taken, dim));
  if (!missing) return taken;
  Ints has;
  for (const auto& list : terms) has.push_back(j < list.size());
  return b.Select(Along(b, b.ConstantList(TensorType(DType::kBool, {n}), has), taken, dim), taken, b.Like(taken, 0));
}

bool AreNeighbours(const Terms& terms, int64_t size) {
  const size_t count = terms[0].size();
  if (static_cast<int64_t>(count * terms.size()) != size) return false;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].size() != count) return false;
    for (size_t j = 0; j < count; ++j)
      if (terms[i][j].source != static_cast<int64_t>(i * count + j) || terms[i][j].weight != terms[0][0].weight) return false;
  }
  return true;
}

}  // namespace

Value TakePositions(Builder& b, Value x, int dim, const Ints& positions, Value fill) {
  int64_t step;
  if (EvenlySpaced(positions, &step)) return Spaced(b, x, dim, positions, step, fill);
  if (const int64_t times = TimesRepeated(positions))
    return Repeated(b, x, dim, times, static_cast<int64_t>(positions.size()), fill);
  Ints inside = positions, is_inside;
  bool all = true;
  for (int64_t& p : inside) {
    const int64_t clamped = std::clamp<int64_t>(p, 0, b.dim(x, dim) - 1);
    is_inside.push_back(p == clamped);
    all = all && p == clamped;
    p = clamped;
  }
  const int64_t n = static_cast<int64_t>(inside.size());
  const Value taken = TakeAlong(b, x, dim, b.ConstantList(TensorType(DType::kI32, {n}), inside));
  if (all) return taken;
  const Value mask = Along(b, b.ConstantList(TensorType(DType::kBool, {n}), is_inside), taken, dim);
  return b.Select(mask, taken, b.BroadcastLike(fill, taken));
}

Value Resample(Lowering& l, Value x, int dim, const Terms& terms) {
  Builder& b = l.b;
  size_t most = 0;
  for (const auto& list : terms) most = std::max(most, list.size());
  if (most >= kLongChain && AreNeighbours(terms, b.dim(x, dim))) {
    const Value sum = SumOfNeighbours(l, x, dim, static_cast<int64_t>(most));
    return terms[0][0].weight == 1 ? sum : b.Mul(sum, b.Like(sum, terms[0][0].weight));
  }
  Value sum;
  for (size_t j = 0; j < most; ++j) {
    const Value one = OneOfEach(b, x, dim, terms, j);
    sum = sum.valid() ? b.Add(sum, one) : one;
  }
  if (sum.valid()) return sum;
  Ints dims = b.dims(x);
  dims[static_cast<size_t>(dim)] = static_cast<int64_t>(terms.size());
  return b.Constant(TensorType::Of(b.dtype(x), dims), 0);
}

Terms Transposed(const Terms& terms, int64_t sources) {
  Terms out(static_cast<size_t>(sources));
  for (size_t i = 0; i < terms.size(); ++i)
    for (const Term& t : terms[i]) out[static_cast<size_t>(t.source)].push_back({static_cast<int64_t>(i), t.weight});
  return out;
}

SpatialView SpatialOf(Lowering& l, int i, DType dtype, int n) {
  const int rank = l.TypeOf(i).rank;
  const Image image = rank == n + 2 ? ImageOf(l, i, dtype) : Image{l.Tensor(i, dtype)};
  if (image.features_last) return {FeaturesToEnd(l.b, image), 1, true};
  return {image.value, rank - n, false};
}

Value Logical(Builder& b, Value x, bool features_last) { return features_last ? FeaturesFromEnd(b, x, true) : x; }

int64_t AdaptiveStart(int64_t i, int64_t in, int64_t out) { return i * in / out; }
int64_t AdaptiveEnd(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

}  // namespace tpu::lower
