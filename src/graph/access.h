// SPDX-License-Identifier: Apache-2.0
// Access: how a strided view reads or writes its base value. The storage offset is not part of it (it becomes start
// indices among the host values); the outcome of the analysis is.
#pragma once
#include <cstdint>

#include "base/tensor_type.h"

namespace tpu::graph {

// Append only: part of the key format.
enum class AccessMode : uint8_t {
  kWhole,    // the view is the base value
  kReshape,  // all elements in order, other dimensions
  kSlice,    // a window of the base seen as `window`: every view dimension walks one window dimension, or none
  kFlat,     // contiguous elements that cross the base's dimensions: a window of the flat base
  kGather,   // anything else: flat indices from iota, strides and offset
  kEmpty,    // no elements; the base is not read
};

// A view as a tensor has it: what the recorder sees.
struct View {
  DType dtype = DType::kInvalid;
  uint8_t rank = 0;
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;  // in elements of dtype
  int64_t offset = 0;                // in elements of dtype
};

struct Access {
  AccessMode mode = AccessMode::kWhole;
  // kSlice: the base, reinterpreted as the view's dtype, seen with these row-major dimensions (its own, unless other
  // ones fit better).
  uint8_t window_rank = 0;
  int64_t window[kMaxRank] = {};
  // kSlice, per view dimension: the window dimension it walks, or -1 (size 1 or broadcast), and its step there.
  int8_t map[kMaxRank] = {};
  int64_t step[kMaxRank] = {};

  // Number of run-time start indices: kSlice one for each window dimension that is not spanned whole, kFlat and kGather
  // one. Order: window dimensions ascending.
  int num_starts(const View& view) const;
  // kSlice: elements spanned in window dimension j.
  int64_t span(const View& view, int j) const;
};

// The base as `dtype` sees it: same bytes, last dimension scaled (flat when it does not divide). Returns a type with
// dtype kInvalid when the bytes do not divide.
TensorType Reinterpret(const TensorType& base, DType dtype);

// Decides the mode for reading or writing `view` of `base`, and the start indices (at most kMaxRank) that its offset
// becomes. No allocation. Requires: view.rank <= kMaxRank.
void Analyse(const View& view, const TensorType& base, Access* access, int64_t* starts);

// True when `view` covers every one of `storage_bytes` bytes exactly once, so that writing it needs nothing of the old
// value. `order` receives the view's dimensions by falling stride: the memory order of the dense value.
bool CoversStorage(const View& view, size_t storage_bytes, int8_t* order);

}  // namespace tpu::graph
