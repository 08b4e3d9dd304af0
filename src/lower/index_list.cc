// SPDX-License-Identifier: Apache-2.0
// Lists of index tensors (x[i, :, j]) and writes through boolean masks, whose shapes are known. Reads through masks
// have data-dependent sizes: not here.
#include <algorithm>
#include <limits>

#include "lower/index.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

// The defined indices of a list: which dimensions they stand for, broadcast to one shape.
struct IndexList {
  Ints dims;           // indexed dimensions of self, ascending
  Values indices;      // wrapped, all of `shape`
  Ints shape;
  bool adjacent = true;
  // Dimensions of the result in front of the index dimensions.
  int64_t before() const { return adjacent && !dims.empty() ? dims[0] : 0; }
};

bool IsMask(DType d) { return d == DType::kBool || d == DType::kU8; }

// Number of masks among the defined indices; -1 for no defined index at all.
int CountMasks(const Lowering& l, int i) {
  int masks = 0, defined = 0;
  for (const graph::Operand& o : l.arg(i).tensors) {
    if (o.value < 0) continue;
    ++defined;
    masks += IsMask(o.dtype);
  }
  return defined ? masks : -1;
}

// Requires: integer indices only. Adds the range checks.
bool ReadIndices(Lowering& l, int arg, const Ints& self, IndexList* list) {
  Builder& b = l.b;
  const Values given = l.TensorList(arg);
  // The shape that all broadcast to.
  for (Value v : given) {
    if (!v.valid()) continue;
    const Ints dims = b.dims(v);
    if (dims.size() > list->shape.size()) list->shape.insert(list->shape.begin(), dims.size() - list->shape.size(), 1);
    for (size_t k = 0; k < dims.size(); ++k) {
      int64_t& size = list->shape[list->shape.size() - dims.size() + k];
      if (size == 1) size = dims[k];
    }
  }
  const bool any = Product(list->shape) > 0;
  int64_t largest = 0;
  for (size_t k = 0; k < given.size(); ++k)
    if (given[k].valid()) largest = std::max(largest, self[k]);
  for (size_t k = 0; k < given.size(); ++k) {
    if (!given[k].valid()) continue;
    const int64_t size = self[k];
    if (size == 0 && any) {
      l.Unsupported("indexing a dimension of size 0");
      return false;
    }
    if (!list->dims.empty() && list->dims.back() != static_cast<int64_t>(k) - 1) list->adjacent = false;
    // ATen counts the index tensors here, not the dimensions.
    if (any) {
      l.TrapIfOutOfRange(given[k], -size, size, ErrorKind::kIndex,
                         "index %v is out of bounds for dimension " + std::to_string(list->dims.size()) + " with size " +
                             std::to_string(size));
    }
    list->dims.push_back(static_cast<int64_t>(k));
    const Value index = WrapIndex(b, NarrowIndex(b, given[k], largest), size);
    list->indices.push_back(b.Broadcast(index, list->shape));
  }
  return true;
}

// [shape..., number of indexed dimensions]
Value Stacked(Builder& b, const IndexList& list) {
  Ints dims = list.shape;
  dims.push_back(1);
  Values columns;
  for (Value v : list.indices) columns.push_back(b.Reshape(v, dims));
  return columns.size() == 1 ? columns[0] : b.Concatenate(columns, static_cast<int>(list.shape.size()));
}

// Result dimensions that come from dimensions of self that are not indexed.
Ints WindowDims(int self_rank, const IndexList& list) {
  Ints dims;
  const int others = self_rank - static_cast<int>(list.dims.size());
  for (int i = 0; i < others; ++i) dims.push_back(i < list.before() ? i : i + static_cast<int>(list.shape.size()));
  return dims;
}

