// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two operands: sums, products, quotients, powers, extremes.
#include <limits>
#include <numbers>

#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The operator of the row on operands 0 and 1.
void Named(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Binary(l.rule().hlo, e.In(0), e.In(1)));
}

// x * alpha (argument i), nothing when alpha is 1.
Value Scaled(Elementwise& e, Value x, int i) { return ClassOf(e.l, i) == 1 ? x : e.b.Mul(x, e.In(i)); }

void Add(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Add(e.In(0), Scaled(e, e.In(1), 2)));
}

void Sub(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Sub(e.In(0), Scaled(e, e.In(1), 2)));
}

void Rsub(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Sub(e.In(1), Scaled(e, e.In(0), 2)));
}

void Div(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Div(e.In(0), e.Divisor(1)));
}

Value SignsDiffer(Builder& b, Value x, Value y) {
  return b.Cmp(Compare::kNe, b.Cmp(Compare::kLt, x, 0), b.Cmp(Compare::kLt, y, 0));
}

// c10::div_floor_floating: exact where the quotient is near an integer.
Value FloorDivFloats(Builder& b, Value x, Value y) {
  Value zero = b.Like(x, 0), one = b.Like(x, 1);
  Value mod = b.Binary("remainder", x, y), div = b.Div(b.Sub(x, mod), y);
  Value down = b.And(b.Cmp(Compare::kNe, mod, zero), SignsDiffer(b, mod, y));
  div = b.Select(down, b.Sub(div, one), div);
  Value floor = b.Unary("floor", div);
  floor = b.Select(b.Cmp(Compare::kGt, b.Sub(div, floor), b.Like(x, 0.5)), b.Add(floor, one), floor);
  Value quotient = b.Div(x, y);
  Value signed_zero = b.Mul(quotient, zero);
  floor = b.Select(b.Cmp(Compare::kEq, div, zero), signed_zero, floor);
  return b.Select(b.Cmp(Compare::kEq, y, zero), quotient, floor);
}

Value FloorDivIntegers(Lowering& l, Value x, Value y) {
  Builder& b = l.b;
  TrapIfZero(l, y);
  QuotientRemainder r = DivideIntegers(l, x, y);
  if (!IsSigned(b.dtype(x))) return r.quotient;
  Value down = b.And(b.Cmp(Compare::kNe, r.remainder, 0), SignsDiffer(b, x, y));
  return b.Select(down, b.Sub(r.quotient, b.Like(x, 1)), r.quotient);
}

void FloorDivide(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0), y = e.Divisor(1);
  e.Out(e.floating() ? FloorDivFloats(l.b, x, y) : FloorDivIntegers(l, x, y));
}

void DivMode(Lowering& l) {
  if (l.IsNone(2)) return Div(l);
  if (l.Text(2) == "floor") return FloorDivide(l);
  Elementwise e(l);
  Value x = e.In(0), y = e.Divisor(1);
  // ATen rounds the quotient to the narrow type before it truncates: 16.99 becomes 17 in bf16.
  if (e.floating()) return e.Out(Truncate(l.b, l.Cast(l.Cast(l.b.Div(x, y), e.common), e.math)));
  TrapIfZero(l, y);
  e.Out(DivideIntegers(l, x, y).quotient);
}

void Fmod(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0), y = e.In(1);
  TrapIfZero(l, y);
  e.Out(e.floating() ? l.b.Binary("remainder", x, y) : DivideIntegers(l, x, y).remainder);
}

void Remainder(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), y = e.In(1);
  TrapIfZero(l, y);
  Value mod = e.floating() ? b.Binary("remainder", x, y) : DivideIntegers(l, x, y).remainder;
  if (!IsUnsigned(e.math)) {
    Value wrap = b.And(b.Cmp(Compare::kNe, mod, 0), SignsDiffer(b, mod, y));
    mod = b.Select(wrap, b.Add(mod, y), mod);
  }
  e.Out(mod);
}

// Exponents with a formula of their own, as in ATen. 1 is class 1 everywhere.
enum PowClass : uint8_t { kRunTime, kOne, kTwo, kThree, kZero, kHalf, kMinusHalf, kMinusOne, kMinusTwo };

