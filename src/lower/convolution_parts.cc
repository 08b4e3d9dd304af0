// SPDX-License-Identifier: Apache-2.0
// Windows: what of an image each tap of a kernel sees.
#include <algorithm>

#include "lower/convolution.h"

namespace tpu::lower {
namespace {

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

}  // namespace

bool Correlation::as_shifts(const pjrt::EngineProfile& p, int64_t terms) const {
  constexpr int64_t kMostTaps = 64;
  if (depthwise()) return p.depthwise_conv_as_shifts && taps() <= kMostTaps;
  return groups > 1 && terms <= p.convolution_shift_terms;
}

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

}  // namespace tpu::lower
