// SPDX-License-Identifier: Apache-2.0
// The gradient of a correlation's weight: a correlation of x with y where batch and features have changed places.
#include <algorithm>

#include "lower/convolution.h"

namespace tpu::lower {
namespace {

// A part of the sum: images [image, image_end), rows [row, row_end) of y.
struct Part {
  int64_t image, image_end, row, row_end;
};

// Engines slow down on long sums (profile): they are cut by images first, then by rows.
std::vector<Part> PartsOf(const Correlation& c, const pjrt::EngineProfile& p) {
  const int64_t images = p.weight_grad_images && c.y[0] >= 2 * p.weight_grad_images ? p.weight_grad_images : c.y[0];
  const int64_t rows = c.y[2], row_terms = images * Product(c.y) / (c.y[0] * c.y[1] * rows);
  int64_t each = rows;
  if (p.weight_grad_terms) each = std::clamp<int64_t>(p.weight_grad_terms / row_terms, 1, rows);
  std::vector<Part> parts;
  for (int64_t image = 0; image < c.y[0]; image += images)
    for (int64_t row = 0; row < rows; row += each)
      parts.push_back({image, std::min(image + images, c.y[0]), row, std::min(row + each, rows)});
  return parts;
}

// What of x the rows of a part see, and the padding that this leaves.
Value CutX(Builder& b, const Correlation& c, const Part& part, Value x, Ints* low, Ints* high) {
  Ints start{part.image, 0}, limit{part.image_end, c.x[1]};
  for (size_t i = 0; i < c.spatial(); ++i) {
    const int64_t size = c.x[i + 2];
    const int64_t first = i ? 0 : part.row, end = i ? c.y[i + 2] : part.row_end;
    const int64_t from = first * c.stride[i] - c.padding[i];
    const int64_t to = (end - 1) * c.stride[i] + c.dilation[i] * (c.w[i + 2] - 1) + 1 - c.padding[i];
    start.push_back(std::clamp<int64_t>(from, 0, size));
    limit.push_back(std::clamp<int64_t>(to, start.back(), size));
    low->push_back(start.back() - from);
    high->push_back(to - limit.back());
  }
  return b.Slice(x, start, limit);
}

Value CutY(Builder& b, const Correlation& c, const Part& part, Value y) {
  Ints start(c.y.size(), 0), limit = c.y;
  start[0] = part.image;
  limit[0] = part.image_end;
  start[2] = part.row;
  limit[2] = part.row_end;
  return b.Slice(y, start, limit);
}

// [C / groups, taps..., O].
Value PartSum(Lowering& l, const Correlation& c, const Part& part, const Image& x, const Image& y) {
  Builder& b = l.b;
  hlo::Window window;
  window.strides = c.dilation;
  window.window_dilations = c.stride;
  Value cut_x = CutX(b, c, part, x.value, &window.low, &window.high), cut_y = CutY(b, c, part, y.value);
  const int64_t rank = b.rank(cut_x);
  const DType acc = OpMathType(b.dtype(cut_y));
  if (b.type(cut_x).numel() == 0) {  // these rows see nothing but padding
    Ints sizes(c.w.begin() + 1, c.w.end());
    sizes.push_back(c.w[0]);
    return b.Constant(TensorType::Of(acc, sizes), 0);
  }
  hlo::ConvolutionDims dims{1, 0, 0, 1, 0, rank - 1, {}, {}, {}};
  for (int64_t i = 2; i < rank; ++i) {
    dims.input_spatial.push_back(i);
    dims.kernel_spatial.push_back(i);
    dims.output_spatial.push_back(i - 1);
  }
  // In the order their memory has: the transpositions cancel.
  if (x.features_last) {
    cut_x = FeaturesToEnd(b, {cut_x, true});
    dims.input_batch = rank - 1;
    for (int64_t& d : dims.input_spatial) --d;
  }
  if (y.features_last) {
    cut_y = FeaturesToEnd(b, {cut_y, true});
    dims.kernel_output_feature = rank - 1;
    for (int64_t& d : dims.kernel_spatial) --d;
  }
  return b.Convolution(cut_x, cut_y, dims, window, 1, c.groups, c.precision, acc);
}

Value WeightGradByParts(Lowering& l, const Correlation& c, const Image& x, const Image& y) {
  Builder& b = l.b;
  Value sum;
  for (const Part& part : PartsOf(c, l.profile)) {
    const Value one = PartSum(l, c, part, x, y);
    sum = sum.valid() ? b.Add(sum, one) : one;
  }
  Ints order{static_cast<int64_t>(c.w.size()) - 1};
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(c.w.size()); ++i) order.push_back(i);
  return b.Transpose(sum, order);
}

Value PointwiseWeightGrad(Lowering& l, const Correlation& c, const Image& x, const Image& y) {
  Builder& b = l.b;
  const DType acc = OpMathType(b.dtype(y.value));
  const Image seen{TapOf(b, c, x.value, 0), x.features_last};
  const int64_t positions = Product(c.y) / (c.y[0] * c.y[1]);
  if (x.features_last && y.features_last) {
    const Value rows = b.Reshape(FeaturesToEnd(b, y), {c.y[0] * positions, c.y[1]});
    const Value columns = b.Reshape(FeaturesToEnd(b, seen), {c.y[0] * positions, c.x[1]});
    return b.Reshape(DotGeneral(l, rows, columns, {{}, {}, {0}, {0}}, c.precision, acc), c.w);
  }
  const Value rows = b.Reshape(y.value, {c.y[0], c.y[1], positions});
  const Value columns = b.Reshape(seen.value, {c.y[0], c.x[1], positions});
  const hlo::DotDims each{.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {2}};
  return b.Reshape(ReduceSum(l, DotGeneral(l, rows, columns, each, c.precision, acc), {0}), c.w);
}

// One correlation a group.
Value WeightGradByGroups(Lowering& l, const Correlation& c, const Image& x, const Image& y) {
  Builder& b = l.b;
  Correlation one = c;
  one.groups = 1;
  one.x[1] = c.w[1];
  one.y[1] = one.w[0] = c.w[0] / c.groups;
  Values parts;
  for (int64_t g = 0; g < c.groups; ++g) {
    const Value of_x = b.SliceDim(x.value, 1, g * one.x[1], (g + 1) * one.x[1]);
    const Value of_y = b.SliceDim(y.value, 1, g * one.y[1], (g + 1) * one.y[1]);
    parts.push_back(CorrelateWeightGrad(l, one, {of_x, x.features_last}, {of_y, y.features_last}));
  }
  return b.Concatenate(parts, 0);
}

}  // namespace

Value CorrelateWeightGrad(Lowering& l, const Correlation& c, const Image& x, const Image& y) {
  const pjrt::EngineProfile& p = l.profile;
  if (c.as_shifts(p, c.terms())) return ShiftedWeightGrad(l, c, x, y);
  if (p.depthwise_conv_as_shifts && c.groups > 1) return WeightGradByGroups(l, c, x, y);
  if (p.pointwise_conv_as_dot && c.pointwise()) return PointwiseWeightGrad(l, c, x, y);
  return WeightGradByParts(l, c, x, y);
}

}  // namespace tpu::lower
