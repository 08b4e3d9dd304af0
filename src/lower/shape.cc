// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: joins, repeats, paddings. The gradients of views are in shape_views.cc.
#include <iterator>

#include "lower/parts.h"
#include "lower/shape.h"

namespace tpu::lower {
namespace {

Value Join(Lowering& l, Values parts, int dim) {
  if (parts.empty()) return Zeros(l.b, l.ResultType(0));
  return parts.size() == 1 ? parts[0] : l.b.Concatenate(parts, dim);
}

// cat(tensors, dim)
void Cat(Lowering& l) {
  Builder& b = l.b;
  const TensorType result = l.ResultType(0);
  Values parts;
  for (Value x : l.TensorList(0)) {
    // ATen lets tensors of shape [0] pass whatever the rank of the others; parts without elements add nothing anyway.
    if (b.type(x).numel() == 0) continue;
    parts.push_back(b.Convert(x, result.dtype));
  }
  l.SetResult(0, Join(l, std::move(parts), WrapDim(l.Int(1), result.rank)));
}

// stack(tensors, dim)
void Stack(Lowering& l) {
  Builder& b = l.b;
  const TensorType result = l.ResultType(0);
  const int dim = WrapDim(l.Int(1), result.rank);
  Values parts;
  for (Value x : l.TensorList(0)) {
    Ints dims = b.dims(x);
    dims.insert(dims.begin() + dim, 1);
    parts.push_back(b.Reshape(b.Convert(x, result.dtype), dims));
  }
  l.SetResult(0, Join(l, std::move(parts), dim));
}

// repeat(self, repeats)
void Repeat(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  Value x = l.Tensor(0);
  const Ints& repeats = l.IntList(1);
  Ints dims = b.dims(x);
  dims.insert(dims.begin(), repeats.size() - dims.size(), 1);
  // One dimension at a time, as [outer, repeat, d * inner]: one broadcast over all of them would double the rank.
  for (size_t i = 0; i < dims.size(); ++i) {
    if (repeats[i] == 1) continue;
    const int64_t outer = Product(Ints(dims.begin(), dims.begin() + i));
    const int64_t inner = Product(Ints(dims.begin() + i, dims.end()));
    x = b.BroadcastInDim(b.Reshape(x, {outer, inner}), {outer, repeats[i], inner}, {0, 2});
    dims[i] *= repeats[i];
  }
  l.SetResult(0, b.Reshape(x, dims));
}

// flip(self, dims)
void Flip(Lowering& l) {
  const Value x = l.Tensor(0);
  Ints dims = l.IntList(1);
  if (l.b.rank(x) == 0) dims.clear();
  for (int64_t& d : dims) d = WrapDim(d, l.b.rank(x));
  l.SetResult(0, dims.empty() ? x : l.b.Reverse(x, dims));
}

Value RollDim(Builder& b, Value x, int64_t shift, int dim) {
  const int64_t n = b.dim(x, dim);
  if (n == 0) return x;
  shift = (shift % n + n) % n;
  if (shift == 0) return x;
  return b.Concatenate({b.SliceDim(x, dim, n - shift, n), b.SliceDim(x, dim, 0, n - shift)}, dim);
}

// roll(self, shifts, dims)
void Roll(Lowering& l) {
  Builder& b = l.b;
  Value x = l.Tensor(0);
  const Ints& shifts = l.IntList(1);
  const Ints dims = l.IntList(2);
  if (dims.empty()) {
    x = RollDim(b, b.Flatten(x), shifts[0], 0);
  } else if (b.rank(x) > 0) {
    for (size_t i = 0; i < dims.size(); ++i) x = RollDim(b, x, shifts[i], WrapDim(dims[i], b.rank(x)));
  }
  SetResultAs(l, 0, x);
}

// constant_pad_nd(self, pad, value): pairs, last dimension first.
void ConstantPad(Lowering& l) {
  Builder& b = l.b;
  const Value x = l.Tensor(0);
  const Ints& pad = l.IntList(1);
  const int rank = b.rank(x);
  Ints low(rank, 0), high(rank, 0);
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    low[rank - 1 - i / 2] = pad[i];
    high[rank - 1 - i / 2] = pad[i + 1];
  }
  l.SetResult(0, b.Pad(x, l.Scalar(2, b.dtype(x)), low, high));
}

// pixel_shuffle(self, r): [*, C r r, H, W] to [*, C, H r, W r]
void PixelShuffle(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value x = l.Tensor(0);
  const int rank = b.rank(x);
  const int64_t r = l.Int(1), h = b.dim(x, rank - 2), w = b.dim(x, rank - 1);
  const int64_t n = b.type(x).numel() / (r * r * h * w);
  SetResultAs(l, 0, b.Transpose(b.Reshape(x, {n, r, r, h, w}), {0, 3, 1, 4, 2}));
}

void PixelUnshuffle(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value x = l.Tensor(0);
  const int rank = b.rank(x);
  const int64_t r = l.Int(1), h = b.dim(x, rank - 2) / r, w = b.dim(x, rank - 1) / r;
  const int64_t n = b.type(x).numel() / (r * r * h * w);
  SetResultAs(l, 0, b.Transpose(b.Reshape(x, {n, h, r, w, r}), {0, 2, 4, 1, 3}));
}

// channel_shuffle(self, groups): [N, g C/g, *] to [N, C/g g, *]
void ChannelShuffle(Lowering& l) {
  Builder& b = l.b;
  const Value x = l.Tensor(0);
  if (ResultIsEmpty(l, 0)) return l.SetResult(0, x);
  const int64_t n = b.dim(x, 0), groups = l.Int(1), each = b.dim(x, 1) / groups;
  const int64_t rest = b.type(x).numel() / (n * groups * each);
  SetResultAs(l, 0, b.Transpose(b.Reshape(x, {n, groups, each, rest}), {0, 2, 1, 3}));
}

constexpr Rule kRules[] = {
    {.name = "cat", .lower = Cat},
    {.name = "stack", .lower = Stack},
    {.name = "repeat", .lower = Repeat},
    {.name = "flip", .lower = Flip},
    {.name = "roll", .lower = Roll},
    {.name = "constant_pad_nd", .lower = ConstantPad},
    {.name = "pixel_shuffle", .lower = PixelShuffle},
    {.name = "pixel_unshuffle", .lower = PixelUnshuffle},
    {.name = "channel_shuffle", .lower = ChannelShuffle},
    {.name = "native_channel_shuffle", .lower = ChannelShuffle},
};

}  // namespace

// One list out of the two files of the family.
std::span<const Rule> ShapeRules() {
  static const std::vector<Rule>& rules = *[] {
    auto* all = new std::vector<Rule>(std::begin(kRules), std::end(kRules));
    all->insert(all->end(), ViewGradientRules().begin(), ViewGradientRules().end());
    return all;
  }();
  return rules;
}

}  // namespace tpu::lower
