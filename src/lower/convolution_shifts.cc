// SPDX-License-Identifier: Apache-2.0
// Correlations with few channels a group (depthwise above all) written out: one multiplication and addition of whole
// images for every term of a sum, a term being a tap of the kernel and a channel of the group.
#include <algorithm>

#include "lower/convolution.h"

namespace tpu::lower {
namespace {

// The order that an image is computed in: [N, C, spatial...], or [N, spatial..., C].
struct Order {
  bool last;
  int rank;
  int feature() const { return last ? rank - 1 : 1; }
  int spatial(size_t i) const { return static_cast<int>(i) + (last ? 1 : 2); }
  Value Of(Builder& b, const Image& x) const { return last ? FeaturesToEnd(b, x) : x.value; }
};

// Zeros around the spatial dimensions and between their elements. A negative number cuts.
struct Padding {
  Ints low, high, interior;
  Value Of(Builder& b, const Order& o, Value x) const {
    Ints l(static_cast<size_t>(o.rank), 0), h = l, i = l;
    for (size_t d = 0; d < low.size(); ++d) {
      const auto at = static_cast<size_t>(o.spatial(d));
      l[at] = low[d];
      h[at] = high[d];
      i[at] = interior[d];
    }
    return b.Pad(x, b.Constant(b.dtype(x), 0), l, h, i);
  }
};

// Channel `at` of each group, as often as the group has features on the other side: [.., groups * in, ..] to
// [.., groups * out, ..].
Value ChannelOf(Builder& b, const Order& o, Value x, int64_t groups, int64_t in, int64_t out, int64_t at) {
  if (in == 1 && out == 1) return x;
  const int f = o.feature();
  Ints split = b.dims(x), kept;
  split[static_cast<size_t>(f)] = groups;
  Ints joined = split, wide = split;
  split.insert(split.begin() + f + 1, in);
  wide.insert(wide.begin() + f + 1, out);
  joined[static_cast<size_t>(f)] = groups * out;
  for (int d = 0; d <= o.rank; ++d)
    if (d != f + 1) kept.push_back(d);
  Value one = b.SliceDim(b.Reshape(x, split), f + 1, at, at + 1);
  Ints narrow = wide;
  narrow.erase(narrow.begin() + f + 1);
  one = b.Reshape(one, narrow);
  return b.Reshape(b.BroadcastInDim(one, wide, kept), joined);
}

// The images that the terms of a sum are slices of, one for each channel of a group.
Values Sources(Builder& b, const Order& o, Value x, int64_t groups, int64_t in, int64_t out, const Padding& padding) {
  Values all;
  // Engines write what a Pad makes to memory and compute everything else again where it is read. With the features last a
  // channel picked out is read slowly (a few at a time), so it has to be in front of the Pad.
  const Value padded = o.last ? Value() : padding.Of(b, o, x);
  for (int64_t j = 0; j < in; ++j)
    all.push_back(o.last ? padding.Of(b, o, ChannelOf(b, o, x, groups, in, out, j))
                         : ChannelOf(b, o, padded, groups, in, out, j));
  return all;
}

// What tap number `tap` sees: `count` positions of each spatial dimension.
Value TapSlice(Builder& b, const Order& o, const Correlation& c, Value source, int64_t tap, const Ints& stride,
               const Ints& count) {
  Ints start(static_cast<size_t>(o.rank), 0), limit = b.dims(source), step(start.size(), 1);
  for (size_t i = c.spatial(); i-- > 0;) {
    const auto at = static_cast<size_t>(o.spatial(i));
    start[at] = tap % c.w[i + 2] * c.dilation[i];
    tap /= c.w[i + 2];
    step[at] = stride[i];
    limit[at] = start[at] + (count[i] - 1) * stride[i] + 1;
  }
  return b.Slice(source, start, limit, step);
}

// The sum over all terms of a slice of a source times its weight; kernel [groups * out, in, taps...].
Value ShiftedSum(Builder& b, const Order& o, const Correlation& c, const Values& sources, Value kernel, const Ints& stride,
                 const Ints& count) {
  const auto in = static_cast<int64_t>(sources.size());
  const int64_t filters = b.dim(kernel, 0), terms = in * c.taps();
  Value weights = b.Reshape(kernel, {filters, terms});
  // Neighbours in memory have to meet neighbours: 4 times slower otherwise.
  if (o.last) weights = Stored(b, b.Transpose(weights, {1, 0}));
  Value sum;
  for (int64_t term = 0; term < terms; ++term) {
    const Value seen = TapSlice(b, o, c, sources[static_cast<size_t>(term / c.taps())], term % c.taps(), stride, count);
    const Value weight = b.Reshape(b.SliceDim(weights, o.last ? 0 : 1, term, term + 1), {filters});
    const Value product = b.Mul(seen, b.BroadcastInDim(weight, b.dims(seen), {o.feature()}));
    sum = term ? b.Add(sum, product) : product;
  }
  return sum;
}

// ---- the gradient of the weight

// Rows that are added up before anything is stored: more of them than a cache has ways would push each other out.
constexpr int64_t kMostRows = 8;
// Images of this size together stay in a core's cache while all terms read them: 9 taps of [32, 128, 14, 14] take 1.3 ms so
// and 3.1 ms over all images at once.
constexpr int64_t kBytesAtOnce = 1 << 19;

// How many rows to add up: as few zero rows as can be, then as many rows as can be.
int64_t RowsAtOnce(int64_t rows) {
  int64_t best = std::min(rows, kMostRows);
  const auto filled = [rows](int64_t each) { return (rows + each - 1) / each * each; };
  for (int64_t each = best; 2 * each >= kMostRows; --each)
    if (filled(each) < filled(best)) best = each;
  return best;
}

int64_t ImagesAtOnce(int64_t images, int64_t bytes_each) {
  int64_t best = 1;
  for (int64_t n = 1; n <= images && n * bytes_each <= kBytesAtOnce; ++n)
    if (images % n == 0) best = n;
  return best;
}

// [terms, filters] of some images, features last.
Value TermSums(Lowering& l, const Correlation& c, const Order& o, Value x, Value y) {
  Builder& b = l.b;
  const int64_t in = c.w[1], out = c.w[0] / c.groups, each = RowsAtOnce(c.y[2]);
  Ints count = Spatial(c.y);
  count[0] = (count[0] + each - 1) / each * each;
  Padding of_x, of_y;
  for (size_t i = 0; i < c.spatial(); ++i) {
    const int64_t seen = (count[i] - 1) * c.stride[i] + c.dilation[i] * (c.w[i + 2] - 1) + 1;
    of_x.low.push_back(c.padding[i]);
    of_x.high.push_back(seen - c.padding[i] - c.x[i + 2]);
    of_y.low.push_back(0);
    of_y.high.push_back(count[i] - c.y[i + 2]);
  }
  of_x.interior = of_y.interior = Ints(c.spatial(), 0);
  Values sources = Sources(b, o, x, c.groups, in, out, of_x);
  for (Value& source : sources) source = Stored(b, source);
  y = Stored(b, of_y.Of(b, o, y));
  const auto row = [&](Value image, int64_t first) { return b.SliceDim(image, o.spatial(0), first, count[0], each); };
  const int64_t positions = b.type(y).numel() / each / c.w[0];
  Values sums;
  for (const Value& source : sources) {
    for (int64_t tap = 0; tap < c.taps(); ++tap) {
      const Value seen = TapSlice(b, o, c, source, tap, c.stride, count);
      Value sum;
      for (int64_t first = 0; first < each; ++first) {
        const Value product = b.Mul(row(seen, first), row(y, first));
        sum = first ? b.Add(sum, product) : product;
      }
      sums.push_back(b.Reshape(sum, {1, positions, c.w[0]}));
    }
  }
  // A product with ones: engines run plain sums of columns one number at a time.
  const Value ones = b.Constant(TensorType(b.dtype(y), {static_cast<int64_t>(sums.size()), positions}), 1);
  return b.DotGeneral(b.Concatenate(sums, 0), ones, {{0}, {0}, {1}, {1}}, hlo::Precision::kHighest);
}

}  // namespace

Value ShiftedCorrelate(Lowering& l, const Correlation& c, const Image& x, Value w, bool last) {
  Builder& b = l.b;
  const Order o{x.features_last, b.rank(x.value)};
  const Padding around{c.padding, c.padding, Ints(c.spatial(), 0)};
  const Values sources = Sources(b, o, o.Of(b, x), c.groups, c.w[1], c.w[0] / c.groups, around);
  const Value y = ShiftedSum(b, o, c, sources, w, c.stride, Spatial(c.y));
  return o.last ? FeaturesFromEnd(b, y, last) : y;
}

Value ShiftedInputGrad(Lowering& l, const Correlation& c, const Image& y, Value w, bool last) {
  Builder& b = l.b;
  const Order o{y.features_last, b.rank(y.value)};
  Padding stretched{InputGradLow(c), InputGradHigh(c), c.stride};
  for (int64_t& i : stretched.interior) --i;
  const Values sources = Sources(b, o, o.Of(b, y), c.groups, c.w[0] / c.groups, c.w[1], stretched);
  const Value x = ShiftedSum(b, o, c, sources, TurnedKernel(b, c, w), Ints(c.spatial(), 1), Spatial(c.x));
  return o.last ? FeaturesFromEnd(b, x, last) : x;
}

// Always with the features last: sums over neighbours in memory would be taken one number at a time, and transposing the
// few images that are in the cache costs less than that.
Value ShiftedWeightGrad(Lowering& l, const Correlation& c, const Image& x, const Image& y) {
  Builder& b = l.b;
  const Order o{true, b.rank(x.value)};
  const auto sums_of = [&](Value some_x, Value some_y) {
    if (!x.features_last) some_x = FeaturesToEnd(b, {some_x, false});
    if (!y.features_last) some_y = FeaturesToEnd(b, {some_y, false});
    return TermSums(l, c, o, some_x, some_y);
  };
  const auto in_memory = [&](const Image& image) { return image.features_last ? FeaturesToEnd(b, image) : image.value; };
  const Value all_x = in_memory(x), all_y = in_memory(y);
  const DType dtype = b.dtype(all_x);
  const int64_t images = c.y[0], item = static_cast<int64_t>(ItemSize(dtype));
  const int64_t each = ImagesAtOnce(images, (Product(c.x) * (c.w[0] / c.groups) + Product(c.y)) / images * item);
  if (each == images) return b.Reshape(b.Transpose(sums_of(all_x, all_y), {1, 0}), c.w);

  const Value first = b.Constant(DType::kI32, 0);
  const auto part = [&](Value image, Value at) {
    Ints sizes = b.dims(image);
    sizes[0] = each;
    Values starts(sizes.size(), b.Constant(DType::kI32, 0));
    starts[0] = at;
    return b.DynamicSlice(image, starts, sizes);
  };
  const Value zero = b.Constant(TensorType(dtype, {c.w[1] * c.taps(), c.w[0]}), 0);
  const Values done = b.While(
      {first, zero}, [&](const Values& v) { return Values{b.Cmp(Compare::kLt, v[0], b.Constant(DType::kI32, images))}; },
      [&](const Values& v) {
        const Value sums = sums_of(part(all_x, v[0]), part(all_y, v[0]));
        return Values{b.Add(v[0], b.Constant(DType::kI32, each)), b.Add(v[1], sums)};
      });
  if (done.size() != 2) return {};
  return b.Reshape(b.Transpose(done[1], {1, 0}), c.w);
}

}  // namespace tpu::lower