// index.Tensor(self, indices)
void IndexTensor(Lowering& l) {
  Builder& b = l.b;
  const int masks = CountMasks(l, 1);
  if (masks > 0) return l.Unsupported("reading through a mask: the size of the result depends on the data");
  const Value x = l.Tensor(0);
  if (masks < 0) return l.SetResult(0, x);
  IndexList list;
  if (!ReadIndices(l, 1, b.dims(x), &list)) return;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  hlo::GatherDims dims;
  dims.offset_dims = WindowDims(b.rank(x), list);
  dims.collapsed_slice_dims = dims.start_index_map = list.dims;
  dims.index_vector_dim = static_cast<int64_t>(list.shape.size());
  Ints sizes = b.dims(x);
  for (int64_t d : list.dims) sizes[d] = 1;
  l.SetResult(0, b.Gather(x, Stacked(b, list), dims, sizes));
}

// Writes through a mask over dimensions first .. first + mask rank - 1 of self: what a written element receives is the
// value at its place among the true ones.
void PutThroughMask(Lowering& l, bool accumulate) {
  Builder& b = l.b;
  const auto& operands = l.arg(1).tensors;
  int first = -1;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].value < 0) continue;
    if (first >= 0) return l.Unsupported("a mask together with other indices");
    first = static_cast<int>(k);
  }
  const DType dtype = l.TypeOf(0).dtype, acc = accumulate ? OpMathType(dtype) : dtype;
  const Value x = l.Tensor(0, acc);
  const Value mask = b.Convert(l.TensorList(1)[first], DType::kBool);
  const Ints dims = b.dims(x), mask_dims = b.dims(mask);
  Ints places;
  for (size_t k = 0; k < mask_dims.size(); ++k) {
    places.push_back(first + static_cast<int64_t>(k));
    if (places.back() >= static_cast<int64_t>(dims.size()) || dims[places.back()] != mask_dims[k])
      return l.Unsupported("a mask of another shape");
  }
  if (b.type(x).numel() == 0) return SetResultAs(l, 0, x);
  const Value values = l.Tensor(2, acc);
  Ints value_dims = b.dims(values);
  Value what;
  if (b.type(values).numel() == 1) {
    what = b.Broadcast(b.Reshape(values, {}), dims);
  } else {
    // Values of shape [before..., count, after...], with the dimensions in front left out or 1.
    const size_t after = dims.size() - first - mask_dims.size();
    if (value_dims.size() > first + 1 + after) return l.Unsupported("values of more dimensions than the target");
    value_dims.insert(value_dims.begin(), first + 1 + after - value_dims.size(), 1);
    const int64_t count = value_dims[first], n = Product(mask_dims);
    if (n > std::numeric_limits<int32_t>::max()) return l.Unsupported("a mask of more than 2^31 elements");
    const TensorType flat(DType::kI32, {n});
    const Value ones = b.Reshape(b.Convert(mask, DType::kI32), {n});
    const Value rank = PrefixScan(l, ones, 0, b.Constant(DType::kI32, 0), AddTo());
    if (count != 1) {
      const Value total = b.Reshape(b.SliceDim(rank, 0, n - 1, n), {});
      std::string given, target;
      for (int64_t d : l.TypeOf(2)) given += (given.empty() ? "" : ", ") + std::to_string(d);
      for (int k = 0; k < first; ++k) target += std::to_string(dims[k]) + ", ";
      target += "%v";
      for (size_t k = first + mask_dims.size(); k < dims.size(); ++k) target += ", " + std::to_string(dims[k]);
      // The count is not negative: encoded as count + 1.
      const Value wrong = b.Cmp(Compare::kNe, total, count);
      l.Trap(b.Select(wrong, b.Binary("add", total, 1), b.Constant(DType::kI32, 0)), ErrorKind::kRuntime,
             "shape mismatch: value tensor of shape [" + given + "] cannot be broadcast to indexing result of shape [" +
                 target + "]");
    }
    if (count == 0) return SetResultAs(l, 0, x);
    // Elements in front of the first true one have place -1; they are not written.
    const Value place = count == 1 ? b.Constant(flat, 0) : b.Binary("subtract", rank, 1);
    Ints spread = value_dims;
    spread.erase(spread.begin() + first);
    spread.insert(spread.begin() + first, mask_dims.begin(), mask_dims.end());
    what = TakeAlong(b, b.Reshape(values, value_dims), first, place);
    what = b.Broadcast(b.Reshape(what, spread), dims);
  }
  if (accumulate) what = b.Add(x, what);
  SetResultAs(l, 0, b.Select(b.BroadcastInDim(mask, dims, places), what, x));
}

