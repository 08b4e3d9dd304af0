// SPDX-License-Identifier: Apache-2.0
// Max pooling with indices, one dimension after the other from the last: the first largest element of the best row is
// the first largest of the window. A NaN wins, the last one of several, as in ATen.
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
    for (int64_t i = 0; i < out; ++i) taps.back().push_back(std::min(AdaptiveStart(i, in, out) + k, AdaptiveEnd(i, in, out) - 1));
  }
  return taps;
}

struct Best {
  Value value;
  Value index;  // s32, flat over the spatial dimensions done; invalid: none done
};

// One tap along `dim`. `inner`: elements of the spatial dimensions already done.
Best Tap(Builder& b, const Best& x, int dim, const Ints& positions, int64_t inner) {
  const Value value = TakePositions(b, x.value, dim, positions, LowestOf(b, b.dtype(x.value)));
  Ints flat = positions;
  for (int64_t& p : flat) p *= inner;
  const TensorType type(DType::kI32, {static_cast<int64_t>(flat.size())});
  Value index = b.BroadcastInDim(b.ConstantList(type, flat), b.dims(value), {dim});
  if (x.index.valid()) index = b.Add(index, TakePositions(b, x.index, dim, positions, b.Constant(DType::kI32, 0)));
  return {value, index};
}

// Outputs for which this tap is the first that is not padding; empty when there are none. It counts even if it is the
// identity: padding never wins.
Ints FirstInside(const TapPositions& taps, size_t tap, int64_t in) {
  const auto inside = [&](size_t t, size_t i) { return taps[t][i] >= 0 && taps[t][i] < in; };
  Ints first;
  bool any = false;
  for (size_t i = 0; i < taps[tap].size(); ++i) {
    bool is = inside(tap, i);
    for (size_t t = 0; t < tap && is; ++t) is = !inside(t, i);
    first.push_back(is);
    any = any || is;
  }
  return any ? first : Ints{};
}

Best PoolAlong(Builder& b, const Best& x, int dim, const TapPositions& taps, int64_t inner) {
  const int64_t in = b.dim(x.value, dim);
  Best best = Tap(b, x, dim, taps[0], inner);
  for (size_t t = 1; t < taps.size(); ++t) {
    const Best next = Tap(b, x, dim, taps[t], inner);
    Value better = b.Cmp(Compare::kGt, next.value, best.value);
    if (IsFloat(b.dtype(x.value))) better = b.Or(better, b.IsNan(next.value));
    if (const Ints first = FirstInside(taps, t, in); !first.empty()) {
      const Value list = b.ConstantList(TensorType(DType::kBool, {static_cast<int64_t>(first.size())}), first);
      better = b.Or(better, b.BroadcastInDim(list, b.dims(next.value), {dim}));
    }
    best.value = b.Select(better, next.value, best.value);
    best.index = b.Select(better, next.index, best.index);
  }
  return best;
}

void MaxPool(Lowering& l, const std::vector<TapPositions>& dimensions) {
  Builder& b = l.b;
  Best best{l.Tensor(0), {}};
  const int n = static_cast<int>(dimensions.size()), first = b.rank(best.value) - n;
  if (l.TypeOf(0).numel() > std::numeric_limits<int32_t>::max()) return l.Unsupported("max pooling of so many elements");
  int64_t inner = 1;
  for (int i = n - 1; i >= 0; --i) {
    const int64_t size = b.dim(best.value, first + i);
    best = PoolAlong(b, best, first + i, dimensions[static_cast<size_t>(i)], inner);
    inner *= size;
  }
  l.SetResult(0, best.value);
  SetResultAs(l, 1, best.index);
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
Value GradOfWindowsApart(Builder& b, Value grad, Value index, const std::vector<PoolWindow>& windows, const TensorType& to) {
  const int n = static_cast<int>(windows.size()), first = to.rank - n;
  Value position;
  int64_t inner = 1;
  for (int i = n - 1; i >= 0; --i) {
    const PoolWindow& w = windows[static_cast<size_t>(i)];
    Ints owner;
    for (int64_t p = 0; p < w.in; ++p) owner.push_back(p / w.kernel);
    // Elements behind the last window have none: an index that is not theirs.
    grad = TakePositions(b, grad, first + i, owner, b.Constant(b.dtype(grad), 0));
    index = TakePositions(b, index, first + i, owner, b.Constant(DType::kI32, -1));
    const TensorType type = TensorType::Scalar(DType::kI32);
    TensorType row = type;
    row.Append(w.in);
    const Value along = b.Binary("multiply", b.Iota(row, 0), inner);
    const Value spread = b.BroadcastInDim(along, Ints(to.begin(), to.end()), {first + i});
    position = position.valid() ? b.Add(position, spread) : spread;
    inner *= w.in;
  }
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
  const Value grad = l.Tensor(0, OpMathType(to.dtype)), index = b.Convert(l.Tensor(indices), DType::kI32);
  const bool apart = !windows.empty() && std::all_of(windows.begin(), windows.end(), [](const PoolWindow& w) { return w.apart(); });
  SetResultAs(l, 0, apart ? GradOfWindowsApart(b, grad, index, windows, to) : GradByScatter(b, grad, index, n, to));
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
