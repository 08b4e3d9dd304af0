// SPDX-License-Identifier: Apache-2.0
// A dense row-major array in host memory, read and written as numbers whatever its element type. For tests.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <vector>

#include "base/tensor_type.h"
#include "hlo/literal.h"

namespace tpu::lower {

struct HostTensor {
  TensorType type;
  std::vector<uint8_t> bytes;

  static HostTensor Zeros(const TensorType& type) { return {type, std::vector<uint8_t>(type.bytes())}; }
  // Numbers are rounded to the element type.
  static HostTensor Of(const TensorType& type, const std::vector<double>& values) {
    HostTensor t = Zeros(type);
    for (size_t i = 0; i < values.size(); ++i) t.Set(static_cast<int64_t>(i), values[i]);
    return t;
  }
  static HostTensor OfComplex(const TensorType& type, const std::vector<std::complex<double>>& values) {
    HostTensor t = Zeros(type);
    for (size_t i = 0; i < values.size(); ++i) t.Set(static_cast<int64_t>(i), values[i]);
    return t;
  }
  // 0, 1, 2, ...
  static HostTensor Range(const TensorType& type) {
    HostTensor t = Zeros(type);
    for (int64_t i = 0; i < type.numel(); ++i) t.Set(i, static_cast<double>(i));
    return t;
  }
  template <class T>
  static HostTensor Raw(const TensorType& type, const std::vector<T>& data) {
    HostTensor t = Zeros(type);
    std::memcpy(t.bytes.data(), data.data(), t.bytes.size());
    return t;
  }

  std::complex<double> Get(int64_t i) const {
    const uint8_t* p = &bytes[static_cast<size_t>(i) * ItemSize(type.dtype)];
    switch (type.dtype) {
      case DType::kF64:
        return As<double>(p);
      case DType::kF32:
        return As<float>(p);
      case DType::kF16:
        return Narrow(As<uint16_t>(p), 5, 10, false);
      case DType::kBF16:
        return Narrow(As<uint16_t>(p), 8, 7, false);
      case DType::kF8E4M3FN:
        return Narrow(*p, 4, 3, true);
      case DType::kF8E5M2:
        return Narrow(*p, 5, 2, false);
      case DType::kC64:
        return {As<float>(p), As<float>(p + 4)};
      case DType::kC128:
        return {As<double>(p), As<double>(p + 8)};
      case DType::kU64:
        return static_cast<double>(As<uint64_t>(p));
      default:
        return static_cast<double>(GetInt(i));
    }
  }
  int64_t GetInt(int64_t i) const {
    const uint8_t* p = &bytes[static_cast<size_t>(i) * ItemSize(type.dtype)];
    switch (type.dtype) {
      case DType::kBool:
      case DType::kU8:
        return *p;
      case DType::kI8:
        return As<int8_t>(p);
      case DType::kU16:
        return As<uint16_t>(p);
      case DType::kI16:
        return As<int16_t>(p);
      case DType::kU32:
        return As<uint32_t>(p);
      case DType::kI32:
        return As<int32_t>(p);
      case DType::kU64:
      case DType::kI64:
        return As<int64_t>(p);
      default:
        return static_cast<int64_t>(Get(i).real());
    }
  }
  void Set(int64_t i, std::complex<double> v) {
    uint8_t* p = &bytes[static_cast<size_t>(i) * ItemSize(type.dtype)];
    if (IsComplex(type.dtype)) {
      DType part = RealType(type.dtype);
      for (double x : {v.real(), v.imag()}) {
        uint64_t bits = hlo::EncodeFloat(x, part);
        std::memcpy(p, &bits, ItemSize(part));
        p += ItemSize(part);
      }
    } else if (IsFloat(type.dtype)) {
      uint64_t bits = hlo::EncodeFloat(v.real(), type.dtype);
      std::memcpy(p, &bits, ItemSize(type.dtype));
    } else {
      SetInt(i, static_cast<int64_t>(v.real()));
    }
  }
  void SetInt(int64_t i, int64_t v) {
    if (IsFloat(type.dtype) || IsComplex(type.dtype)) return Set(i, static_cast<double>(v));
    if (type.dtype == DType::kBool) v = v != 0;
    std::memcpy(&bytes[static_cast<size_t>(i) * ItemSize(type.dtype)], &v, ItemSize(type.dtype));
  }
  std::vector<double> Numbers() const {
    std::vector<double> v;
    for (int64_t i = 0; i < type.numel(); ++i) v.push_back(Get(i).real());
    return v;
  }
  // This value's dimension j is dimension order[j] of the result.
  HostTensor Permuted(const TensorType& to, const std::vector<int>& order) const {
    HostTensor out = Zeros(to);
    size_t item = ItemSize(type.dtype);
    std::vector<int64_t> stride(order.size(), 1);
    for (int i = to.rank - 2; i >= 0; --i) {
      stride[static_cast<size_t>(i)] = stride[static_cast<size_t>(i) + 1] * to.dims[i + 1].size();
    }
    for (int64_t n = 0; n < type.numel(); ++n) {
      int64_t rest = n, at = 0;
      for (size_t j = order.size(); j-- > 0;) {
        int64_t size = type.dims[j].size();
        at += rest % size * stride[static_cast<size_t>(order[j])];
        rest /= size;
      }
      std::memcpy(&out.bytes[static_cast<size_t>(at) * item], &bytes[static_cast<size_t>(n) * item], item);
    }
    return out;
  }

 private:
  template <class T>
  static T As(const uint8_t* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static double Narrow(uint32_t bits, int e_bits, int m_bits, bool finite_only) {
    uint32_t m = bits & ((1u << m_bits) - 1), e = bits >> m_bits & ((1u << e_bits) - 1);
    double sign = bits >> (e_bits + m_bits) & 1 ? -1.0 : 1.0;
    int bias = (1 << (e_bits - 1)) - 1;
    uint32_t top = (1u << e_bits) - 1;
    if (e == top && (!finite_only || m == (1u << m_bits) - 1)) {
      return m ? std::nan("") : sign * HUGE_VAL;
    }
    if (e == 0) return sign * std::ldexp(m, 1 - bias - m_bits);
    return sign * std::ldexp(m + (1u << m_bits), static_cast<int>(e) - bias - m_bits);
  }
};

}  // namespace tpu::lower