// index_put(self, indices, values, accumulate), _index_put_impl_(.., unsafe)
void IndexPut(Lowering& l) {
  Builder& b = l.b;
  const bool accumulate = l.Bool(3);
  const int masks = CountMasks(l, 1);
  if (masks > 0) return PutThroughMask(l, accumulate);
  const DType dtype = l.TypeOf(0).dtype, acc = accumulate ? OpMathType(dtype) : dtype;
  const Value x = l.Tensor(0, acc), values = l.Tensor(2, acc);
  if (masks < 0) {
    const Value all = b.BroadcastLike(values, x);
    return SetResultAs(l, 0, accumulate ? b.Add(x, all) : all);
  }
  IndexList list;
  if (!ReadIndices(l, 1, b.dims(x), &list)) return;
  hlo::ScatterDims dims;
  dims.update_window_dims = WindowDims(b.rank(x), list);
  dims.inserted_window_dims = dims.scatter_dims_to_operand_dims = list.dims;
  dims.index_vector_dim = static_cast<int64_t>(list.shape.size());
  Ints target, others;
  for (int d : OtherDims(b.rank(x), list.dims)) others.push_back(b.dim(x, d));
  target = others;
  target.insert(target.begin() + list.before(), list.shape.begin(), list.shape.end());
  if (Product(target) == 0) return SetResultAs(l, 0, x);
  const Combine combine = accumulate ? AddTo() : ReplaceWith();
  SetResultAs(l, 0, b.Scatter(x, Stacked(b, list), b.Broadcast(values, target), dims, false, false, [&](const Values& v) {
    return Values{combine(b, v[0], v[1])};
  }));
}

// masked_scatter(self, mask, source)
void MaskedScatter(Lowering& l) {
  Builder& b = l.b;
  const TensorType result = l.ResultType(0);
  if (result.numel() == 0) return SetResultFill(l, 0, 0);
  const Ints dims(result.begin(), result.end());
  const int64_t n = result.numel(), given = l.TypeOf(2).numel();
  if (n > std::numeric_limits<int32_t>::max()) return l.Unsupported("a mask of more than 2^31 elements");
  if (given == 0) return l.Unsupported("no source elements");
  const Value mask = b.Broadcast(l.Tensor(1, DType::kBool), dims);
  const Value ones = b.Reshape(b.Convert(mask, DType::kI32), {n});
  const Value rank = PrefixScan(l, ones, 0, b.Constant(DType::kI32, 0), AddTo());
  const Value total = b.SliceDim(rank, 0, n - 1, n);
  TrapIf(l, b.Cmp(Compare::kGt, total, given), ErrorKind::kRuntime, "Number of elements of source < number of ones in mask");
  const Value source = b.Flatten(l.Tensor(2, result.dtype));
  const Value what = TakeAlong(b, source, 0, b.Binary("subtract", rank, 1));
  l.SetResult(0, b.Select(mask, b.Reshape(what, dims), b.Broadcast(l.Tensor(0, result.dtype), dims)));
}

constexpr Rule kRules[] = {
    {.name = "index.Tensor", .lower = IndexTensor},
    {.name = "index_put", .lower = IndexPut},
    {.name = "_index_put_impl_", .lower = IndexPut},
    {.name = "masked_scatter", .lower = MaskedScatter},
};

}  // namespace

std::span<const Rule> IndexListRules() { return kRules; }

}  // namespace tpu::lower
