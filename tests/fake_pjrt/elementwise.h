// SPDX-License-Identifier: Apache-2.0
// Scalar functions -> verify and eval of elementwise operators. A function object F has a template Apply, constrained
// to the C++ types it is defined for; everything else follows from that.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "interpreter.h"
#include "op_table.h"

namespace fake_pjrt {

template <class T>
concept Bool = std::same_as<T, bool>;
template <class T>
concept Integer = std::integral<T> && !Bool<T>;
template <class T>
concept Float = std::floating_point<T>;
template <class T>
concept Complex = std::same_as<T, C64> || std::same_as<T, C128>;
template <class T>
concept Number = Integer<T> || Float<T> || Complex<T>;
template <class T>
concept Real = Float<T> || Complex<T>;  // has sqrt, exp, ...

template <class F, class T>
concept Unary1 = requires(T a) { F::Apply(a); };
template <class F, class T>
concept Binary2 = requires(T a) { F::Apply(a, a); };

// Maps floats to integers in the total order -NaN < -inf < ... < +inf < +NaN.
inline int64_t TotalOrderKey(double x) {
  auto bits = std::bit_cast<int64_t>(x);
  return bits < 0 ? bits ^ std::numeric_limits<int64_t>::max() : bits;
}

// The result dtype for operands of `dtype`; kInvalid where F is not defined.
template <class F, bool kBinary>
DType ResultDType(DType dtype) {
  return VisitCompute(dtype, [dtype]<class T>() -> DType {
    DType wide = DType::kInvalid;
    if constexpr (kBinary) {
      if constexpr (Binary2<F, T>) wide = kDTypeOf<decltype(F::Apply(T(), T()))>;
    } else {
      if constexpr (Unary1<F, T>) wide = kDTypeOf<decltype(F::Apply(T()))>;
    }
    return IsNarrowFloat(dtype) && wide == DType::kF32 ? dtype : wide;
  });
}

template <class F, bool kBinary>
std::string VerifyElementwise(const Op& op) {
  const Type& a = op.operand_types[0];
  if (kBinary && !(op.operand_types[1] == a)) return "operands are " + a.ToString() + " and " + op.operand_types[1].ToString();
  DType result = ResultDType<F, kBinary>(a.dtype);
  if (result == DType::kInvalid) return std::string("not defined for ") + tpu::HloName(a.dtype);
  return WrongResult(op, a.With(result));
}

template <class F>
Error EvalUnary(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  Tensor a = Widened(in[0]);
  Type type = interpreter.ResultType(op);
  int64_t n = type.numel();
  VisitCompute(a.type.dtype, [&]<class T>() {
    if constexpr (Unary1<F, T>) {
      using R = decltype(F::Apply(T()));
      Tensor r = Tensor::Empty(type.With(kDTypeOf<R>));
      const T* x = a.As<T>();
      R* y = r.As<R>();
      for (int64_t i = 0; i < n; ++i) y[i] = F::Apply(x[i]);
      out->push_back(Narrowed(r, type.dtype));
    }
  });
  return {};
}

template <class F>
Error EvalBinary(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  Tensor a = Widened(in[0]), b = Widened(in[1]);
  Type type = interpreter.ResultType(op);
  int64_t n = type.numel();
  VisitCompute(a.type.dtype, [&]<class T>() {
    if constexpr (Binary2<F, T>) {
      using R = decltype(F::Apply(T(), T()));
      Tensor r = Tensor::Empty(type.With(kDTypeOf<R>));
      const T *x = a.As<T>(), *z = b.As<T>();
      R* y = r.As<R>();
      for (int64_t i = 0; i < n; ++i) y[i] = F::Apply(x[i], z[i]);
      out->push_back(Narrowed(r, type.dtype));
    }
  });
  return {};
}

template <class F>
OpDef UnaryOp(const char* name, std::vector<AttrSpec> attrs = {}) {
  return {name, 1, 1, 1, 0, std::move(attrs), VerifyElementwise<F, false>, EvalUnary<F>, true};
}

template <class F>
OpDef BinaryOp(const char* name) {
  return {name, 2, 2, 1, 0, {}, VerifyElementwise<F, true>, EvalBinary<F>, true};
}

}  // namespace fake_pjrt
