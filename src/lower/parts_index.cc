// SPDX-License-Identifier: Apache-2.0
// Gathers, scatters and prefix scans of parts.h.
#include <algorithm>
#include <limits>

#include "lower/parts.h"

namespace tpu::lower {
namespace {

// Up to here a scan is one chain of shifted combinations, which engines fuse into one loop.
constexpr int64_t kShortScan = 8;

// x moved by `distance` towards higher positions, identities in front.
Value Shift(Builder& b, Value x, int dim, int64_t distance, Value identity) {
  Ints low(b.rank(x), 0), high(b.rank(x), 0);
  low[dim] = distance;
  high[dim] = -distance;
  return b.Pad(x, identity, low, high);
}

Value ScanByDoubling(Builder& b, Value x, int dim, Value identity, const Combine& combine) {
  for (int64_t distance = 1; distance < b.dim(x, dim); distance *= 2) x = combine(b, Shift(b, x, dim, distance, identity), x);
  return x;
}

// x: [outer, n, inner]. One step an element, float32 carried in float64 as ATen does it. On CPUs faster than a
// reduce_window of the whole length or equal to it, and compiled in a tenth of its 0.2 to 0.5 s.
Value ScanByLoop(Builder& b, Value x, Value identity, const Combine& combine) {
  const DType dtype = b.dtype(x), acc = dtype == DType::kF32 ? DType::kF64 : dtype;
  const int64_t outer = b.dim(x, 0), n = b.dim(x, 1), inner = b.dim(x, 2);
  const TensorType row(acc, {outer, 1, inner});
  const Value zero = b.Constant(DType::kI64, 0);
  const Values inits{zero, b.BroadcastInDim(b.Convert(identity, acc), {outer, 1, inner}, {}), b.Constant(b.type(x), 0)};
  const auto at = [&](Value i) { return Values{b.Like(i, 0), i, b.Like(i, 0)}; };
  const Values done = b.While(
      inits, [&](const Values& v) -> Values { return {b.Cmp(Compare::kLt, v[0], n)}; },
      [&](const Values& v) -> Values {
        const Value next = b.Convert(b.DynamicSlice(x, at(v[0]), {outer, 1, inner}), acc);
        const Value sum = combine(b, v[1], next);
        return {b.Binary("add", v[0], 1), sum, b.DynamicUpdateSlice(v[2], b.Convert(sum, dtype), at(v[0]))};
      });
  return done.size() == 3 ? done[2] : Value{};
}

Value ScanByWindow(Builder& b, Value x, Value identity, const Combine& combine) {
  const int64_t n = b.dim(x, 1);
  hlo::Window window;
  window.dimensions = {1, n, 1};
  window.low = {0, n - 1, 0};
  window.high = {0, 0, 0};
  const Values done =
      b.ReduceWindow(Values{x}, Values{identity}, window, [&](const Values& v) -> Values { return {combine(b, v[0], v[1])}; });
  return done.empty() ? Value{} : done[0];
}

}  // namespace

Value NarrowIndex(Builder& b, Value index, int64_t size) {
  return b.Convert(index, size <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64);
}

Value WrapIndex(Builder& b, Value index, int64_t size) {
  return b.Select(b.Cmp(Compare::kLt, index, 0), b.Add(index, b.Like(index, size)), index);
}

Value TakeAlong(Builder& b, Value x, int dim, Value index) {
  const int rank = b.rank(x), index_rank = b.rank(index);
  hlo::GatherDims dims;
  for (int i = 0; i < rank - 1; ++i) dims.offset_dims.push_back(i < dim ? i : i + index_rank);
  dims.collapsed_slice_dims = {dim};
  dims.start_index_map = {dim};
  dims.index_vector_dim = index_rank;
  Ints sizes = b.dims(x);
  if (!x.valid() || !index.valid()) return {};
  sizes[dim] = 1;
  return b.Gather(x, NarrowIndex(b, index, b.dim(x, dim)), dims, sizes);
}

Value GatherElements(Lowering& l, Value x, int dim, Value index) {
  Builder& b = l.b;
  if (!x.valid() || !index.valid()) return {};
  const int rank = b.rank(x);
  Ints limit = b.dims(index);
  limit[dim] = b.dim(x, dim);
  x = b.Slice(x, Ints(rank, 0), limit);
  hlo::GatherDims dims;
  dims.collapsed_slice_dims = {dim};
  dims.start_index_map = {dim};
  dims.operand_batching_dims = dims.start_indices_batching_dims = OtherDims(rank, {dim});
  dims.index_vector_dim = rank;
  if (!l.profile.wide_gather_indices) index = NarrowIndex(b, index, b.dim(x, dim));
  return b.Gather(x, index, dims, Ints(rank, 1));
}

Combine ReplaceWith() {
  return [](Builder&, Value, Value update) { return update; };
}
Combine AddTo() {
  return [](Builder& b, Value old, Value update) { return b.Add(old, update); };
}
Combine MultiplyTo() {
  return [](Builder& b, Value old, Value update) { return b.Mul(old, update); };
}
Combine MaxTo() {
  return [](Builder& b, Value old, Value update) { return b.Max(old, update); };
}
Combine MinTo() {
  return [](Builder& b, Value old, Value update) { return b.Min(old, update); };
}

Value ScatterAlong(Builder& b, Value x, int dim, Value index, Value updates, const Combine& combine) {
  if (!x.valid() || !index.valid() || !updates.valid()) return {};
  hlo::ScatterDims dims;
  dims.update_window_dims = OtherDims(b.rank(x), {dim});
  dims.inserted_window_dims = dims.scatter_dims_to_operand_dims = {dim};
  dims.index_vector_dim = 1;
  return b.Scatter(x, NarrowIndex(b, index, b.dim(x, dim)), updates, dims, false, false,
                   [&](const Values& v) { return Values{combine(b, v[0], v[1])}; });
}

Value ScatterElements(Builder& b, Value x, int dim, Value index, Value updates, const Combine& combine) {
  if (!x.valid() || !index.valid() || !updates.valid()) return {};
  const int rank = b.rank(x);
  // Batching dimensions have to be of equal size: work on the part that the indices reach, then put it back.
  Ints limit = b.dims(index);
  limit[dim] = b.dim(x, dim);
  const Value part = b.Slice(x, Ints(rank, 0), limit);
  hlo::ScatterDims dims;
  dims.inserted_window_dims = dims.scatter_dims_to_operand_dims = {dim};
  dims.input_batching_dims = dims.scatter_indices_batching_dims = OtherDims(rank, {dim});
  dims.index_vector_dim = rank;
  updates = b.Slice(updates, Ints(rank, 0), b.dims(index));
  const Value done = b.Scatter(part, NarrowIndex(b, index, b.dim(x, dim)), updates, dims, false, false,
                               [&](const Values& v) { return Values{combine(b, v[0], v[1])}; });
  if (limit == b.dims(x)) return done;
  return b.DynamicUpdateSlice(x, done, Values(rank, b.Constant(DType::kI32, 0)));
}

Value PrefixScan(Lowering& l, Value x, int dim, Value identity, const Combine& combine) {
  Builder& b = l.b;
  if (!x.valid()) return {};
  const Ints dims = b.dims(x);
  if (Product(dims) == 0) return x;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < b.rank(x); ++i) (i < dim ? outer : inner) *= i == dim ? 1 : dims[i];
  x = b.Reshape(x, {outer, dims[dim], inner});
  const DType dtype = b.dtype(x);
  const bool double_precision = dtype == DType::kF64 || dtype == DType::kC128;
  if (dims[dim] <= kShortScan) {
    x = ScanByDoubling(b, x, 1, identity, combine);
  } else if (l.profile.kind == pjrt::EngineKind::kCpu) {
    // Steps over short runs at large strides miss the cache each time: two transposes are 5 times cheaper.
    const bool strided = outer > 1 && inner < 16;
    if (strided) x = b.Transpose(x, {1, 0, 2});
    if (strided) x = b.Reshape(x, {1, dims[dim], outer * inner});
    x = ScanByLoop(b, x, identity, combine);
    if (strided) x = b.Transpose(b.Reshape(x, {dims[dim], outer, inner}), {1, 0, 2});
  } else if (double_precision) {
    // libtpu does not come to an end with a float64 reduce_window of this size.
    x = ScanByDoubling(b, x, 1, identity, combine);
  } else {
    x = ScanByWindow(b, x, identity, combine);
  }
  return b.Reshape(x, dims);
}

}  // namespace tpu::lower
