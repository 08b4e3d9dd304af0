// SPDX-License-Identifier: Apache-2.0
#include "graph/access.h"

namespace tpu::graph {
namespace {

void RowMajorStrides(const int64_t* dims, int rank, int64_t* strides) {
  int64_t s = 1;
  for (int j = rank - 1; j >= 0; --j) {
    strides[j] = s;
    s *= dims[j];
  }
}

// The offset in mixed radix: the window starts there in every dimension. The first digit is not reduced: an offset past
// the end must not fit by accident.
void Digits(int64_t offset, const int64_t* strides, const int64_t* dims, int rank, int64_t* starts) {
  for (int j = 0; j < rank; ++j) starts[j] = j == 0 ? offset / strides[j] : (offset / strides[j]) % dims[j];
}

// Stable, by falling stride.
template <class Index>
void SortByStride(const View& v, Index* dims, int n) {
  for (int i = 1; i < n; ++i) {
    Index x = dims[i];
    int j = i;
    for (; j > 0 && v.strides[dims[j - 1]] < v.strides[x]; --j) dims[j] = dims[j - 1];
    dims[j] = x;
  }
}

bool Walks(const View& v, int i) { return v.sizes[i] != 1 && v.strides[i] != 0; }

// Tries to walk the window given by access->window. Requires: every window dimension is at least 1.
bool FitWindow(const View& v, Access* a, int64_t* starts) {
  int64_t strides[kMaxRank];
  RowMajorStrides(a->window, a->window_rank, strides);
  Digits(v.offset, strides, a->window, a->window_rank, starts);
  if (a->window_rank && starts[0] >= a->window[0]) return false;
  if (!a->window_rank && v.offset) return false;
  unsigned used = 0;
  for (int i = 0; i < v.rank; ++i) {
    a->map[i] = -1;
    a->step[i] = 0;
    if (!Walks(v, i)) continue;
    bool found = false;
    for (int j = 0; j < a->window_rank && !found; ++j) {
      if ((used >> j & 1) || a->window[j] == 1 || strides[j] > v.strides[i] || v.strides[i] % strides[j]) continue;
      int64_t step = v.strides[i] / strides[j];
      if (starts[j] + step * (v.sizes[i] - 1) >= a->window[j]) continue;
      a->map[i] = static_cast<int8_t>(j);
      a->step[i] = step;
      used |= 1u << j;
      found = true;
    }
    if (!found) return false;
  }
  return true;
}

// Window dimensions made from the view's own strides: n/s1, s1/s2, ..., sk. They fit whenever the strides divide each
// other, whatever dimensions the base has.
bool FactorWindow(const View& v, int64_t numel, Access* a, int64_t* starts) {
  int walking[kMaxRank], n = 0;
  for (int i = 0; i < v.rank; ++i)
    if (Walks(v, i)) walking[n++] = i;
  SortByStride(v, walking, n);
  int64_t outer = numel;
  a->window_rank = 0;
  for (int k = 0; k < n; ++k) {
    int64_t s = v.strides[walking[k]];
    if (outer % s || a->window_rank + 1 >= kMaxRank) return false;
    a->window[a->window_rank++] = outer / s;
    outer = s;
  }
  if (outer != 1 || a->window_rank == 0) a->window[a->window_rank++] = outer;
  return FitWindow(v, a, starts);
}

}  // namespace

int64_t Access::span(const View& view, int j) const {
  for (int i = 0; i < view.rank; ++i)
    if (map[i] == j) return (view.sizes[i] - 1) * step[i] + 1;
  return 1;
}

int Access::num_starts(const View& view) const {
  switch (mode) {
    case AccessMode::kFlat:
    case AccessMode::kGather:
      return 1;
    case AccessMode::kSlice: {
      int n = 0;
      for (int j = 0; j < window_rank; ++j) n += span(view, j) != window[j];
      return n;
    }
    default:
      return 0;
  }
}

TensorType Reinterpret(const TensorType& base, DType dtype) {
  if (base.dtype == dtype) return base;
  int64_t from = static_cast<int64_t>(ItemSize(base.dtype)), to = static_cast<int64_t>(ItemSize(dtype));
  if (from == to) return base.With(dtype);
  TensorType t = base.With(dtype);
  if (base.rank && (base.dims[base.rank - 1].size() * from) % to == 0) {
    t.dims[base.rank - 1] = base.dims[base.rank - 1].size() * from / to;
    return t;
  }
  int64_t bytes = base.numel() * from;
  TensorType flat;
  if (bytes % to) return flat;
  flat.dtype = dtype;
  flat.Append(bytes / to);
  return flat;
}

void Analyse(const View& v, const TensorType& base, Access* a, int64_t* starts) {
  TensorType seen = Reinterpret(base, v.dtype);
  int64_t numel = 1, expect = 1;
  for (int i = 0; i < v.rank; ++i) numel *= v.sizes[i];
  bool contiguous = true;
  for (int i = v.rank - 1; i >= 0; --i) {
    if (v.sizes[i] != 1 && v.strides[i] != expect) contiguous = false;
    expect *= v.sizes[i];
  }
  int64_t base_numel = seen.numel();
  if (numel == 0) {
    bool same = v.rank == seen.rank;
    for (int i = 0; same && i < v.rank; ++i) same = v.sizes[i] == seen.dims[i].size();
    a->mode = same ? AccessMode::kWhole : AccessMode::kEmpty;
    return;
  }
  if (contiguous && v.offset == 0 && numel == base_numel) {
    bool same = v.rank == seen.rank;
    for (int i = 0; same && i < v.rank; ++i) same = v.sizes[i] == seen.dims[i].size();
    a->mode = same ? AccessMode::kWhole : AccessMode::kReshape;
    return;
  }
  a->mode = AccessMode::kSlice;
  a->window_rank = seen.rank;
  for (int j = 0; j < seen.rank; ++j) a->window[j] = seen.dims[j].size();
  int64_t found[kMaxRank];
  if (base_numel && (FitWindow(v, a, found) || FactorWindow(v, base_numel, a, found))) {
    int n = 0;
    for (int j = 0; j < a->window_rank; ++j)
      if (a->span(v, j) != a->window[j]) starts[n++] = found[j];
    return;
  }
  a->mode = contiguous ? AccessMode::kFlat : AccessMode::kGather;
  a->window_rank = 0;
  starts[0] = v.offset;
}

bool CoversStorage(const View& v, size_t storage_bytes, int8_t* order) {
  if (v.offset != 0) return false;
  int64_t numel = 1;
  for (int i = 0; i < v.rank; ++i) {
    numel *= v.sizes[i];
    order[i] = static_cast<int8_t>(i);
  }
  if (static_cast<size_t>(numel) * ItemSize(v.dtype) != storage_bytes) return false;
  if (numel == 0) return true;
  SortByStride(v, order, v.rank);
  int64_t expect = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    int d = order[i];
    if (v.sizes[d] == 1) continue;
    if (v.strides[d] != expect) return false;
    expect *= v.sizes[d];
  }
  return true;
}

}  // namespace tpu::graph
