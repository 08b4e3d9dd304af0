// SPDX-License-Identifier: Apache-2.0
#include "tensor.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "control_state.h"

namespace fake_pjrt {
namespace {

struct NarrowFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity;  // f8E4M3FN: the all-ones pattern is the only NaN, no infinity
};

NarrowFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {5, 10, true};
    case DType::kBF16:
      return {8, 7, true};
    case DType::kF8E5M2:
      return {5, 2, true};
    default:
      return {4, 3, false};
  }
}

}  // namespace

int64_t NumElements(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

Dims RowMajorStrides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

std::string Type::ToString() const {
  std::string s = "tensor<";
  for (int64_t d : dims) s += std::to_string(d) + "x";
  return s + tpu::HloName(dtype) + ">";
}

std::shared_ptr<Memory> Memory::Allocate(size_t bytes) {
  if (bytes > size_t{1} << 38) return nullptr;  // sanitizers abort where malloc would return null
  std::shared_ptr<Memory> m(new Memory);
  size_t rounded = (bytes + 64) / 64 * 64;  // at least one block, so that data() is never null
  m->data_ = static_cast<uint8_t*>(std::aligned_alloc(64, rounded));
  if (!m->data_) return nullptr;
  m->size_ = bytes;
  m->owned_ = true;
  return m;
}

std::shared_ptr<Memory> Memory::AllocateCounted(size_t bytes) {
  if (!ControlState::Get().TakeBytes(bytes)) return nullptr;
  std::shared_ptr<Memory> m = Allocate(bytes);
  if (m)
    m->counted_ = true;
  else
    ControlState::Get().ReturnBytes(bytes);
  return m;
}

std::shared_ptr<Memory> Memory::Borrow(void* data, size_t bytes, bool writable, std::function<void()> release) {
  std::shared_ptr<Memory> m(new Memory);
  m->data_ = static_cast<uint8_t*>(data);
  m->size_ = bytes;
  m->writable_ = writable;
  m->release_ = std::move(release);
  return m;
}

Memory::~Memory() {
  if (counted_) ControlState::Get().ReturnBytes(size_);
  if (owned_) std::free(data_);
  if (release_) release_();
}

Tensor Tensor::Empty(Type type) {
  std::shared_ptr<Memory> memory = Memory::Allocate(type.bytes());
  if (!memory) {
    std::fprintf(stderr, "fake_pjrt: no memory for a temporary %s\n", type.ToString().c_str());
    std::abort();
  }
  return {std::move(type), std::move(memory)};
}

float DecodeNarrow(DType dtype, uint16_t bits) {
  if (dtype == DType::kBF16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  NarrowFormat f = FormatOf(dtype);
  int sign = bits >> (f.exponent_bits + f.mantissa_bits) & 1;
  int exponent = bits >> f.mantissa_bits & ((1 << f.exponent_bits) - 1);
  int mantissa = bits & ((1 << f.mantissa_bits) - 1);
  int bias = (1 << (f.exponent_bits - 1)) - 1, top = (1 << f.exponent_bits) - 1;
  float value;
  if (exponent == top && f.has_infinity) {
    value = mantissa ? NAN : INFINITY;
  } else if (exponent == top && mantissa == (1 << f.mantissa_bits) - 1) {
    value = NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), 1 - bias - f.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa_bits)), exponent - bias - f.mantissa_bits);
  }
  return sign ? -value : value;
}

uint16_t EncodeNarrow(DType dtype, float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (dtype == DType::kBF16) {
    if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
  NarrowFormat f = FormatOf(dtype);
  uint16_t sign = static_cast<uint16_t>(bits >> 31 << (f.exponent_bits + f.mantissa_bits));
  int top = (1 << f.exponent_bits) - 1, bias = (1 << (f.exponent_bits - 1)) - 1;
  uint16_t infinity = static_cast<uint16_t>(top << f.mantissa_bits);
  uint16_t nan = f.has_infinity ? infinity | (1 << (f.mantissa_bits - 1)) : infinity | ((1 << f.mantissa_bits) - 1);
  if (std::isnan(value)) return sign | nan;
  uint16_t overflow = f.has_infinity ? infinity : nan;
  if (std::isinf(value)) return sign | overflow;
  int exponent = static_cast<int>(bits >> 23 & 0xFF) - 127;
  uint32_t mantissa = (bits & 0x7FFFFF) | 0x800000;
  if (exponent < -126) return sign;  // an f32 subnormal is below every half-ulp of these formats
  int shift = 23 - f.mantissa_bits, field = exponent + bias;
  if (field <= 0) {
    shift += 1 - field;
    field = 0;
    if (shift > 24) return sign;
  }
  uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // `kept` holds the implicit bit, so adding it to (field - 1) carries into the exponent by itself.
  uint32_t result = field == 0 ? kept : (static_cast<uint32_t>(field - 1) << f.mantissa_bits) + kept;
  if (f.has_infinity ? result >= infinity : result >= nan) return sign | overflow;
  return sign | static_cast<uint16_t>(result);
}

Tensor Widened(const Tensor& t) {
  if (!IsNarrowFloat(t.type.dtype)) return t;
  Tensor wide = Tensor::Empty(t.type.With(DType::kF32));
  int64_t n = t.type.numel();
  for (int64_t i = 0; i < n; ++i)
    wide.As<float>()[i] =
        DecodeNarrow(t.type.dtype, tpu::ItemSize(t.type.dtype) == 2 ? t.As<uint16_t>()[i] : t.As<uint8_t>()[i]);
  return wide;
}

Tensor Narrowed(const Tensor& t, DType dtype) {
  if (!IsNarrowFloat(dtype)) return t;
  Tensor narrow = Tensor::Empty(t.type.With(dtype));
  int64_t n = t.type.numel();
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits = EncodeNarrow(dtype, t.As<float>()[i]);
    if (tpu::ItemSize(dtype) == 2)
      narrow.As<uint16_t>()[i] = bits;
    else
      narrow.As<uint8_t>()[i] = static_cast<uint8_t>(bits);
  }
  return narrow;
}

DType ParseDType(std::string_view name) {
  for (int d = 0; d < static_cast<int>(DType::kInvalid); ++d)
    if (name == tpu::HloName(static_cast<DType>(d))) return static_cast<DType>(d);
  return DType::kInvalid;
}

int64_t IntegerAt(const Tensor& t, int64_t index) {
  return VisitCompute(t.type.dtype, [&]<class T>() -> int64_t {
    if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(t.As<T>()[index]);
    return 0;
  });
}

bool NextIndex(const Dims& dims, Dims* index) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++(*index)[i] < dims[i]) return true;
    (*index)[i] = 0;
  }
  return false;
}

}  // namespace fake_pjrt
