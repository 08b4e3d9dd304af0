// SPDX-License-Identifier: Apache-2.0
// Indexing by one index tensor along one dimension: rows read, written and added. Element-wise scatters are in
// index_scatter.cc, lists of index tensors and masks in index_list.cc.
#include <iterator>

#include "lower/index.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

std::string OutOfBounds(int dim, int64_t size) {
  return "index %v is out of bounds for dimension " + std::to_string(dim) + " with size " + std::to_string(size);
}

// A dimension without elements cannot be gathered from; every index is wrong then, and the CPU says so at the call.
bool NothingToRead(Lowering& l, int64_t size) {
  if (size > 0) return false;
  l.Unsupported("indexing a dimension of size 0");
  return true;
}

// index_select(self, dim, index)
void IndexSelect(Lowering& l) {
  Builder& b = l.b;
  const TensorType self = l.TypeOf(0);
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value x = AtLeast1d(b, l.Tensor(0)), index = AtLeast1d(b, l.Tensor(2));
  const int dim = WrapDim(l.Int(1), self.rank);
  const int64_t n = b.dim(x, dim);
  if (NothingToRead(l, n)) return;
  // ATen's CPU kernel for the second dimension has its own words.
  if (dim == 1) {
    l.TrapIfOutOfRange(index, 0, n, ErrorKind::kRuntime,
                       "INDICES element is out of DATA bounds, id=%v axis_dim=" + std::to_string(n));
  } else {
    l.TrapIfOutOfRange(index, 0, n, ErrorKind::kIndex, "index out of range in self");
  }
  SetResultAs(l, 0, TakeAlong(b, x, dim, index));
}

// gather(self, dim, index)
void Gather(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value x = AtLeast1d(b, l.Tensor(0)), index = AtLeast1d(b, l.Tensor(2));
  const int dim = WrapDim(l.Int(1), b.rank(x));
  const int64_t n = b.dim(x, dim);
  if (NothingToRead(l, n)) return;
  l.TrapIfOutOfRange(index, 0, n, ErrorKind::kRuntime, OutOfBounds(dim, n));
  SetResultAs(l, 0, GatherElements(l, x, dim, index));
}

std::string OutOfRange(int64_t numel) {
  return "out of range: tried to access index %v on a tensor of " + std::to_string(numel) + " elements.";
}

// take(self, index)
void Take(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value x = b.Flatten(l.Tensor(0)), index = l.Tensor(1);
  const int64_t n = b.dim(x, 0);
  if (NothingToRead(l, n)) return;
  l.TrapIfOutOfRange(index, -n, n, ErrorKind::kIndex, OutOfRange(n));
  SetResultAs(l, 0, TakeAlong(b, x, 0, WrapIndex(b, NarrowIndex(b, index, n), n)));
}

// put(self, index, source, accumulate)
void Put(Lowering& l) {
  Builder& b = l.b;
  const DType dtype = l.TypeOf(0).dtype;
  const bool accumulate = l.Bool(3);
  if (l.TypeOf(1).numel() == 0) return SetResultAs(l, 0, l.Tensor(0));
  const DType acc = accumulate ? OpMathType(dtype) : dtype;
  const Value x = b.Flatten(l.Tensor(0, acc)), index = b.Flatten(l.Tensor(1)), source = b.Flatten(l.Tensor(2, acc));
  const int64_t n = b.dim(x, 0);
  if (NothingToRead(l, n)) return;
  l.TrapIfOutOfRange(index, -n, n, ErrorKind::kIndex, OutOfRange(n));
  const Value wrapped = WrapIndex(b, NarrowIndex(b, index, n), n);
  SetResultAs(l, 0, ScatterAlong(b, x, 0, wrapped, source, accumulate ? AddTo() : ReplaceWith()));
}

// source of index_add and index_copy: [.., n, ..] along dim, or one number.
Value RowsLike(Builder& b, Value source, Value x, int dim, Value index) {
  Ints dims = b.dims(x);
  if (dims.empty() || !index.valid()) return {};
  dims[dim] = b.dim(index, 0);
  return b.rank(source) == 0 ? b.Reshape(source, dims) : source;
}

// index_add(self, dim, index, source, *, alpha)
void IndexAdd(Lowering& l) {
  Builder& b = l.b;
  const TensorType self = l.TypeOf(0);
  const DType acc = OpMathType(self.dtype);
  if (l.TypeOf(2).numel() == 0) return SetResultAs(l, 0, l.Tensor(0));
  const Value x = AtLeast1d(b, l.Tensor(0, acc)), index = AtLeast1d(b, l.Tensor(2));
  const int dim = WrapDim(l.Int(1), self.rank);
  const int64_t n = b.dim(x, dim);
  if (self.rank > 1) {
    l.TrapIfOutOfRange(index, 0, n, ErrorKind::kRuntime, OutOfBounds(dim, n));
  } else {
    l.TrapIfOutOfRange(index, 0, n, ErrorKind::kIndex, "index out of range in self");
  }
  Value source = RowsLike(b, l.Tensor(3, acc), x, dim, index);
  if (ClassOf(l, 4) != 1) source = b.Mul(source, b.BroadcastLike(l.Scalar(4, acc), source));
  SetResultAs(l, 0, ScatterAlong(b, x, dim, index, source, AddTo()));
}

