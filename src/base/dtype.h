// SPDX-License-Identifier: Apache-2.0
// Element types: the set that ATen, StableHLO and PJRT share.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tpu {

// The order is part of the cache key format: append only.
enum class DType : uint8_t {
  kBool,
  kU8,
  kU16,
  kU32,
  kU64,
  kI8,
  kI16,
  kI32,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kF8E4M3FN,
  kF8E5M2,
  kInvalid,
};

inline constexpr uint8_t kItemSizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1, 0};

constexpr size_t ItemSize(DType dtype) { return kItemSizes[static_cast<int>(dtype)]; }

// StableHLO's spelling: "i1", "ui8", "f32", "complex<f32>", ...
const char* HloName(DType dtype);

constexpr bool IsComplex(DType d) { return d == DType::kC64 || d == DType::kC128; }
constexpr bool IsFloat(DType d) {
  return d == DType::kF16 || d == DType::kBF16 || d == DType::kF32 || d == DType::kF64 || d == DType::kF8E4M3FN ||
         d == DType::kF8E5M2;
}
constexpr bool IsUnsigned(DType d) { return d == DType::kU8 || d == DType::kU16 || d == DType::kU32 || d == DType::kU64; }
constexpr bool IsSigned(DType d) { return d == DType::kI8 || d == DType::kI16 || d == DType::kI32 || d == DType::kI64; }
// Integers without bool.
constexpr bool IsInteger(DType d) { return IsUnsigned(d) || IsSigned(d); }

// The type ATen computes in ("opmath"): f32 for the narrow floats, else the type itself.
constexpr DType OpMathType(DType d) {
  return d == DType::kF16 || d == DType::kBF16 || d == DType::kF8E4M3FN || d == DType::kF8E5M2 ? DType::kF32 : d;
}
// The real type of a complex one; other types are returned as they are.
constexpr DType RealType(DType d) { return d == DType::kC64 ? DType::kF32 : d == DType::kC128 ? DType::kF64 : d; }

}  // namespace tpu
