// SPDX-License-Identifier: Apache-2.0
#include "lower/elementwise.h"

#include <limits>

#include "lower/cast.h"

namespace tpu::lower {

Elementwise::Elementwise(Lowering& lowering, DType dtype)
    : l(lowering),
      b(lowering.b),
      common(dtype),
      math(OpMathType(dtype)),
      type(lowering.ResultType(0).With(OpMathType(dtype))) {}

Value Elementwise::In(int i) {
  Value x = l.TypeOf(i).rank == 0 ? l.Tensor(i, math) : l.Cast(l.Tensor(i, common), math);
  return b.Broadcast(x, Ints(type.begin(), type.end()));
}

Value Elementwise::Divisor(int i) {
  Value x = In(i);
  return l.TypeOf(i).numel() < type.numel() && (floating() || complex()) ? b.OptimizationBarrier(x) : x;
}

void Elementwise::Out(Value v, int k) { l.SetResult(k, l.Cast(v, l.ResultType(k).dtype)); }

Value IsInfinite(Builder& b, Value x) {
  DType d = b.dtype(x);
  if (IsComplex(d)) return b.Or(IsInfinite(b, b.Real(x)), IsInfinite(b, b.Imag(x)));
  if (!IsFloat(d)) return b.Constant(b.type(x).With(DType::kBool), 0);
  return b.Cmp(Compare::kEq, b.Unary("abs", x), std::numeric_limits<double>::infinity());
}

Value Logistic(Builder& b, Value x) {
  if (!IsComplex(b.dtype(x))) return b.Unary("logistic", x);
  Value one = b.Like(x, 1);
  return b.Div(one, b.Add(one, b.Unary("exponential", b.Neg(x))));
}

Value Truncate(Builder& b, Value x) { return b.Select(b.Cmp(Compare::kLt, x, 0), b.Unary("ceil", x), b.Unary("floor", x)); }

Value Erf(Builder& b, Value x) {
  Value erf = b.Unary("chlo.erf", x);
  if (b.dtype(x) != DType::kF32) return erf;
  // From 4 on, 1 is the nearest f32.
  Value one = b.Like(x, 1);
  erf = b.Select(b.Cmp(Compare::kGe, x, 4.0), one, erf);
  return b.Select(b.Cmp(Compare::kLe, x, -4.0), b.Neg(one), erf);
}

namespace {

// Square and multiply, as many rounds as the largest exponent has bits: StableHLO's own power is wrong for 64-bit
// exponents of 64 and more on XLA.
Value IntegerPower(Builder& b, Value base, Value exponent) {
  Value one = b.Like(base, 1), zero = b.Like(base, 0);
  Value negative = b.Cmp(Compare::kLt, exponent, zero);
  bool is_signed = IsSigned(b.dtype(base));
  Value e = is_signed ? b.Select(negative, zero, exponent) : exponent;
  Ints dims = AllDims(b.rank(base));
  Values state = b.While(
      {base, e, one},
      [&](const Values& v) {
        Value rest = b.Cmp(Compare::kNe, v[1], b.Like(v[1], 0));
        return Values{dims.empty() ? rest : b.Reduce(rest, b.Constant(DType::kBool, 0), dims, "or")};
      },
      [&](const Values& v) {
        Value odd = b.Cmp(Compare::kNe, b.And(v[1], b.Like(v[1], 1)), b.Like(v[1], 0));
        return Values{b.Mul(v[0], v[0]), b.Binary("shift_right_logical", v[1], b.Like(v[1], 1)),
                      b.Select(odd, b.Mul(v[2], v[0]), v[2])};
      });
  if (state.size() != 3) return {};
  if (!is_signed) return state[2];
  // 1 and -1 have integer inverses; everything else rounds to 0.
  Value minus_one = b.Like(base, -1);
  Value even = b.Cmp(Compare::kEq, b.And(exponent, one), zero);
  Value inverse = b.Select(b.Cmp(Compare::kEq, base, one), one,
                           b.Select(b.Cmp(Compare::kEq, base, minus_one), b.Select(even, one, minus_one), zero));
  return b.Select(negative, inverse, state[2]);
}

Value Magnitude(Builder& b, Value x, Value negative, DType as) { return b.BitcastConvert(b.Select(negative, b.Neg(x), x), as); }

// Restoring division of ui64, one bit a round.
QuotientRemainder LongDivision(Builder& b, Value x, Value y) {
  Value zero = b.Like(x, 0);
  Values state = b.While(
      {b.Constant(DType::kI32, 0), x, zero, y},
      [&](const Values& v) { return Values{b.Cmp(Compare::kLt, v[0], b.Constant(DType::kI32, 64))}; },
      [&](const Values& v) {
        Value one = b.Like(v[1], 1);
        // {remainder, quotient} is one 128-bit register shifted left; quotient bits enter at the right.
        Value remainder = b.Or(b.Binary("shift_left", v[2], one), b.Binary("shift_right_logical", v[1], b.Like(v[1], 63)));
        // The bit that leaves at the left means that the remainder exceeds any divisor.
        Value carry = b.Cmp(Compare::kNe, b.Binary("shift_right_logical", v[2], b.Like(v[2], 63)), b.Like(v[2], 0));
        Value fits = b.Or(carry, b.Cmp(Compare::kGe, remainder, v[3]));
        Value quotient = b.Binary("shift_left", v[1], one);
        return Values{b.Add(v[0], b.Like(v[0], 1)), b.Select(fits, b.Or(quotient, one), quotient),
                      b.Select(fits, b.Sub(remainder, v[3]), remainder), v[3]};
      });
  return {state[1], state[2]};
}

}  // namespace

Value Power(Builder& b, Value base, Value exponent) {
  DType d = b.dtype(base);
  if (d == DType::kBool) return b.Or(base, b.Not(exponent));
  return IsInteger(d) ? IntegerPower(b, base, exponent) : b.Binary("power", base, exponent);
}

QuotientRemainder DivideIntegers(Lowering& l, Value x, Value y) {
  Builder& b = l.b;
  DType d = b.dtype(x);
  if (ItemSize(d) < 8 || l.profile.kind == pjrt::EngineKind::kCpu) return {b.Div(x, y), b.Binary("remainder", x, y)};
  if (!IsSigned(d)) return LongDivision(b, x, y);
  Value x_negative = b.Cmp(Compare::kLt, x, 0), y_negative = b.Cmp(Compare::kLt, y, 0);
  QuotientRemainder r = LongDivision(b, Magnitude(b, x, x_negative, DType::kU64), Magnitude(b, y, y_negative, DType::kU64));
  Value quotient = b.BitcastConvert(r.quotient, d), remainder = b.BitcastConvert(r.remainder, d);
  return {b.Select(b.Xor(x_negative, y_negative), b.Neg(quotient), quotient),
          b.Select(x_negative, b.Neg(remainder), remainder)};
}

void TrapIfZero(Lowering& l, Value divisor) {
  if (!IsInteger(l.b.dtype(divisor))) return;
  TrapIf(l, l.b.Cmp(Compare::kEq, divisor, 0), ErrorKind::kRuntime, "ZeroDivisionError");
}

}  // namespace tpu::lower
