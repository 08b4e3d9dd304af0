// SPDX-License-Identifier: Apache-2.0
// Windows, memory orders, and depthwise correlations written out tap by tap.
#include <algorithm>

#include "lower/convolution.h"

namespace tpu::lower {
namespace {

Ints Spatial(const Ints& sizes) { return Ints(sizes.begin() + 2, sizes.end()); }

// Position of tap number `tap` in each spatial dimension.
Ints TapPosition(const Correlation& c, int64_t tap) {
  Ints at(c.spatial());
  for (size_t i = at.size(); i-- > 0;) {
    at[i] = tap % c.w[i + 2];
    tap /= c.w[i + 2];
  }
  return at;
}

Value SliceAt(Builder& b, Value x, const Ints& start, const Ints& stride, const Ints& count) {
  Ints low(2, 0), high{b.dim(x, 0), b.dim(x, 1)}, step(2, 1);
  for (size_t i = 0; i < start.size(); ++i) {
    low.push_back(start[i]);
    high.push_back(start[i] + (count[i] - 1) * stride[i] + 1);
    step.push_back(stride[i]);
  }
  return b.Slice(x, low, high, step);
}

// Each channel as often as it has filters.
Value RepeatChannels(Builder& b, Value x, int64_t times) {
  if (times == 1) return x;
  Ints dims = b.dims(x), order{0, 1};
  dims.insert(dims.begin() + 2, times);
  for (int64_t i = 3; i < static_cast<int64_t>(dims.size()); ++i) order.push_back(i);
  Ints joined = b.dims(x);
  joined[1] *= times;
  return b.Reshape(b.BroadcastInDim(x, dims, order), joined);
}

// w[:, 0, tap] over [N, O, spatial...].
Value TapWeight(Builder& b, Value w, int64_t tap, const Ints& to) {
  const int64_t filters = b.dim(w, 0);
  const Value flat = b.Reshape(w, {filters, b.type(w).numel() / filters});
  return b.BroadcastInDim(b.Reshape(b.SliceDim(flat, 1, tap, tap + 1), {filters}), to, {1});
}

}  // namespace

bool Correlation::pointwise() const {
  return taps() == 1 && groups == 1 && std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; });
}

Value PadForWindows(Builder& b, const Correlation& c, Value x) {
  Ints around(2, 0);
  around.insert(around.end(), c.padding.begin(), c.padding.end());
  return b.Pad(x, b.Constant(b.dtype(x), 0), around, around);
}

Value TapOf(Builder& b, const Correlation& c, Value padded, int64_t tap) {
  Ints start = TapPosition(c, tap);
  for (size_t i = 0; i < start.size(); ++i) start[i] *= c.dilation[i];
  return SliceAt(b, padded, start, c.stride, Spatial(c.y));
}

Ints InputGradLow(const Correlation& c) {
  Ints low;
  for (size_t i = 0; i < c.spatial(); ++i) low.push_back(c.dilation[i] * (c.w[i + 2] - 1) - c.padding[i]);
  return low;
}

Ints InputGradHigh(const Correlation& c) {
  Ints high;
  for (size_t i = 0; i < c.spatial(); ++i) {
    const int64_t stretched = (c.y[i + 2] - 1) * c.stride[i] + 1;
    high.push_back(c.x[i + 2] + c.padding[i] - stretched);
  }
  return high;
}

Value DepthwiseCorrelate(Builder& b, const Correlation& c, Value x, Value w) {
  const Value padded = PadForWindows(b, c, RepeatChannels(b, x, c.w[0] / c.groups));
  Value sum;
  for (int64_t tap = 0; tap < c.taps(); ++tap) {
    const Value product = b.Mul(TapOf(b, c, padded, tap), TapWeight(b, w, tap, c.y));
    sum = tap ? b.Add(sum, product) : product;
  }
  return sum;
}

Value DepthwiseInputGrad(Builder& b, const Correlation& c, Value y, Value w) {
  Ints low(2, 0), high(2, 0), interior(2, 0), to = c.x;
  to[1] = c.y[1];
  const Ints before = InputGradLow(c), after = InputGradHigh(c);
  for (size_t i = 0; i < c.spatial(); ++i) {
    low.push_back(before[i]);
    high.push_back(after[i]);
    interior.push_back(c.stride[i] - 1);
  }
  const Value padded = b.Pad(y, b.Constant(b.dtype(y), 0), low, high, interior);
  Value sum;
  for (int64_t tap = 0; tap < c.taps(); ++tap) {
    Ints start = TapPosition(c, tap);
    for (size_t i = 0; i < start.size(); ++i) start[i] *= c.dilation[i];
    const Value product =
        b.Mul(SliceAt(b, padded, start, Ints(c.spatial(), 1), Spatial(c.x)), TapWeight(b, w, c.taps() - 1 - tap, to));
    sum = tap ? b.Add(sum, product) : product;
  }
  const int64_t filters = c.w[0] / c.groups;
  if (filters == 1) return sum;
  Ints split = to;
  split[1] = c.groups;
  split.insert(split.begin() + 2, filters);
  return b.Reduce(b.Reshape(sum, split), b.Constant(b.dtype(sum), 0), {2}, "add");
}

Value DepthwiseWeightGrad(Lowering& l, const Correlation& c, Value x, Value y) {
  Builder& b = l.b;
  const Value padded = PadForWindows(b, c, RepeatChannels(b, x, c.w[0] / c.groups));
  Values taps;
  for (int64_t tap = 0; tap < c.taps(); ++tap) {
    const Value product = b.Mul(TapOf(b, c, padded, tap), y);
    // Rows first: a reduction of neighbours is vectorised, one of all dimensions but the second is not.
    const Value rows = ReduceSum(l, product, OtherDims(b.rank(y), {0, 1}));
    taps.push_back(b.Reshape(ReduceSum(l, rows, {0}), {c.w[0], 1}));
  }
  return b.Reshape(b.Concatenate(taps, 1), c.w);
}

}  // namespace tpu::lower
