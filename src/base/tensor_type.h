// SPDX-License-Identifier: Apache-2.0
// TensorType: element type and dimensions of a dense, row-major array. Plain data, no heap.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "base/dtype.h"
#include "base/status.h"

namespace tpu {

// Ranks above this run through the CPU fallback; their values are stored flat.
inline constexpr int kMaxRank = 8;

// A dimension: a number, or a bounded symbol {bucket, host value}. Stored in one word so that a static
// dimension costs nothing: low 48 bits the size (for a symbol: the bucket, its upper bound), high 16 bits
// 0 for a number, else 1 + the index of the host value that holds the true size.
class Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(int64_t size) : bits_(static_cast<uint64_t>(size)) {}
  static constexpr Dim Symbol(int64_t bucket, int host_value) {
    Dim d(bucket);
    d.bits_ |= static_cast<uint64_t>(host_value + 1) << 48;
    return d;
  }
  constexpr bool is_symbol() const { return bits_ >> 48; }
  // The size of a number, the bucket of a symbol.
  constexpr int64_t size() const { return static_cast<int64_t>(bits_ & ((1ull << 48) - 1)); }
  // Requires: is_symbol().
  constexpr int host_value() const { return static_cast<int>(bits_ >> 48) - 1; }
  constexpr uint64_t bits() const { return bits_; }
  static constexpr Dim FromBits(uint64_t bits) {
    Dim d;
    d.bits_ = bits;
    return d;
  }
  constexpr operator int64_t() const { return size(); }
  friend constexpr bool operator==(Dim a, Dim b) { return a.bits_ == b.bits_; }

 private:
  uint64_t bits_ = 0;
};

struct TensorType {
  DType dtype = DType::kInvalid;
  uint8_t rank = 0;
  Dim dims[kMaxRank] = {};

  TensorType() = default;
  TensorType(DType d, std::initializer_list<int64_t> sizes) : dtype(d) {
    for (int64_t s : sizes) Append(s);
  }
  template <class Sizes>
  static TensorType Of(DType d, const Sizes& sizes) {
    TensorType t;
    t.dtype = d;
    for (auto s : sizes) t.Append(s);
    return t;
  }
  static TensorType Scalar(DType d) { return TensorType(d, {}); }

  void Append(Dim d) {
    TPU_CHECK(rank < kMaxRank);
    dims[rank++] = d;
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i].size();
    return n;
  }
  size_t bytes() const { return static_cast<size_t>(numel()) * ItemSize(dtype); }
  const Dim* begin() const { return dims; }
  const Dim* end() const { return dims + rank; }
  bool SameDims(const TensorType& o) const {
    if (rank != o.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (!(dims[i] == o.dims[i])) return false;
    return true;
  }
  friend bool operator==(const TensorType& a, const TensorType& b) { return a.dtype == b.dtype && a.SameDims(b); }

  TensorType With(DType d) const {
    TensorType t = *this;
    t.dtype = d;
    return t;
  }
  // StableHLO's spelling: "tensor<2x3xf32>".
  std::string ToHlo() const;
};

}  // namespace tpu
