// SPDX-License-Identifier: Apache-2.0
// One correlation y = x * w and its two gradients. A convolution is the correlation, a transposed convolution is its
// gradient with respect to x; so three functions serve all five programs.
#pragma once
#include "lower/image.h"

namespace tpu::lower {

struct Correlation {
  Ints x, y, w;                       // sizes: [N, C, spatial...], [N, O, spatial...], [O, C / groups, taps...]
  Ints stride, padding, dilation;     // one for each spatial dimension
  int64_t groups = 1;
  hlo::Precision precision = hlo::Precision::kHighest;

  size_t spatial() const { return x.size() - 2; }
  int64_t taps() const { return Product(Ints(w.begin() + 2, w.end())); }
  bool depthwise() const { return groups > 1 && groups == x[1]; }
  // A matrix product at every position.
  bool pointwise() const;
};

// Results have their logical order; `last` says in which memory order they go out. Operands are of one float type,
// results of the type that sums are kept in. Requires: no size is 0.
Value Correlate(Lowering& l, const Correlation& c, const Image& x, Value w, bool last);
Value CorrelateInputGrad(Lowering& l, const Correlation& c, const Image& y, Value w, bool last);
Value CorrelateWeightGrad(Lowering& l, const Correlation& c, const Image& x, const Image& y);

// ---- between the files of the family
// x with zeros around it, so that every window lies inside.
Value PadForWindows(Builder& b, const Correlation& c, Value x);
// What tap number `tap` of the window sees at each output position: [N, C, output spatial...] of a padded x.
Value TapOf(Builder& b, const Correlation& c, Value padded, int64_t tap);
// Depthwise, as one multiplication and addition a tap.
Value DepthwiseCorrelate(Builder& b, const Correlation& c, Value x, Value w);
Value DepthwiseInputGrad(Builder& b, const Correlation& c, Value y, Value w);
Value DepthwiseWeightGrad(Lowering& l, const Correlation& c, Value x, Value y);
// Padding in front of and behind the stretched y whose correlation with the turned w is the gradient of x. May be < 0.
Ints InputGradLow(const Correlation& c);
Ints InputGradHigh(const Correlation& c);

}  // namespace tpu::lower
