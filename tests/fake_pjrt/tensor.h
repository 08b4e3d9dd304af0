// SPDX-License-Identifier: Apache-2.0
// Host arrays: a type and a 64-byte aligned block of memory, dense and row-major.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace fake_pjrt {

using tpu::DType;
using Dims = std::vector<int64_t>;
using C64 = std::complex<float>;
using C128 = std::complex<double>;

int64_t NumElements(const Dims& dims);
// Row-major strides in elements.
Dims RowMajorStrides(const Dims& dims);

struct Type {
  DType dtype = DType::kInvalid;
  Dims dims;

  size_t rank() const { return dims.size(); }
  int64_t numel() const { return NumElements(dims); }
  size_t bytes() const { return static_cast<size_t>(numel()) * tpu::ItemSize(dtype); }
  Type With(DType d) const { return {d, dims}; }
  Type With(Dims d) const { return {dtype, std::move(d)}; }
  std::string ToString() const;
  friend bool operator==(const Type&, const Type&) = default;
};

// One block. Counted blocks are the device memory of the control surface (control.h); temporaries are not counted.
class Memory {
 public:
  // Null when the machine has not as much.
  static std::shared_ptr<Memory> Allocate(size_t bytes);
  // Null also when the memory limit does not admit `bytes`.
  static std::shared_ptr<Memory> AllocateCounted(size_t bytes);
  // Foreign memory; `release` runs when the last reference goes.
  static std::shared_ptr<Memory> Borrow(void* data, size_t bytes, bool writable, std::function<void()> release);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // False for borrowed memory that its owner forbids to change.
  bool writable() const { return writable_; }

 private:
  Memory() = default;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool owned_ = false, counted_ = false, writable_ = true;
  std::function<void()> release_;
};

struct Tensor {
  Type type;
  std::shared_ptr<Memory> memory;

  static Tensor Empty(Type type);
  uint8_t* bytes() const { return memory->data(); }
  template <class T>
  T* As() const {
    return reinterpret_cast<T*>(memory->data());
  }
  // The same elements under other dimensions. Requires: equal element counts.
  Tensor Reshaped(Dims dims) const { return {type.With(std::move(dims)), memory}; }
};

// Narrow floats. Rounding is to nearest even; overflow follows the format (infinity, or NaN for f8E4M3FN).
float DecodeNarrow(DType dtype, uint16_t bits);
uint16_t EncodeNarrow(DType dtype, float value);
inline bool IsNarrowFloat(DType d) { return tpu::OpMathType(d) != d; }

// Narrow floats become f32; other tensors are returned as they are.
Tensor Widened(const Tensor& t);
// The reverse: `t` converted to `dtype` when that is a narrow float. Requires: t is f32 then, else of type `dtype`.
Tensor Narrowed(const Tensor& t, DType dtype);

// DType <-> C++ storage type of the wide types.
template <class T>
struct DTypeOfImpl;
#define FAKE_PJRT_WIDE_TYPES(X) \
  X(bool, kBool)                \
  X(uint8_t, kU8)               \
  X(uint16_t, kU16)             \
  X(uint32_t, kU32)             \
  X(uint64_t, kU64)             \
  X(int8_t, kI8) X(int16_t, kI16) X(int32_t, kI32) X(int64_t, kI64) X(float, kF32) X(double, kF64) X(C64, kC64) X(C128, kC128)
#define X(T, D)                              \
  template <>                                \
  struct DTypeOfImpl<T> {                    \
    static constexpr DType value = DType::D; \
  };
FAKE_PJRT_WIDE_TYPES(X)
#undef X
template <class T>
inline constexpr DType kDTypeOf = DTypeOfImpl<T>::value;

// Calls fn.operator()<T>() with the C++ type that `dtype` is computed in (float for the narrow floats).
template <class Fn>
auto VisitCompute(DType dtype, Fn&& fn) {
  switch (tpu::OpMathType(dtype)) {
#define X(T, D)  \
  case DType::D: \
    return fn.template operator()<T>();
    FAKE_PJRT_WIDE_TYPES(X)
#undef X
    default:
      return fn.template operator()<float>();
  }
}

// "f32" -> kF32; kInvalid for an unknown spelling.
DType ParseDType(std::string_view name);

// One scalar integer (or bool) of `t`. Requires: an integer or bool dtype.
int64_t IntegerAt(const Tensor& t, int64_t index);

// Steps a multi-index through `dims`; false after the last one.
bool NextIndex(const Dims& dims, Dims* index);

}  // namespace fake_pjrt
