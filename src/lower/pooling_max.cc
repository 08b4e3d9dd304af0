// SPDX-License-Identifier: Apache-2.0
// Max pooling with indices: the first largest element of a window, in scan order. A NaN wins, the last one of several, as
// in ATen.
#include <algorithm>
#include <limits>

#include "lower/pooling.h"

namespace tpu::lower {
namespace {

// positions[tap][output]; outside of [0, in): padding.
using TapPositions = std::vector<Ints>;

TapPositions PositionsOf(const PoolWindow& w) {
  TapPositions taps;
  for (int64_t k = 0; k < w.kernel; ++k) {
    taps.emplace_back();
    for (int64_t i = 0; i < w.out; ++i) taps.back().push_back(i * w.stride - w.padding + k * w.dilation);
  }
  return taps;
}

// Windows of different lengths: the short ones repeat their last element, which changes neither maximum nor index.
TapPositions AdaptivePositions(int64_t in, int64_t out) {
  int64_t longest = 0;
  for (int64_t i = 0; i < out; ++i) longest = std::max(longest, AdaptiveEnd(i, in, out) - AdaptiveStart(i, in, out));
  TapPositions taps;
  for (int64_t k = 0; k < longest; ++k) {
    taps.emplace_back();
    for (int64_t i = 0; i < out; ++i)
      taps.back().push_back(std::min(AdaptiveStart(i, in, out) + k, AdaptiveEnd(i, in, out) - 1));
  }
  return taps;
}

// Windows of more taps are pooled one dimension after the other: programs stay short.
constexpr size_t kMostTaps = 32;

struct Pooled {
  Value value;
  Value index;    // s32, flat over the spatial dimensions done; invalid: none done
};

struct PoolDimension {
  int dim;
  TapPositions taps;
  int64_t inner;  // elements of the spatial dimensions behind it
};

size_t TapsOf(const std::vector<PoolDimension>& dimensions) {
  size_t n = 1;
  for (const PoolDimension& d : dimensions) n *= d.taps.size();
  return n;
}

// Where tap number `tap` lies along each dimension, in scan order.
std::vector<const Ints*> PositionsAt(const std::vector<PoolDimension>& dimensions, size_t tap) {
  std::vector<const Ints*> at(dimensions.size());
  for (size_t i = dimensions.size(); i-- > 0;) {
    at[i] = &dimensions[i].taps[tap % dimensions[i].taps.size()];
    tap /= dimensions[i].taps.size();
  }
  return at;
}

// Padding never wins, not even over an element that equals it: in its place the first tap stands for the first element
// inside the window.
Ints FirstInside(const TapPositions& taps, int64_t in) {
  Ints first = taps[0];
  for (size_t t = 0; t < taps.size(); ++t)
    for (size_t i = 0; i < first.size(); ++i)
      if (first[i] < 0 || first[i] >= in) first[i] = taps[t][i];
  return first;
}

// The index that a tap stands for, of the dims of `like`.
Value IndexAt(Builder& b, const Pooled& x, const std::vector<PoolDimension>& dimensions, size_t tap, Value like) {
  Value index = x.index;
  const std::vector<const Ints*> at = PositionsAt(dimensions, tap);
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const PoolDimension& d = dimensions[i];
    Ints list = tap ? *at[i] : FirstInside(d.taps, b.dim(x.value, d.dim));
    if (x.index.valid()) index = TakePositions(b, index, d.dim, list, b.Constant(DType::kI32, 0));
    for (int64_t& p : list) p *= d.inner;
    const Value row = b.ConstantList(TensorType(DType::kI32, {static_cast<int64_t>(list.size())}), list);
    const Value spread = b.BroadcastInDim(row, b.dims(like), {d.dim});
    index = index.valid() ? b.Add(index, spread) : spread;
  }
  return index;
}

// The largest first, then its index by comparing every tap with it: each is one vectorised loop, where carrying the index
// along with the maximum makes several slow ones (3 to 10 times, on every CPU plugin).
Pooled PoolOver(Builder& b, const Pooled& x, const std::vector<PoolDimension>& dimensions) {
  const size_t n = TapsOf(dimensions);
  const bool is_float = IsFloat(b.dtype(x.value));
  Values taps;
  for (size_t t = 0; t < n; ++t) {
    const std::vector<const Ints*> at = PositionsAt(dimensions, t);
    taps.push_back(x.value);
    for (size_t i = 0; i < dimensions.size(); ++i)
      taps[t] = TakePositions(b, taps[t], dimensions[i].dim, *at[i], LowestOf(b, b.dtype(x.value)));
  }
  Value best = taps[0];
  for (size_t t = 1; t < n; ++t) {
    const Value more = b.Cmp(Compare::kGt, taps[t], best);
    best = b.Select(is_float ? b.Or(more, b.IsNan(taps[t])) : more, taps[t], best);
  }
  best = b.OptimizationBarrier(best);
  Values at;
  for (size_t t = 0; t < n; ++t) at.push_back(IndexAt(b, x, dimensions, t, best));
  Value index = at.back();
  for (size_t t = n - 1; t-- > 0;) index = b.Select(b.Cmp(Compare::kEq, taps[t], best), at[t], index);
  for (size_t t = 0; t < n && is_float; ++t) index = b.Select(b.IsNan(taps[t]), at[t], index);
  return {best, index};
}

void MaxPool(Lowering& l, const std::vector<TapPositions>& taps) {
  Builder& b = l.b;
  const int n = static_cast<int>(taps.size());
  const auto [whole, first, last] = SpatialOf(l, 0, l.TypeOf(0).dtype, n);
  if (l.TypeOf(0).numel() > std::numeric_limits<int32_t>::max()) return l.Unsupported("max pooling of so many elements");
  std::vector<PoolDimension> dimensions(taps.size());
  int64_t inner = 1;
  for (int i = n - 1; i >= 0; --i) {
    dimensions[static_cast<size_t>(i)] = {first + i, taps[static_cast<size_t>(i)], inner};
    inner *= b.dim(whole, first + i);
  }
  Pooled pooled{whole, {}};
  if (TapsOf(dimensions) <= kMostTaps) {
    pooled = PoolOver(b, pooled, dimensions);
  } else {
    for (size_t i = dimensions.size(); i-- > 0;) pooled = PoolOver(b, pooled, {dimensions[i]});
  }
  l.SetResult(0, Logical(b, pooled.value, last));
  SetResultAs(l, 1, Logical(b, pooled.index, last));
}

// max_pool{2,3}d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)
template <int n>
void MaxPoolWithIndices(Lowering& l) {
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0), SetResultFill(l, 1, 0);
  std::vector<TapPositions> dimensions;
  for (const PoolWindow& w : PoolWindows(l, n, l.TypeOf(0), l.ResultType(0), {.kernel = 1, .dilation = 4}))
    dimensions.push_back(PositionsOf(w));
  MaxPool(l, dimensions);
}

