// SPDX-License-Identifier: Apache-2.0
#include "hlo/literal.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace tpu::hlo {
namespace {

// Rounds to a format with E exponent and M mantissa bits. From double in one step: going through float would round twice.
uint64_t EncodeNarrow(double v, int e_bits, int m_bits, bool finite_only) {
  uint64_t sign = static_cast<uint64_t>(std::signbit(v)) << (e_bits + m_bits);
  uint64_t exponent_mask = ((1ull << e_bits) - 1) << m_bits;
  if (std::isnan(v)) {
    return sign | exponent_mask | (finite_only ? (1ull << m_bits) - 1 : 1ull << (m_bits - 1));
  }
  uint64_t largest = finite_only ? exponent_mask + (1ull << m_bits) - 2 : exponent_mask - 1;
  uint64_t overflow = finite_only ? largest : exponent_mask;
  double a = std::fabs(v);
  if (a == 0) return sign;
  if (std::isinf(a)) return sign | overflow;
  int bias = (1 << (e_bits - 1)) - 1;
  int e = std::max(std::ilogb(a), 1 - bias);
  auto q = static_cast<uint64_t>(std::nearbyint(std::ldexp(a, m_bits - e)));
  if (e > bias + 1) return sign | overflow;
  // A carry out of the mantissa moves into the exponent by itself; so does a subnormal that becomes normal.
  uint64_t bits = q + (static_cast<uint64_t>(e + bias - 1) << m_bits);
  return sign | (bits > largest ? overflow : bits);
}

void AppendHex(std::string* out, uint64_t bits, int digits) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  *out += "0x";
  for (int i = digits - 1; i >= 0; --i) *out += kDigits[(bits >> (4 * i)) & 15];
}

}  // namespace

uint64_t EncodeFloat(double v, DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return std::bit_cast<uint64_t>(v);
    case DType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(v));
    case DType::kF16:
      return EncodeNarrow(v, 5, 10, false);
    case DType::kBF16:
      return EncodeNarrow(v, 8, 7, false);
    case DType::kF8E4M3FN:
      return EncodeNarrow(v, 4, 3, true);
    default:
      return EncodeNarrow(v, 5, 2, false);
  }
}

void AppendInt(std::string* out, int64_t v) {
  char buffer[24];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  out->append(buffer, end);
}

void AppendType(std::string* out, const TensorType& type) {
  *out += "tensor<";
  for (Dim d : type) {
    AppendInt(out, d.size());
    *out += 'x';
  }
  *out += HloName(type.dtype);
  *out += '>';
}

void AppendElement(std::string* out, DType dtype, int64_t v) {
  if (IsFloat(dtype) || IsComplex(dtype)) return AppendElement(out, dtype, static_cast<double>(v));
  switch (dtype) {
    case DType::kBool:
      *out += v ? "true" : "false";
      return;
    case DType::kU8:
      return AppendInt(out, static_cast<uint8_t>(v));
    case DType::kU16:
      return AppendInt(out, static_cast<uint16_t>(v));
    case DType::kU32:
      return AppendInt(out, static_cast<uint32_t>(v));
    case DType::kU64:
      *out += std::to_string(static_cast<uint64_t>(v));
      return;
    case DType::kI8:
      return AppendInt(out, static_cast<int8_t>(v));
    case DType::kI16:
      return AppendInt(out, static_cast<int16_t>(v));
    case DType::kI32:
      return AppendInt(out, static_cast<int32_t>(v));
    default:
      return AppendInt(out, v);
  }
}

void AppendElement(std::string* out, DType dtype, double v) {
  if (IsComplex(dtype)) return AppendElement(out, dtype, std::complex<double>(v, 0));
  if (dtype == DType::kBool) return AppendElement(out, dtype, static_cast<int64_t>(v != 0));
  if (!IsFloat(dtype)) {
    // Out of range is undefined in C++: saturate, NaN to 0.
    int64_t i = std::isnan(v) ? 0
                : v >= 9.2233720368547758e18
                    ? (dtype == DType::kU64 ? static_cast<int64_t>(static_cast<uint64_t>(v)) : INT64_MAX)
                : v <= -9.2233720368547758e18 ? INT64_MIN
                                              : static_cast<int64_t>(v);
    return AppendElement(out, dtype, i);
  }
  AppendHex(out, EncodeFloat(v, dtype), 2 * static_cast<int>(ItemSize(dtype)));
}

void AppendElement(std::string* out, DType dtype, std::complex<double> v) {
  if (!IsComplex(dtype)) return AppendElement(out, dtype, v.real());
  *out += '(';
  AppendElement(out, RealType(dtype), v.real());
  *out += ", ";
  AppendElement(out, RealType(dtype), v.imag());
  *out += ')';
}

}  // namespace tpu::hlo
