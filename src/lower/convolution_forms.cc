// SPDX-License-Identifier: Apache-2.0
// The forms that a correlation and its gradients take; the engine profile says which are the fast ones.
#include <algorithm>

#include "lower/convolution.h"

namespace tpu::lower {
namespace {

DType Accumulator(Builder& b, Value x) { return OpMathType(b.dtype(x)); }

// Batch and features of x, w and y at these places, the spatial dimensions at the remaining ones.
hlo::ConvolutionDims DimsWith(int rank, Ints x, Ints w, Ints y) {
  const auto rest = [rank](const Ints& taken) { return OtherDims(rank, taken); };
  return {.input_batch = x[0],
          .input_feature = x[1],
          .kernel_input_feature = w[1],
          .kernel_output_feature = w[0],
          .output_batch = y[0],
          .output_feature = y[1],
          .input_spatial = rest(x),
          .kernel_spatial = rest(w),
          .output_spatial = rest(y)};
}

// x [N, C, spatial...] with kernel [O, C / groups, taps...], in the order the engine computes in.
Value Convolve(Lowering& l, const Correlation& c, const Image& x, Value kernel, const hlo::Window& window, bool last) {
  Builder& b = l.b;
  const int rank = static_cast<int>(c.x.size());
  const DType acc = Accumulator(b, kernel);
  if (!l.profile.convolution_features_last) {
    const hlo::ConvolutionDims dims = DimsWith(rank, {0, 1}, {0, 1}, {0, 1});
    return b.Convolution(x.value, kernel, dims, window, c.groups, 1, c.precision, acc);
  }
  Ints order;
  for (int i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  order.push_back(0);
  const hlo::ConvolutionDims dims = DimsWith(rank, {0, rank - 1}, {rank - 1, rank - 2}, {0, rank - 1});
  const Value y = b.Convolution(FeaturesToEnd(b, x), b.Transpose(kernel, order), dims, window, c.groups, 1, c.precision, acc);
  return FeaturesFromEnd(b, y, last);
}

// rows [M, K] for all N: [N, M, K].
Value ForEachImage(Builder& b, Value rows, int64_t images) {
  return b.BroadcastInDim(rows, {images, b.dim(rows, 0), b.dim(rows, 1)}, {1, 2});
}

// out[n, m, p] = sum over k of rows[m, k] * columns[n, k, p], in the memory order of columns.
Value ProductOfImages(Lowering& l, const Correlation& c, Value rows, const Image& columns, Ints to) {
  Builder& b = l.b;
  const DType acc = Accumulator(b, rows);
  const Ints dims = b.dims(columns.value);
  const int64_t positions = Product(Ints(dims.begin() + 2, dims.end()));
  to[1] = b.dim(rows, 0);
  if (columns.features_last || positions < to[1]) {
    const Value flat = b.Reshape(FeaturesToEnd(b, columns), {dims[0] * positions, dims[1]});
    const Value y = DotGeneral(l, flat, rows, {{}, {}, {1}, {1}}, c.precision, acc);
    Ints moved = to;
    std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
    return FeaturesFromEnd(b, b.Reshape(y, moved), columns.features_last);
  }
  const Value flat = b.Reshape(columns.value, {dims[0], dims[1], positions});
  const hlo::DotDims each{.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}};
  return b.Reshape(DotGeneral(l, ForEachImage(b, rows, dims[0]), flat, each, c.precision, acc), to);
}

Value PointwiseCorrelate(Lowering& l, const Correlation& c, const Image& x, Value w) {
  Builder& b = l.b;
  const Image seen{TapOf(b, c, x.value, 0), x.features_last};
  return ProductOfImages(l, c, b.Reshape(w, {c.w[0], c.w[1]}), seen, c.y);
}

Value PointwiseInputGrad(Lowering& l, const Correlation& c, const Image& y, Value w) {
  Builder& b = l.b;
  const Value rows = b.Transpose(b.Reshape(w, {c.w[0], c.w[1]}), {1, 0});
  const Value product = ProductOfImages(l, c, rows, y, c.y);
  Ints low(2, 0), high(2, 0), interior(2, 0);
  for (int64_t h : InputGradHigh(c)) {
    low.push_back(0);
    high.push_back(h);
  }
  for (int64_t s : c.stride) interior.push_back(s - 1);
  return b.Pad(product, b.Constant(b.dtype(product), 0), low, high, interior);
}

// Every window copied out: [N, taps * C, positions], then one product an image.
Value CorrelateByPatches(Lowering& l, const Correlation& c, Value x, Value w) {
  Builder& b = l.b;
  const Value padded = PadForWindows(b, c, x);
  Values patches;
  for (int64_t tap = 0; tap < c.taps(); ++tap) patches.push_back(TapOf(b, c, padded, tap));
  const Value rows = b.Transpose(b.Reshape(w, {c.w[0], c.w[1], c.taps()}), {0, 2, 1});
  return ProductOfImages(l, c, b.Reshape(rows, {c.w[0], c.taps() * c.w[1]}), {b.Concatenate(patches, 1)}, c.y);
}

using Form = Value (*)(Lowering&, const Correlation&, const Image&, Value, bool);

// One correlation a group, of `seen` (x or y) into the other one.
Value ByGroups(Lowering& l, const Correlation& c, const Image& seen, Value w, bool last, Form form) {
  Builder& b = l.b;
  Correlation one = c;
  one.groups = 1;
  one.x[1] = c.w[1];
  one.y[1] = one.w[0] = c.w[0] / c.groups;
  const int64_t features = b.dim(seen.value, 1) / c.groups;
  Values parts;
  for (int64_t g = 0; g < c.groups; ++g) {
    const Value part = b.SliceDim(seen.value, 1, g * features, (g + 1) * features);
    parts.push_back(form(l, one, {part, seen.features_last}, b.SliceDim(w, 0, g * one.w[0], (g + 1) * one.w[0]), last));
  }
  return b.Concatenate(parts, 1);
}

}  // namespace

Value TurnedKernel(Builder& b, const Correlation& c, Value w) {
  const int64_t g = c.groups, filters = c.w[0] / g, channels = c.w[1];
  const Value split = b.Transpose(b.Reshape(w, {g, filters, channels, c.taps()}), {0, 2, 1, 3});
  Ints to{g * channels, filters}, taps;
  to.insert(to.end(), c.w.begin() + 2, c.w.end());
  for (size_t i = 2; i < to.size(); ++i) taps.push_back(static_cast<int64_t>(i));
  return b.Reverse(b.Reshape(split, to), taps);
}

Value Correlate(Lowering& l, const Correlation& c, const Image& x, Value w, bool last) {
  Builder& b = l.b;
  const pjrt::EngineProfile& p = l.profile;
  if (c.as_shifts(p, c.terms())) return ShiftedCorrelate(l, c, x, w, last);
  if (c.groups > 1 && c.groups <= p.convolution_split_groups) return ByGroups(l, c, x, w, last, Correlate);
  if (p.pointwise_conv_as_dot && c.pointwise()) return PointwiseCorrelate(l, c, x, w);
  if (c.groups == 1 && c.taps() * c.w[1] <= p.convolution_patch_terms) return CorrelateByPatches(l, c, x.value, w);
  hlo::Window window;
  window.strides = c.stride;
  window.window_dilations = c.dilation;
  window.low = window.high = c.padding;
  // As a gradient of a transposed convolution with output padding, y may be smaller than what the windows make.
  return b.Slice(Convolve(l, c, x, w, window, last), Ints(c.y.size(), 0), c.y);
}

Value CorrelateInputGrad(Lowering& l, const Correlation& c, const Image& y, Value w, bool last) {
  Builder& b = l.b;
  const pjrt::EngineProfile& p = l.profile;
  if (c.as_shifts(p, c.terms_of_x())) return ShiftedInputGrad(l, c, y, w, last);
  if (c.groups > 1 && c.groups <= p.convolution_split_groups) return ByGroups(l, c, y, w, last, CorrelateInputGrad);
  if (p.pointwise_conv_as_dot && c.pointwise()) return PointwiseInputGrad(l, c, y, w);
  // Engines have slow loops for negative padding: what is too much is cut off afterwards.
  Ints low = InputGradLow(c), high = InputGradHigh(c), start(2, 0), limit{c.x[0], c.x[1]};
  for (size_t i = 0; i < c.spatial(); ++i) {
    start.push_back(std::max<int64_t>(-low[i], 0));
    limit.push_back(start.back() + c.x[i + 2]);
    low[i] = std::max<int64_t>(low[i], 0);
    high[i] = std::max<int64_t>(high[i], 0);
  }
  hlo::Window window;
  window.base_dilations = c.stride;
  window.window_dilations = c.dilation;
  window.low = low;
  window.high = high;
  return b.Slice(Convolve(l, c, y, TurnedKernel(b, c, w), window, last), start, limit);
}

}  // namespace tpu::lower