// index_copy(self, dim, index, source)
void IndexCopy(Lowering& l) {
  Builder& b = l.b;
  if (l.TypeOf(2).numel() == 0) return SetResultAs(l, 0, l.Tensor(0));
  const Value x = AtLeast1d(b, l.Tensor(0)), index = AtLeast1d(b, l.Tensor(2));
  const int dim = WrapDim(l.Int(1), b.rank(x));
  const int64_t n = b.dim(x, dim);
  l.TrapIfOutOfRange(index, 0, n, ErrorKind::kIndex, "index_copy_(): " + OutOfBounds(dim, n));
  const Value source = RowsLike(b, l.Tensor(3, b.dtype(x)), x, dim, index);
  SetResultAs(l, 0, ScatterAlong(b, x, dim, index, source, ReplaceWith()));
}

// index_fill.int_Scalar(self, dim, index, value), index_fill.int_Tensor
void IndexFill(Lowering& l) {
  Builder& b = l.b;
  if (l.TypeOf(2).numel() == 0) return SetResultAs(l, 0, l.Tensor(0));
  const Value x = AtLeast1d(b, l.Tensor(0)), index = AtLeast1d(b, l.Tensor(2));
  const int dim = WrapDim(l.Int(1), b.rank(x));
  const int64_t n = b.dim(x, dim);
  l.TrapIfOutOfRange(index, -n, n, ErrorKind::kIndex, OutOfBounds(dim, n));
  const DType dtype = b.dtype(x);
  const bool tensor = l.arg(3).kind == graph::ArgKind::kTensor;
  Value value = tensor ? b.Reshape(l.Tensor(3, dtype), {}) : l.Scalar(3, dtype);
  // Which rows are hit, then one selection: a scatter of whole rows would write them one by one.
  const TensorType flags(DType::kBool, {n});
  const Value on = b.Constant(TensorType(DType::kBool, {b.dim(index, 0)}), 1);
  const Value hit = ScatterAlong(b, Zeros(b, flags), 0, WrapIndex(b, NarrowIndex(b, index, n), n), on, ReplaceWith());
  const Ints dims = b.dims(x);
  SetResultAs(l, 0, b.Select(b.BroadcastInDim(hit, dims, {dim}), b.BroadcastLike(value, x), x));
}

// embedding(weight, indices, ...)
void Embedding(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value weight = l.Tensor(0), index = l.Tensor(1);
  const int64_t n = b.dim(weight, 0);
  if (NothingToRead(l, n)) return;
  l.TrapIfOutOfRange(index, 0, n, ErrorKind::kIndex, "index out of range in self");
  SetResultAs(l, 0, TakeAlong(b, weight, 0, index));
}

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
void EmbeddingBackward(Lowering& l) {
  Builder& b = l.b;
  const TensorType result = l.ResultType(0);
  if (l.TypeOf(1).numel() == 0 || result.numel() == 0) return SetResultFill(l, 0, 0);
  const DType acc = OpMathType(result.dtype);
  const int64_t rows = l.Int(2), padding = l.Int(3);
  const Value index = b.Flatten(NarrowIndex(b, l.Tensor(1), rows));
  const int64_t n = b.dim(index, 0);
  Value grad = b.Reshape(l.Tensor(0, acc), {n, result.dims[1].size()});
  if (l.Bool(4)) {
    const Value ones = b.Constant(TensorType(acc, {n}), 1);
    const Value counts = ScatterAlong(b, Zeros(b, TensorType(acc, {rows})), 0, index, ones, AddTo());
    grad = b.Div(grad, b.BroadcastInDim(TakeAlong(b, counts, 0, index), b.dims(grad), {0}));
  }
  // Scatters drop what is out of range: that is where the padding index goes.
  Value target = index;
  if (padding >= 0) target = b.Select(b.Cmp(Compare::kEq, index, padding), b.Like(index, rows), index);
  SetResultAs(l, 0, ScatterAlong(b, Zeros(b, result.With(acc)), 0, target, grad, AddTo()));
}

constexpr Rule kRules[] = {
    {.name = "index_select", .lower = IndexSelect},
    {.name = "gather", .lower = Gather},
    {.name = "take", .lower = Take},
    {.name = "put", .lower = Put},
    {.name = "put_", .lower = Put},
    {.name = "index_add", .lower = IndexAdd},
    {.name = "index_copy", .lower = IndexCopy},
    {.name = "index_fill.int_Scalar", .lower = IndexFill},
    {.name = "index_fill.int_Tensor", .lower = IndexFill},
    {.name = "embedding", .lower = Embedding},
    {.name = "embedding_dense_backward", .lower = EmbeddingBackward},
};

}  // namespace

// One list out of the three files of the family.
std::span<const Rule> IndexRules() {
  static const std::vector<Rule>& rules = *[] {
    auto* all = new std::vector<Rule>(std::begin(kRules), std::end(kRules));
    for (const auto& more : {ScatterRules(), IndexListRules()}) all->insert(all->end(), more.begin(), more.end());
    return all;
  }();
  return rules;
}

}  // namespace tpu::lower