// adaptive_max_pool{2,3}d(self, output_size)
template <int n>
void AdaptiveMaxPool(Lowering& l) {
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0), SetResultFill(l, 1, 0);
  const TensorType in = l.TypeOf(0), out = l.ResultType(0);
  std::vector<TapPositions> dimensions;
  for (int i = in.rank - n; i < in.rank; ++i) dimensions.push_back(AdaptivePositions(in.dims[i].size(), out.dims[i].size()));
  MaxPool(l, dimensions);
}

// ---- gradients

// Where no window overlaps another, every element looks at its own.
Value GradOfWindowsApart(Builder& b, Value grad, Value index, const std::vector<PoolWindow>& windows, int first, Ints to) {
  const int n = static_cast<int>(windows.size());
  std::vector<std::pair<Value, int>> spreads;
  int64_t inner = 1;
  for (int i = n - 1; i >= 0; --i) {
    const PoolWindow& w = windows[static_cast<size_t>(i)];
    Ints owner;
    for (int64_t p = 0; p < w.in; ++p) owner.push_back(p / w.kernel);
    // Elements behind the last window have none: an index that is not theirs.
    grad = TakePositions(b, grad, first + i, owner, b.Constant(b.dtype(grad), 0));
    index = TakePositions(b, index, first + i, owner, b.Constant(DType::kI32, -1));
    to[static_cast<size_t>(first + i)] = w.in;
    const Value along = b.Binary("multiply", b.Iota(TensorType(DType::kI32, {w.in}), 0), inner);
    spreads.emplace_back(along, first + i);
    inner *= w.in;
  }
  Value position = b.Constant(TensorType::Of(DType::kI32, to), 0);
  for (auto [along, dim] : spreads) position = b.Add(position, b.BroadcastInDim(along, to, {dim}));
  return b.Select(b.Cmp(Compare::kEq, index, position), grad, b.Like(grad, 0));
}

