// SPDX-License-Identifier: Apache-2.0
// Random strided views of random base values, and what they must read: the oracle of the tests of this folder.
#pragma once
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "graph/access.h"

namespace tpu::graph {

// A view that owns its sizes and strides.
struct OwnedView {
  DType dtype = DType::kF32;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;

  View view() const { return {dtype, static_cast<uint8_t>(sizes.size()), sizes.data(), strides.data(), offset}; }
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  // The last element it reaches. Requires: numel() > 0.
  int64_t last() const {
    int64_t at = offset;
    for (size_t i = 0; i < sizes.size(); ++i) at += (sizes[i] - 1) * strides[i];
    return at;
  }
  std::string ToString() const {
    std::string s = "sizes";
    for (int64_t n : sizes) s += " " + std::to_string(n);
    s += ", strides";
    for (int64_t n : strides) s += " " + std::to_string(n);
    return s + ", offset " + std::to_string(offset);
  }
};

inline std::vector<int64_t> RowMajor(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t s = 1;
  for (size_t i = sizes.size(); i-- > 0; s *= std::max<int64_t>(sizes[i], 1)) strides[i] = s;
  return strides;
}

// Calls f(index) for every index of `sizes`, row-major.
template <class F>
void ForEachIndex(const std::vector<int64_t>& sizes, F f) {
  for (int64_t s : sizes)
    if (s == 0) return;
  std::vector<int64_t> index(sizes.size(), 0);
  for (;;) {
    f(index);
    size_t d = sizes.size();
    while (d-- > 0) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

// The flat elements of the base that the view reads, in its own order.
inline std::vector<int64_t> Oracle(const OwnedView& v) {
  std::vector<int64_t> flat;
  ForEachIndex(v.sizes, [&](const std::vector<int64_t>& index) {
    int64_t at = v.offset;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * v.strides[i];
    flat.push_back(at);
  });
  return flat;
}

class RandomViews {
 public:
  explicit RandomViews(uint32_t seed) : rng_(seed) {}

  int64_t Pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng_); }

  TensorType Base() {
    TensorType t = TensorType::Scalar(DType::kF32);
    for (int64_t rank = Pick(0, 4); rank > 0; --rank) t.Append(Pick(0, 9) == 0 ? 1 : Pick(1, 6));
    return t;
  }

  // By view operations, as users make them: always inside the base.
  OwnedView Chain(const TensorType& base) {
    OwnedView v;
    v.dtype = base.dtype;
    for (Dim d : base) v.sizes.push_back(d.size());
    v.strides = RowMajor(v.sizes);
    for (int64_t steps = Pick(0, 4); steps > 0; --steps) Step(&v);
    return v;
  }

  // By arbitrary sizes and strides (as_strided): often overlapping, always inside the base.
  OwnedView Strided(const TensorType& base) {
    OwnedView v;
    v.dtype = base.dtype;
    int64_t room = base.numel() - 1;
    v.offset = Pick(0, room);
    room -= v.offset;
    for (int64_t rank = Pick(0, 4); rank > 0; --rank) {
      int64_t size = Pick(1, 4), stride = Pick(0, 7);
      if ((size - 1) * stride > room) size = 1;
      room -= (size - 1) * stride;
      v.sizes.push_back(size);
      v.strides.push_back(stride);
    }
    return v;
  }

 private:
  void Step(OwnedView* v) {
    auto rank = static_cast<int64_t>(v->sizes.size());
    switch (Pick(0, 6)) {
      case 0:  // narrow
        if (rank) {
          auto d = static_cast<size_t>(Pick(0, rank - 1));
          int64_t begin = Pick(0, v->sizes[d] - 1), size = Pick(1, v->sizes[d] - begin);
          v->offset += begin * v->strides[d];
          v->sizes[d] = size;
        }
        break;
      case 1:  // step
        if (rank) {
          auto d = static_cast<size_t>(Pick(0, rank - 1));
          int64_t step = Pick(1, 3);
          v->sizes[d] = (v->sizes[d] + step - 1) / step;
          v->strides[d] *= step;
        }
        break;
      case 2:  // select
        if (rank) {
          auto d = static_cast<ptrdiff_t>(Pick(0, rank - 1));
          v->offset += Pick(0, v->sizes[static_cast<size_t>(d)] - 1) * v->strides[static_cast<size_t>(d)];
          v->sizes.erase(v->sizes.begin() + d);
          v->strides.erase(v->strides.begin() + d);
        }
        break;
      case 3:  // transpose
        if (rank > 1) {
          auto a = static_cast<size_t>(Pick(0, rank - 1)), b = static_cast<size_t>(Pick(0, rank - 1));
          std::swap(v->sizes[a], v->sizes[b]);
          std::swap(v->strides[a], v->strides[b]);
        }
        break;
      case 4:  // expand, or unsqueeze with an odd stride
        if (rank < kMaxRank - 1) {
          auto at = static_cast<ptrdiff_t>(Pick(0, rank));
          bool wide = Pick(0, 1);
          v->sizes.insert(v->sizes.begin() + at, wide ? Pick(1, 3) : 1);
          v->strides.insert(v->strides.begin() + at, wide ? 0 : Pick(0, 9));
        }
        break;
      case 5:  // split a dimension in two, as reshape does
        if (rank && rank < kMaxRank - 1) {
          auto d = static_cast<size_t>(Pick(0, rank - 1));
          for (int64_t inner = 2; inner <= 3; ++inner) {
            if (v->sizes[d] % inner) continue;
            v->sizes.insert(v->sizes.begin() + static_cast<ptrdiff_t>(d) + 1, inner);
            v->strides.insert(v->strides.begin() + static_cast<ptrdiff_t>(d) + 1, v->strides[d]);
            v->sizes[d] /= inner;
            v->strides[d] *= inner;
            break;
          }
        }
        break;
      case 6:  // merge two neighbours that lie behind each other
        for (size_t d = 0; d + 1 < v->sizes.size(); ++d) {
          if (v->strides[d] != v->strides[d + 1] * v->sizes[d + 1]) continue;
          v->sizes[d] *= v->sizes[d + 1];
          v->strides[d] = v->strides[d + 1];
          v->sizes.erase(v->sizes.begin() + static_cast<ptrdiff_t>(d) + 1);
          v->strides.erase(v->strides.begin() + static_cast<ptrdiff_t>(d) + 1);
          break;
        }
        break;
    }
  }

  std::mt19937 rng_;
};

}  // namespace tpu::graph
