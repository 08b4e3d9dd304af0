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
  // Multiplications for an element of y and of x, and whether the engine is faster with one of images for each.
  int64_t terms() const { return taps() * w[1]; }
  int64_t terms_of_x() const { return taps() * (w[0] / groups); }
  bool as_shifts(const pjrt::EngineProfile& p, int64_t terms) const;
  // A matrix product at every position.
  bool pointwise() const;
};

// Results have their logical order; `last` says in which memory order they go out. Operands are of one float type,
// results of the type that sums are kept in. Requires: no size is 0.
Value Correlate(Lowering& l, const Correlation& c, const Image& x, Value w, bool last);
Value CorrelateInputGrad(Lowering& l, const Correlation& c, const Image& y, Value w, bool last);
Value CorrelateWeightGrad(Lowering& l, const Correlation& c, const Image& x, const Image& y);

// ---- between the files of the family
inline Ints Spatial(const Ints& sizes) { return Ints(sizes.begin() + 2, sizes.end()); }
// x with zeros around it, so that every window lies inside.
Value PadForWindows(Builder& b, const Correlation& c, Value x);
// What tap number `tap` of the window sees at each output position: [N, C, output spatial...] of a padded x.
Value TapOf(Builder& b, const Correlation& c, Value padded, int64_t tap);
// The kernel that turns gradients of y into those of x: input and output features exchanged within each group, taps
// reversed.
Value TurnedKernel(Builder& b, const Correlation& c, Value w);
// One multiplication and addition of images a tap and a channel of a group.
Value ShiftedCorrelate(Lowering& l, const Correlation& c, const Image& x, Value w, bool last);
Value ShiftedInputGrad(Lowering& l, const Correlation& c, const Image& y, Value w, bool last);
Value ShiftedWeightGrad(Lowering& l, const Correlation& c, const Image& x, const Image& y);
// Padding in front of and behind the stretched y whose correlation with the turned w is the gradient of x. May be < 0.
Ints InputGradLow(const Correlation& c);
Ints InputGradHigh(const Correlation& c);

}  // namespace tpu::lower
