// SPDX-License-Identifier: Apache-2.0
// Gathers, scatters and prefix scans of parts.h.
#include <algorithm>
#include <limits>

#include "lower/parts.h"

namespace tpu::lower {
namespace {

// Up to here a scan is one chain of shifted combinations; longer ones go block by block. 16 keeps the chain that the
// engine fuses into one loop at 16 loads an element, and three levels cover a million elements.
constexpr int64_t kScanBlock = 16;

// x moved by `distance` towards higher positions, identities in front.
Value Shift(Builder& b, Value x, int dim, int64_t distance, Value identity) {
  Ints low(b.rank(x), 0), high(b.rank(x), 0);
  low[dim] = distance;
  high[dim] = -distance;
  return b.Pad(x, identity, low, high);
}

Value ScanByDoubling(Builder& b, Value x, int dim, Value identity, const Combine& combine) {
  for (int64_t distance = 1; distance < b.dim(x, dim); distance *= 2)
    x = combine(b, Shift(b, x, dim, distance, identity), x);
  return x;
}

// x: [outer, n, inner].
Value Scan3d(Builder& b, Value x, Value identity, const Combine& combine) {
  const int64_t outer = b.dim(x, 0), n = b.dim(x, 1), inner = b.dim(x, 2);
  if (n <= 2 * kScanBlock) return ScanByDoubling(b, x, 1, identity, combine);
  const int64_t blocks = (n + kScanBlock - 1) / kScanBlock;
  Value y = b.Pad(x, identity, {0, 0, 0}, {0, blocks * kScanBlock - n, 0});
  y = ScanByDoubling(b, b.Reshape(y, {outer, blocks, kScanBlock, inner}), 2, identity, combine);
  const Value totals = b.Reshape(b.SliceDim(y, 2, kScanBlock - 1, kScanBlock), {outer, blocks, inner});
  const Value before = Shift(b, Scan3d(b, totals, identity, combine), 1, 1, identity);
  y = combine(b, b.BroadcastInDim(before, b.dims(y), {0, 1, 3}), y);
  return b.SliceDim(b.Reshape(y, {outer, blocks * kScanBlock, inner}), 1, 0, n);
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

Value GatherElements(Builder& b, Value x, int dim, Value index) {
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
  return b.Gather(x, NarrowIndex(b, index, b.dim(x, dim)), dims, Ints(rank, 1));
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

Value PrefixScan(Builder& b, Value x, int dim, Value identity, const Combine& combine) {
  if (!x.valid()) return {};
  const Ints dims = b.dims(x);
  if (Product(dims) == 0) return x;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < b.rank(x); ++i) (i < dim ? outer : inner) *= i == dim ? 1 : dims[i];
  return b.Reshape(Scan3d(b, b.Reshape(x, {outer, dims[dim], inner}), identity, combine), dims);
}

}  // namespace tpu::lower