uint8_t ClassifyExponent(int argument, double v, bool) {
  if (argument != 1) return kRunTime;
  static constexpr std::pair<double, PowClass> kClasses[] = {
      {1, kOne}, {2, kTwo}, {3, kThree}, {0, kZero}, {0.5, kHalf}, {-0.5, kMinusHalf}, {-1, kMinusOne}, {-2, kMinusTwo}};
  for (auto [value, c] : kClasses) {
    if (v == value) return c;
  }
  return kRunTime;
}

void PowScalar(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), one = e.Const(1);
  auto square = [&] { return b.Mul(x, x); };
  switch (ClassOf(l, 1)) {
    case kOne:
      return e.Out(x);
    case kTwo:
      return e.Out(e.boolean() ? x : square());
    case kThree:
      return e.Out(e.boolean() ? x : b.Mul(square(), x));
    case kZero:
      return e.Out(one);
    case kHalf:
      return e.Out(b.Unary("sqrt", x));
    case kMinusHalf:
      return e.Out(e.complex() ? b.Div(one, b.Unary("sqrt", x)) : b.Unary("rsqrt", x));
    case kMinusOne:
      if (!IsInteger(e.math)) return e.Out(b.Div(one, x));
      return e.Out(Power(b, x, e.Const(-1)));
    case kMinusTwo:
      if (!IsInteger(e.math)) return e.Out(b.Div(one, square()));
      return e.Out(Power(b, x, e.Const(-2)));
    default:
      return e.Out(Power(b, x, e.In(1)));
  }
}

void Pow(Lowering& l) {
  Elementwise e(l);
  e.Out(Power(l.b, e.In(0), e.In(1)));
}

void Fextreme(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), y = e.In(1), both = b.Binary(l.rule().hlo, x, y);
  e.Out(e.floating() ? b.Select(b.IsNan(x), y, b.Select(b.IsNan(y), x, both)) : both);
}

// Scaled by the larger side, so that nothing overflows before the result does.
void Hypot(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = b.Unary("abs", e.In(0)), y = b.Unary("abs", e.In(1));
  Value big = b.Max(x, y), ratio = b.Div(b.Min(x, y), big);
  Value r = b.Mul(big, b.Unary("sqrt", b.Add(e.Const(1), b.Mul(ratio, ratio))));
  r = b.Select(b.Cmp(Compare::kEq, big, 0), big, r);
  Value infinite = b.Or(b.Cmp(Compare::kEq, x, kInf), b.Cmp(Compare::kEq, y, kInf));
  e.Out(b.Select(infinite, e.Const(kInf), r));
}

void LogAddExpOf(Lowering& l, bool base_two) {
  Elementwise e(l);
  if (e.complex()) return l.Unsupported("complex");
  Builder& b = l.b;
  Value x = e.In(0), y = e.In(1), distance = b.Neg(b.Unary("abs", b.Sub(x, y)));
  if (base_two) distance = b.Binary("multiply", distance, std::numbers::ln2);
  Value rest = b.Unary("log_plus_one", b.Unary("exponential", distance));
  if (base_two) rest = b.Binary("multiply", rest, std::numbers::log2e);
  Value same = b.And(IsInfinite(b, x), b.Cmp(Compare::kEq, x, y));
  e.Out(b.Select(same, x, b.Add(b.Max(x, y), rest)));
}
void LogAddExp(Lowering& l) { LogAddExpOf(l, false); }
void LogAddExp2(Lowering& l) { LogAddExpOf(l, true); }

void Copysign(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = b.Unary("abs", e.In(0)), sign = e.In(1), negative;
  if (e.math == DType::kF32) {
    negative = b.Cmp(Compare::kLt, b.BitcastConvert(sign, DType::kI32), 0);
  } else {
    // TPUs cannot reinterpret f64; the reciprocal tells -0 from 0.
    sign = b.Select(b.Cmp(Compare::kEq, sign, 0), b.Div(e.Const(1), sign), sign);
    negative = b.Cmp(Compare::kLt, sign, 0);
  }
  e.Out(b.Select(negative, b.Neg(x), x));
}

void Heaviside(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), step = b.Convert(b.Cmp(Compare::kGt, x, 0), e.math);
  e.Out(b.Select(b.Cmp(Compare::kEq, x, 0), e.In(1), step));
}

void XTimes(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), y = e.In(1);
  Value r = b.Select(b.Cmp(Compare::kEq, x, 0), e.Const(0), b.Mul(x, b.Unary(l.rule().hlo, y)));
  e.Out(b.Select(b.IsNan(y), y, r));
}