// Adds every gradient to the element its index names.
Value GradByScatter(Builder& b, Value grad, Value index, int n, const TensorType& to) {
  int64_t plane = 1;
  for (int i = to.rank - n; i < to.rank; ++i) plane *= to.dims[i].size();
  const int64_t planes = to.numel() / plane, outputs = b.type(grad).numel() / planes;
  const Value start = b.Binary("multiply", b.Iota(TensorType(DType::kI32, {planes, outputs}), 0), plane);
  const Value flat = b.Flatten(b.Add(b.Reshape(index, {planes, outputs}), start));
  const Value zeros = b.Constant(TensorType(b.dtype(grad), {to.numel()}), 0);
  return b.Reshape(ScatterAlong(b, zeros, 0, flat, b.Flatten(grad), AddTo()), Ints(to.begin(), to.end()));
}

void MaxPoolGrad(Lowering& l, int n, int indices, const std::vector<PoolWindow>& windows) {
  Builder& b = l.b;
  const TensorType to = l.ResultType(0);
  if (to.numel() == 0 || l.TypeOf(0).numel() == 0) return SetResultFill(l, 0, 0);
  if (to.numel() > std::numeric_limits<int32_t>::max()) return l.Unsupported("max pooling of so many elements");
  const DType acc = OpMathType(to.dtype);
  const bool apart =
      !windows.empty() && std::all_of(windows.begin(), windows.end(), [](const PoolWindow& w) { return w.apart(); });
  if (!apart) {
    const Value index = b.Convert(l.Tensor(indices), DType::kI32);
    return SetResultAs(l, 0, GradByScatter(b, l.Tensor(0, acc), index, n, to));
  }
  const auto [grad, first, last] = SpatialOf(l, 0, acc, n);
  Value index = b.Convert(l.Tensor(indices), DType::kI32);
  if (last) index = FeaturesToEnd(b, {index, true});
  SetResultAs(l, 0, Logical(b, GradOfWindowsApart(b, grad, index, windows, first, b.dims(grad)), last));
}

// max_pool{2,3}d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
template <int n>
void MaxPoolBackward(Lowering& l) {
  MaxPoolGrad(l, n, 7, PoolWindows(l, n, l.TypeOf(1), l.TypeOf(0), {.kernel = 2, .dilation = 5}));
}

// adaptive_max_pool{2,3}d_backward(grad_output, self, indices)
template <int n>
void AdaptiveMaxPoolBackward(Lowering& l) {
  MaxPoolGrad(l, n, 2, {});
}

constexpr Rule kRules[] = {
    {.name = "max_pool2d_with_indices", .lower = MaxPoolWithIndices<2>},
    {.name = "max_pool3d_with_indices", .lower = MaxPoolWithIndices<3>},
    {.name = "max_pool2d_with_indices_backward", .lower = MaxPoolBackward<2>},
    {.name = "max_pool3d_with_indices_backward", .lower = MaxPoolBackward<3>},
    {.name = "adaptive_max_pool2d", .lower = AdaptiveMaxPool<2>},
    {.name = "adaptive_max_pool3d", .lower = AdaptiveMaxPool<3>},
    {.name = "adaptive_max_pool2d_backward", .lower = AdaptiveMaxPoolBackward<2>},
    {.name = "adaptive_max_pool3d_backward", .lower = AdaptiveMaxPoolBackward<3>},
};

}  // namespace

std::span<const Rule> MaxPoolRules() { return kRules; }

}  // namespace tpu::lower
