// SPDX-License-Identifier: Apache-2.0
// Views as functions: their gradients (a gradient put into zeros) and their *_scatter forms (a part of self replaced).
#include <algorithm>
#include <limits>

#include "lower/parts.h"
#include "lower/shape.h"

namespace tpu::lower {
namespace {

// Where a slice lies in a dimension of size n: elements start, start + step, ...
struct Span {
  int64_t start, count, step;
};

Span SliceSpan(int64_t n, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += n;
  if (end < 0) end += n;
  start = std::clamp<int64_t>(start, 0, n);
  end = std::clamp<int64_t>(end, start, n);
  return {start, (end - start + step - 1) / step, step};
}

// `part` (span.count elements along dim) spread over n elements; the others are `fill`.
Value Spread(Builder& b, Value part, Value fill, int dim, int64_t n, const Span& span) {
  Ints low(b.rank(part), 0), high(b.rank(part), 0), interior(b.rank(part), 0);
  if (span.count == 0) {
    high[dim] = n;
  } else {
    low[dim] = span.start;
    interior[dim] = span.step - 1;
    high[dim] = n - span.start - ((span.count - 1) * span.step + 1);
  }
  return b.Pad(part, fill, low, high, interior);
}

Value InsertDim(Builder& b, Value x, int dim) {
  Ints dims = b.dims(x);
  dims.insert(dims.begin() + dim, 1);
  return b.Reshape(x, dims);
}

// select_backward(grad_output, input_sizes, dim, index)
void SelectBackward(Lowering& l) {
  Builder& b = l.b;
  const Ints& sizes = l.IntList(1);
  const int dim = WrapDim(l.Int(2), static_cast<int>(sizes.size()));
  const int64_t n = sizes[dim], index = l.Int(3) < 0 ? l.Int(3) + n : l.Int(3);
  const Value grad = InsertDim(b, l.Tensor(0), dim);
  SetResultAs(l, 0, Spread(b, grad, b.Constant(b.dtype(grad), 0), dim, n, {index, 1, 1}));
}

// slice_backward(grad_output, input_sizes, dim, start, end, step)
void SliceBackward(Lowering& l) {
  Builder& b = l.b;
  const Ints& sizes = l.IntList(1);
  const int dim = WrapDim(l.Int(2), static_cast<int>(sizes.size()));
  const Value grad = l.Tensor(0);
  const Span span = SliceSpan(sizes[dim], l.Int(3), l.Int(4), l.Int(5));
  SetResultAs(l, 0, Spread(b, grad, b.Constant(b.dtype(grad), 0), dim, sizes[dim], span));
}

// Puts the diagonal (the last dimension of `part`) of dimensions dim1 and dim2 into `into`.
Value PutDiagonal(Builder& b, Value into, Value part, int64_t offset, int dim1, int dim2) {
  const Ints dims = b.dims(into);
  const int rank = static_cast<int>(dims.size());
  // Row r of dim1 holds element r - first; rows beside the diagonal are filled up, the mask hides them.
  const int64_t first = std::max<int64_t>(0, -offset), rows = dims[dim1], length = b.dim(part, rank - 2);
  Ints low(rank - 1, 0), high(rank - 1, 0);
  low[rank - 2] = length == 0 ? 0 : first;
  high[rank - 2] = rows - length - low[rank - 2];
  part = b.Pad(part, b.Constant(b.dtype(part), 0), low, high);
  // Its dimensions into the order they have in the result: the others keep theirs, the last becomes dim1.
  Ints others = OtherDims(rank, {dim1, dim2}), permutation, places;
  for (int i = 0, next = 0; i < rank; ++i) {
    if (i == dim2) continue;
    permutation.push_back(i == dim1 ? rank - 2 : next++);
    places.push_back(i);
  }
  part = b.BroadcastInDim(b.Transpose(part, permutation), dims, places);
  const TensorType index = TensorType::Of(DType::kI32, dims);
  const Value row = b.Binary("add", b.Iota(index, dim1), offset);
  return b.Select(b.Cmp(Compare::kEq, row, b.Iota(index, dim2)), part, into);
}

// diagonal_backward(grad_output, input_sizes, offset, dim1, dim2)
void DiagonalBackward(Lowering& l) {
  Builder& b = l.b;
  const TensorType result = l.ResultType(0);
  const int dim1 = WrapDim(l.Int(3), result.rank), dim2 = WrapDim(l.Int(4), result.rank);
  l.SetResult(0, PutDiagonal(b, Zeros(b, result), l.Tensor(0), l.Int(2), dim1, dim2));
}

// unfold_backward(grad_in, input_sizes, dim, size, step): window w covers elements w * step ... + size - 1.
void UnfoldBackward(Lowering& l) {
  Builder& b = l.b;
  const TensorType result = l.ResultType(0);
  const int64_t size = l.Int(3), step = l.Int(4);
  const DType acc = OpMathType(result.dtype);
  Value grad = b.Convert(l.Tensor(0), acc);
  if (result.rank == 0) return SetResultAs(l, 0, ReduceSum(l, grad, AllDims(b.rank(grad))));
  const int dim = WrapDim(l.Int(2), result.rank), last = result.rank;
  const int64_t n = result.dims[dim].size(), windows = b.dim(grad, dim);
  if (b.type(grad).numel() == 0) return SetResultFill(l, 0, 0);
  constexpr int64_t kMaxPads = 16;
  if (size <= kMaxPads) {
    Value sum;
    const Ints dims(result.begin(), result.end());
    for (int64_t j = 0; j < size; ++j) {
      Ints part_dims = dims;
      part_dims[dim] = windows;
      const Value part = b.Reshape(b.SliceDim(grad, last, j, j + 1), part_dims);
      const Value spread = Spread(b, part, b.Constant(acc, 0), dim, n, {j, windows, step});
      sum = sum.valid() ? b.Add(sum, spread) : spread;
    }
    return SetResultAs(l, 0, sum);
  }
  // Many elements a window: one scatter along the dimension, windows and places in them flattened.
  Ints permutation = AllDims(last), flat(result.begin(), result.end());
  permutation.insert(permutation.begin() + dim + 1, last);
  flat[dim] = windows * size;
  const TensorType index = TensorType::Of(DType::kI32, Ints{windows, size});
  const Value start = b.Mul(b.Iota(index, 0), b.Constant(index, step));
  const Value place = b.Flatten(b.Add(start, b.Iota(index, 1)));
  grad = b.Reshape(b.Transpose(grad, permutation), flat);
  SetResultAs(l, 0, ScatterAlong(b, Zeros(b, result.With(acc)), dim, place, grad, AddTo()));
}

// select_scatter(self, src, dim, index)
void SelectScatter(Lowering& l) {
  Builder& b = l.b;
  const Value x = l.Tensor(0);
  const int dim = WrapDim(l.Int(2), b.rank(x));
  const int64_t index = l.Int(3) < 0 ? l.Int(3) + b.dim(x, dim) : l.Int(3);
  Values starts(b.rank(x), b.Constant(DType::kI64, 0));
  starts[dim] = b.Constant(DType::kI64, index);
  l.SetResult(0, b.DynamicUpdateSlice(x, InsertDim(b, l.Tensor(1, b.dtype(x)), dim), starts));
}

// slice_scatter(self, src, dim, start, end, step)
void SliceScatter(Lowering& l) {
  Builder& b = l.b;
  const Value x = l.Tensor(0), src = l.Tensor(1, b.dtype(x));
  const int dim = WrapDim(l.Int(2), b.rank(x));
  const int64_t n = b.dim(x, dim);
  const Span span = SliceSpan(n, l.IntOr(3, 0), l.IntOr(4, std::numeric_limits<int64_t>::max()), l.IntOr(5, 1));
  if (b.type(src).numel() == 0) return l.SetResult(0, x);
  if (span.step == 1) {
    Values starts(b.rank(x), b.Constant(DType::kI64, 0));
    starts[dim] = b.Constant(DType::kI64, span.start);
    return l.SetResult(0, b.DynamicUpdateSlice(x, src, starts));
  }
  const Value replaced = Spread(b, b.Constant(b.type(src).With(DType::kBool), 1), b.Constant(DType::kBool, 0), dim, n, span);
  l.SetResult(0, b.Select(replaced, Spread(b, src, b.Constant(b.dtype(x), 0), dim, n, span), x));
}

// diagonal_scatter(self, src, offset, dim1, dim2)
void DiagonalScatter(Lowering& l) {
  Builder& b = l.b;
  const Value x = l.Tensor(0);
  const int dim1 = WrapDim(l.Int(3), b.rank(x)), dim2 = WrapDim(l.Int(4), b.rank(x));
  l.SetResult(0, PutDiagonal(b, x, l.Tensor(1, b.dtype(x)), l.Int(2), dim1, dim2));
}

constexpr Rule kRules[] = {
    {.name = "select_backward", .lower = SelectBackward},     {.name = "slice_backward", .lower = SliceBackward},
    {.name = "diagonal_backward", .lower = DiagonalBackward}, {.name = "unfold_backward", .lower = UnfoldBackward},
    {.name = "select_scatter", .lower = SelectScatter},       {.name = "slice_scatter", .lower = SliceScatter},
    {.name = "diagonal_scatter", .lower = DiagonalScatter},
};

}  // namespace

std::span<const Rule> ViewGradientRules() { return kRules; }

}  // namespace tpu::lower
