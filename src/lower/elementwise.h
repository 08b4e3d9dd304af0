// SPDX-License-Identifier: Apache-2.0
// Elementwise: the frame of every pointwise rule. Operands come converted to the computation type and repeated to the
// result's dims; the result goes back rounded once.
#pragma once
#include <span>

#include "lower/lowering.h"
#include "lower/parts.h"

namespace tpu::lower {

class Elementwise {
 public:
  // `common` is ATen's common dtype of the operands; by default that of the result. Floats narrower than f32 compute in
  // f32.
  explicit Elementwise(Lowering& lowering) : Elementwise(lowering, lowering.ResultType(0).dtype) {}
  Elementwise(Lowering& lowering, DType common);

  // Argument i, tensor or number. Tensors are rounded to the common dtype first, as ATen does; numbers and 0-dim tensors
  // are not (they enter the computation unrounded there too).
  Value In(int i);
  // The same, for a divisor: a repeated one gets a barrier, or engines would multiply by its reciprocal.
  Value Divisor(int i);
  Value Const(double v) { return b.Constant(type, v); }
  // Complex, float, or neither.
  bool complex() const { return IsComplex(math); }
  bool floating() const { return IsFloat(math); }
  bool boolean() const { return math == DType::kBool; }
  void Out(Value v, int k = 0);

  Lowering& l;
  Builder& b;
  const DType common, math;
  const TensorType type;  // dims of result 0, dtype `math`
};

// Used by several families.
Value IsInfinite(Builder& b, Value x);
Value Logistic(Builder& b, Value x);
Value Truncate(Builder& b, Value x);
// erf with exact tails: CHLO's saturates below 1 on some engines.
Value Erf(Builder& b, Value x);
// pow for the integer types (wraps; negative exponents as ATen) and for the others.
Value Power(Builder& b, Value base, Value exponent);
// C's quotient and remainder (toward zero) of integers. The divisor is not 0 (checked by a trap): where it is, the result
// is unspecified. 64-bit division takes TPU compilers many seconds, so there a loop does it.
struct QuotientRemainder {
  Value quotient, remainder;
};
QuotientRemainder DivideIntegers(Lowering& l, Value x, Value y);
// Traps with ATen's "ZeroDivisionError" when an integer divisor is 0. i1 and floats: nothing.
void TrapIfZero(Lowering& l, Value divisor);

std::span<const Rule> UnaryRules();
std::span<const Rule> ArithmeticRules();
std::span<const Rule> BitwiseRules();
std::span<const Rule> TernaryRules();
std::span<const Rule> ActivationRules();
std::span<const Rule> ActivationBackwardRules();
std::span<const Rule> SpecialFunctionRules();

}  // namespace tpu::lower
