// SPDX-License-Identifier: Apache-2.0
#include "lower/view_access.h"

#include <algorithm>
#include <limits>

namespace tpu::lower {
namespace {

using hlo::Ints;
using hlo::Value;
using hlo::Values;

Ints SizesOf(const graph::Operand& view) {
  Ints sizes(view.rank);
  for (int i = 0; i < view.rank; ++i) sizes[static_cast<size_t>(i)] = view.sizes[i].size();
  return sizes;
}

bool NeedsWideIndex(int64_t size) { return size > std::numeric_limits<int32_t>::max(); }

// A kSlice access in window order: what is cut out of the window and how the view's dimensions lie in it.
struct WindowPlan {
  Ints window, span, count, step;  // per window dimension; count: elements the view has there
  Values starts;
  Ints mapped;                     // view dimensions that walk a window dimension, in window order
  Ints mapped_sorted;              // the same, ascending
  bool whole = true;               // the span is the window
  bool stepped = false;
};

WindowPlan PlanWindow(hlo::Builder& b, const graph::Operand& view, const StartIndex& start) {
  WindowPlan p;
  const graph::Access& access = view.access;
  Ints sizes = SizesOf(view);
  graph::View geometry{view.dtype, view.rank, sizes.data(), view.strides, 0};
  bool wide = false;
  for (int j = 0; j < access.window_rank; ++j) wide = wide || NeedsWideIndex(access.window[j]);
  DType index = wide ? DType::kI64 : DType::kI32;
  int next = 0;
  for (int j = 0; j < access.window_rank; ++j) {
    int64_t count = 1, step = 1;
    for (int i = 0; i < view.rank; ++i) {
      if (access.map[i] != j) continue;
      if (count != 1 && sizes[static_cast<size_t>(i)] != 1) {
        b.Internal("two view dimensions walk one window dimension");
      }
      p.mapped.push_back(i);
      if (sizes[static_cast<size_t>(i)] != 1) {
        count = sizes[static_cast<size_t>(i)];
        step = access.step[i];
      }
    }
    p.window.push_back(access.window[j]);
    p.span.push_back(access.span(geometry, j));
    p.count.push_back(count);
    p.step.push_back(step);
    p.stepped = p.stepped || step != 1;
    bool partial = p.span.back() < access.window[j];
    p.whole = p.whole && !partial;
    p.starts.push_back(partial ? start(next++, index) : b.Constant(index, 0));
  }
  p.mapped_sorted = p.mapped;
  std::sort(p.mapped_sorted.begin(), p.mapped_sorted.end());
  return p;
}

Ints SizesAt(const graph::Operand& view, const Ints& dimensions) {
  Ints sizes;
  for (int64_t i : dimensions) sizes.push_back(view.sizes[i].size());
  return sizes;
}

// Positions of `mapped_sorted`'s members within `mapped`, or the inverse.
Ints Permutation(const Ints& from, const Ints& to) {
  Ints p;
  for (int64_t i : to) p.push_back(std::find(from.begin(), from.end(), i) - from.begin());
  return p;
}

Value ReadWindow(hlo::Builder& b, const graph::Operand& view, Value base, const StartIndex& start) {
  WindowPlan p = PlanWindow(b, view, start);
  Value x = b.DynamicSlice(b.Reshape(base, p.window), p.starts, p.span);
  if (p.stepped) x = b.Slice(x, Ints(p.span.size(), 0), p.span, p.step);
  x = b.Transpose(b.Reshape(x, SizesAt(view, p.mapped)), Permutation(p.mapped, p.mapped_sorted));
  return b.BroadcastInDim(x, SizesOf(view), p.mapped_sorted);
}

// One element of every dimension that the view repeats: what a write through it leaves behind.
Value DropRepeated(hlo::Builder& b, Value x, const std::function<bool(int)>& repeated) {
  Ints start(static_cast<size_t>(b.rank(x)), 0), limit = b.dims(x);
  for (int i = 0; i < b.rank(x); ++i) {
    if (repeated(i)) limit[static_cast<size_t>(i)] = std::min<int64_t>(limit[static_cast<size_t>(i)], 1);
  }
  return b.Slice(x, start, limit);
}

Value WriteWindow(hlo::Builder& b, const graph::Operand& view, Value base, Value update, const StartIndex& start) {
  WindowPlan p = PlanWindow(b, view, start);
  update = DropRepeated(b, update, [&](int i) { return view.access.map[i] < 0; });
  update = b.Transpose(b.Reshape(update, SizesAt(view, p.mapped_sorted)), Permutation(p.mapped_sorted, p.mapped));
  update = b.Reshape(update, p.count);
  Value old = b.Reshape(base, p.window);
  if (p.stepped) {
    // Spread the update over the span and keep the old elements in between: exact, and one fused loop.
    size_t rank = p.count.size();
    Ints zero(rank, 0), interior;
    for (int64_t s : p.step) interior.push_back(s - 1);
    Value spread = b.Pad(update, b.Constant(view.dtype, 0), zero, zero, interior);
    Value mask;
    for (size_t j = 0; j < rank; ++j) {
      if (p.step[j] == 1) continue;
      Value i = b.Iota(TensorType(DType::kI32, {p.span[j]}), 0);
      Value hit = b.Cmp(hlo::Compare::kEq, b.Binary("remainder", i, p.step[j]), 0);
      hit = b.BroadcastInDim(hit, p.span, {static_cast<int64_t>(j)});
      mask = mask.valid() ? b.And(mask, hit) : hit;
    }
    update = b.Select(mask, spread, b.DynamicSlice(old, p.starts, p.span));
  }
  return b.DynamicUpdateSlice(old, update, p.starts);
}

// Flat positions of a view's elements; dimensions with stride 0 have size 1.
Value FlatIndices(hlo::Builder& b, const graph::Operand& view, int64_t base_size, const StartIndex& start) {
  DType index = NeedsWideIndex(base_size) ? DType::kI64 : DType::kI32;
  TensorType t = TensorType::Scalar(index);
  for (int i = 0; i < view.rank; ++i)
    t.Append(view.strides[i] == 0 ? std::min<int64_t>(1, view.sizes[i].size()) : view.sizes[i].size());
  Value sum = b.Broadcast(start(0, index), Ints(t.begin(), t.end()));
  for (int i = 0; i < view.rank; ++i) {
    if (t.dims[i].size() <= 1) continue;
    Value position = b.Binary("multiply", b.Iota(TensorType(index, {t.dims[i].size()}), 0), view.strides[i]);
    sum = b.Add(sum, b.BroadcastInDim(position, Ints(t.begin(), t.end()), {i}));
  }
  return sum;
}

Value ReadGather(hlo::Builder& b, const graph::Operand& view, Value base, const StartIndex& start) {
  Value flat = b.Flatten(base);
  Value indices = FlatIndices(b, view, b.type(flat).numel(), start);
  hlo::GatherDims dims;
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = b.rank(indices);
  return b.Broadcast(b.Gather(flat, indices, dims, {1}), SizesOf(view));
}

Value WriteScatter(hlo::Builder& b, const graph::Operand& view, Value base, Value update, const StartIndex& start) {
  Value flat = b.Flatten(base);
  Value indices = FlatIndices(b, view, b.type(flat).numel(), start);
  update = DropRepeated(b, update, [&](int i) { return view.strides[i] == 0; });
  hlo::ScatterDims dims;
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = b.rank(indices);
  return b.ScatterSet(flat, indices, update, dims, false, false);
}

}  // namespace

Value ApplyBits(hlo::Builder& b, const graph::Operand& view, Value x) {
  if (view.conj && IsComplex(b.dtype(x))) x = b.Complex(b.Real(x), b.Neg(b.Imag(x)));
  if (view.neg) x = b.Neg(x);
  return x;
}

Value ReadView(hlo::Builder& b, const graph::Operand& view, Value base, const StartIndex& start) {
  using graph::AccessMode;
  if (view.access.mode == AccessMode::kEmpty) return b.Constant(view.type(), 0);
  Value x = ReinterpretValue(b, base, view.dtype);
  switch (view.access.mode) {
    case AccessMode::kSlice:
      x = ReadWindow(b, view, x, start);
      break;
    case AccessMode::kGather:
      x = ReadGather(b, view, x, start);
      break;
    case AccessMode::kFlat: {
      x = b.Flatten(x);
      DType index = NeedsWideIndex(b.dim(x, 0)) ? DType::kI64 : DType::kI32;
      x = b.DynamicSlice(x, {start(0, index)}, {view.type().numel()});
      break;
    }
    default:
      break;
  }
  return ApplyBits(b, view, b.Reshape(x, SizesOf(view)));
}

Value WriteView(hlo::Builder& b, const graph::Operand& view, Value base, Value update, const StartIndex& start) {
  using graph::AccessMode;
  Value old = ReinterpretValue(b, base, view.dtype);
  Ints dims = b.dims(old);
  update = ApplyBits(b, view, update);
  switch (view.access.mode) {
    case AccessMode::kEmpty:
      return old;
    case AccessMode::kSlice:
      old = WriteWindow(b, view, old, update, start);
      break;
    case AccessMode::kGather:
      old = WriteScatter(b, view, old, update, start);
      break;
    case AccessMode::kFlat: {
      old = b.Flatten(old);
      DType index = NeedsWideIndex(b.dim(old, 0)) ? DType::kI64 : DType::kI32;
      old = b.DynamicUpdateSlice(old, b.Flatten(update), {start(0, index)});
      break;
    }
    default:
      old = update;
  }
  return b.Reshape(old, dims);
}

}  // namespace tpu::lower
