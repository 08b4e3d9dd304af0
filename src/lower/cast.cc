// SPDX-License-Identifier: Apache-2.0
#include "lower/cast.h"

#include <algorithm>

namespace tpu::lower {
namespace {

bool IsF8(DType d) { return d == DType::kF8E4M3FN || d == DType::kF8E5M2; }

hlo::Value FloatToInteger(hlo::Builder& b, hlo::Value x, DType to) {
  if (ItemSize(b.dtype(x)) < 4) x = b.Convert(x, DType::kF32);
  // StableHLO saturates at the narrow type; x86 converts to int64 and keeps the low bits.
  hlo::Value wide = b.Convert(x, DType::kI64);
  if (to != DType::kU64) return b.Convert(wide, to);
  return b.Select(b.Cmp(hlo::Compare::kLt, x, 0), b.Convert(wide, to), b.Convert(x, to));
}

}  // namespace

hlo::Value Cast(hlo::Builder& b, hlo::Value x, DType to) {
  DType from = b.dtype(x);
  if (from == to || !x.valid()) return x;
  // Through a byte: XLA makes a select of x * convert(i1), which loses inf * 0, nan * 0 and the sign of -1 * 0.
  if (from == DType::kBool && !IsInteger(to)) return b.Convert(b.Convert(x, DType::kU8), to);
  if (to == DType::kBool || from == DType::kBool) return b.Convert(x, to);
  if (IsComplex(from)) return IsComplex(to) ? b.Convert(x, to) : Cast(b, b.Real(x), to);
  if (IsComplex(to)) {
    hlo::Value real = Cast(b, x, RealType(to));
    return b.Complex(real, b.Like(real, 0));
  }
  if (IsFloat(from) && IsInteger(to)) return FloatToInteger(b, x, to);
  if (IsF8(to)) {
    x = b.Convert(x, DType::kF32);
    if (to == DType::kF8E4M3FN) {
      x = b.Clamp(b.Constant(DType::kF32, -448.0), x, b.Constant(DType::kF32, 448.0));
    }
  }
  return b.Convert(x, to);
}

DType PromoteTypes(DType a, DType b) {
  if (a == b || b == DType::kInvalid) return a;
  if (a == DType::kInvalid) return b;
  if (IsComplex(a) || IsComplex(b)) {
    bool wide = a == DType::kC128 || b == DType::kC128 || a == DType::kF64 || b == DType::kF64;
    return wide ? DType::kC128 : DType::kC64;
  }
  if (IsFloat(a) || IsFloat(b)) {
    if (!IsFloat(a)) return b;
    if (!IsFloat(b)) return a;
    if (ItemSize(a) != ItemSize(b)) return ItemSize(a) > ItemSize(b) ? a : b;
    return DType::kF32;  // f16 with bf16
  }
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  if (IsUnsigned(a) == IsUnsigned(b)) return ItemSize(a) > ItemSize(b) ? a : b;
  // One signed, one unsigned: the next signed type that holds both.
  DType sign = IsUnsigned(a) ? b : a, plain = IsUnsigned(a) ? a : b;
  if (ItemSize(sign) > ItemSize(plain)) return sign;
  return ItemSize(plain) == 1 ? DType::kI16 : ItemSize(plain) == 2 ? DType::kI32 : DType::kI64;
}

}  // namespace tpu::lower