void Complex(Lowering& l) {
  DType part = RealType(l.ResultType(0).dtype);
  Elementwise e(l, part);
  e.Out(l.b.Complex(e.In(0), e.In(1)));
}

void Polar(Lowering& l) {
  DType part = RealType(l.ResultType(0).dtype);
  Elementwise e(l, part);
  Builder& b = l.b;
  Value r = e.In(0), angle = e.In(1);
  e.Out(b.Complex(b.Mul(r, b.Unary("cosine", angle)), b.Mul(r, b.Unary("sine", angle))));
}

constexpr Pad kPass = Pad::kPass;
const Rule kRules[] = {
    {.name = "add.Tensor", .lower = Add, .pad = kPass},
    {.name = "add.Scalar", .lower = Add, .pad = kPass},
    {.name = "sub.Tensor", .lower = Sub, .pad = kPass},
    {.name = "sub.Scalar", .lower = Sub, .pad = kPass},
    {.name = "rsub.Tensor", .lower = Rsub, .pad = kPass},
    {.name = "rsub.Scalar", .lower = Rsub, .pad = kPass},
    {.name = "mul.Tensor", .lower = Named, .hlo = "multiply", .pad = kPass},
    {.name = "mul.Scalar", .lower = Named, .hlo = "multiply", .pad = kPass},
    {.name = "div.Tensor", .lower = Div, .pad = kPass},
    {.name = "div.Scalar", .lower = Div, .pad = kPass},
    {.name = "true_divide.Tensor", .lower = Div, .pad = kPass},
    {.name = "true_divide.Scalar", .lower = Div, .pad = kPass},
    {.name = "div.Tensor_mode", .lower = DivMode},
    {.name = "div.Scalar_mode", .lower = DivMode},
    {.name = "floor_divide", .lower = FloorDivide},
    {.name = "floor_divide.Scalar", .lower = FloorDivide},
    {.name = "remainder.Tensor", .lower = Remainder},
    {.name = "remainder.Scalar", .lower = Remainder},
    {.name = "remainder.Scalar_Tensor", .lower = Remainder},
    {.name = "fmod.Tensor", .lower = Fmod},
    {.name = "fmod.Scalar", .lower = Fmod},
    {.name = "pow.Tensor_Tensor", .lower = Pow, .pad = kPass},
    {.name = "pow.Tensor_Scalar", .lower = PowScalar, .classify = ClassifyExponent, .pad = kPass},
    {.name = "pow.Scalar", .lower = Pow, .pad = kPass},
    {.name = "atan2", .lower = Named, .hlo = "atan2", .pad = kPass},
    {.name = "maximum", .lower = Named, .hlo = "maximum", .pad = kPass},
    {.name = "minimum", .lower = Named, .hlo = "minimum", .pad = kPass},
    {.name = "fmax", .lower = Fextreme, .hlo = "maximum", .pad = kPass},
    {.name = "fmin", .lower = Fextreme, .hlo = "minimum", .pad = kPass},
    {.name = "hypot", .lower = Hypot, .pad = kPass},
    {.name = "logaddexp", .lower = LogAddExp, .pad = kPass},
    {.name = "logaddexp2", .lower = LogAddExp2, .pad = kPass},
    {.name = "copysign.Tensor", .lower = Copysign, .pad = kPass},
    {.name = "copysign.Scalar", .lower = Copysign, .pad = kPass},
    {.name = "heaviside", .lower = Heaviside, .pad = kPass},
    {.name = "xlogy.Tensor", .lower = XTimes, .hlo = "log", .pad = kPass},
    {.name = "xlogy.Scalar_Other", .lower = XTimes, .hlo = "log", .pad = kPass},
    {.name = "xlogy.Scalar_Self", .lower = XTimes, .hlo = "log", .pad = kPass},
    {.name = "special_xlog1py", .lower = XTimes, .hlo = "log_plus_one", .pad = kPass},
    {.name = "special_xlog1py.other_scalar", .lower = XTimes, .hlo = "log_plus_one", .pad = kPass},
    {.name = "special_xlog1py.self_scalar", .lower = XTimes, .hlo = "log_plus_one", .pad = kPass},
    {.name = "complex", .lower = Complex, .pad = kPass},
    {.name = "polar", .lower = Polar, .pad = kPass},
};

}  // namespace

std::span<const Rule> ArithmeticRules() { return kRules; }

}  // namespace tpu::lower
