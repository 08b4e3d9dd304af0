// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor: rounding, signs, exponentials, trigonometry.
#include <limits>
#include <numbers>

#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The StableHLO or CHLO operator of the row.
void Named(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Unary(l.rule().hlo, e.In(0)));
}

// The same, where integers are their own result.
void NamedFloat(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(e.floating() ? l.b.Unary(l.rule().hlo, x) : x);
}

void Abs(Lowering& l) {
  Elementwise e(l, l.TypeOf(0).dtype);
  Value x = e.In(0);
  e.Out(e.boolean() || IsUnsigned(e.math) ? x : l.b.Unary("abs", x));
}

void Exp2(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(e.complex() ? l.b.Unary("exponential", l.b.Binary("multiply", x, std::numbers::ln2))
                    : l.b.Binary("power", e.Const(2), x));
}

void LogTimes(Lowering& l, double factor) {
  Elementwise e(l);
  e.Out(l.b.Binary("multiply", l.b.Unary("log", e.In(0)), factor));
}
void Log2(Lowering& l) { LogTimes(l, std::numbers::log2e); }
void Log10(Lowering& l) { LogTimes(l, std::numbers::log10e); }

void Rsqrt(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(e.complex() ? l.b.Div(e.Const(1), l.b.Unary("sqrt", x)) : l.b.Unary("rsqrt", x));
}

void Reciprocal(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Div(e.Const(1), e.In(0)));
}

void Sigmoid(Lowering& l) {
  Elementwise e(l);
  e.Out(Logistic(l.b, e.In(0)));
}

void Tan(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  if (!e.complex()) return e.Out(l.b.Unary("chlo.tan", x));
  // tan(z) = -i tanh(i z)
  Value iz = l.b.Complex(l.b.Neg(l.b.Imag(x)), l.b.Real(x));
  Value t = l.b.Unary("tanh", iz);
  e.Out(l.b.Complex(l.b.Imag(t), l.b.Neg(l.b.Real(t))));
}

void Atan(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  // XLA 0.115 vectorises atan wrongly; as a general atan2, which the barrier keeps it, it is right.
  if (e.complex() || !l.profile.atan_needs_barrier) return e.Out(l.b.Unary("chlo.atan", x));
  e.Out(l.b.Binary("atan2", x, l.b.OptimizationBarrier(e.Const(1))));
}

// CHLO's expansions of sinh and cosh lose 24 ulp for large arguments.
void Sinh(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0);
  if (e.complex()) return e.Out(b.Unary("chlo.sinh", x));
  Value m = b.Unary("exponential_minus_one", b.Unary("abs", x));
  Value s = b.Binary("multiply", b.Add(m, b.Div(m, b.Binary("add", m, 1.0))), 0.5);
  s = b.Select(b.Cmp(Compare::kEq, m, kInf), m, s);
  e.Out(b.Select(b.Cmp(Compare::kLt, x, 0), b.Neg(s), s));
}

void Cosh(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0);
  if (e.complex()) return e.Out(b.Unary("chlo.cosh", x));
  Value p = b.Unary("exponential", b.Unary("abs", x));
  e.Out(b.Add(b.Binary("multiply", p, 0.5), b.Div(e.Const(0.5), p)));
}

void Trunc(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(e.floating() ? Truncate(l.b, x) : x);
}

void Frac(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(e.floating() ? l.b.Sub(x, Truncate(l.b, x)) : e.Const(0));
}

// round(x * 10^d) / 10^d, with the power in the computation type.
void RoundDecimals(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0);
  int64_t decimals = l.Int(1);
  if (!e.floating()) return e.Out(x);
  if (decimals == 0) return e.Out(b.Unary("round_nearest_even", x));
  double ten = 1;
  for (int64_t i = decimals < 0 ? -decimals : decimals; i > 0 && ten < 1e300; --i) ten *= 10;
  Value power = b.OptimizationBarrier(e.Const(ten));
  e.Out(decimals > 0 ? b.Div(b.Unary("round_nearest_even", b.Mul(x, power)), power)
                     : b.Mul(b.Unary("round_nearest_even", b.Div(x, power)), power));
}

// StableHLO's sign keeps NaN and -0; ATen's gives 0 for both.
Value SignOf(Builder& b, Value x) {
  if (b.dtype(x) == DType::kBool) return x;
  Value zero = b.Like(x, 0), one = b.Like(x, 1);
  Value positive = b.Select(b.Cmp(Compare::kGt, x, zero), one, zero);
  if (IsUnsigned(b.dtype(x))) return positive;
  return b.Select(b.Cmp(Compare::kLt, x, zero), b.Neg(one), positive);
}

void Sign(Lowering& l) {
  Elementwise e(l);
  e.Out(SignOf(l.b, e.In(0)));
}

void Sgn(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0);
  if (!e.complex()) return e.Out(SignOf(b, x));
  Value r = b.Unary("abs", x), zero = b.Like(r, 0);
  Value unit = b.Complex(b.Div(b.Real(x), r), b.Div(b.Imag(x), r));
  e.Out(b.Select(b.Cmp(Compare::kEq, r, zero), e.Const(0), unit));
}

void IsNanRule(Lowering& l) {
  Elementwise e(l, l.TypeOf(0).dtype);
  Value x = e.In(0);
  e.Out(e.floating() || e.complex() ? l.b.IsNan(x) : l.b.Constant(e.type.With(DType::kBool), 0));
}

void IsInf(Lowering& l) {
  Elementwise e(l, l.TypeOf(0).dtype);
  e.Out(IsInfinite(l.b, e.In(0)));
}

void IsFinite(Lowering& l) {
  Elementwise e(l, l.TypeOf(0).dtype);
  Builder& b = l.b;
  Value x = e.In(0);
  if (e.complex()) return e.Out(b.And(b.Unary("is_finite", b.Real(x)), b.Unary("is_finite", b.Imag(x))));
  e.Out(e.floating() ? b.Unary("is_finite", x) : b.Constant(e.type.With(DType::kBool), 1));
}

void IsSignedInf(Lowering& l, double which) {
  Elementwise e(l, l.TypeOf(0).dtype);
  Value x = e.In(0);
  e.Out(e.floating() ? l.b.Cmp(Compare::kEq, x, which) : l.b.Constant(e.type.With(DType::kBool), 0));
}
void IsPosInf(Lowering& l) { IsSignedInf(l, kInf); }
void IsNegInf(Lowering& l) { IsSignedInf(l, -kInf); }

void SignBit(Lowering& l) {
  Elementwise e(l, l.TypeOf(0).dtype);
  Builder& b = l.b;
  Value x = e.In(0);
  if (e.math == DType::kF32) x = b.BitcastConvert(x, DType::kI32);
  // f64 by its reciprocal where it is 0: TPUs cannot reinterpret it.
  if (e.math == DType::kF64) x = b.Select(b.Cmp(Compare::kEq, x, 0), b.Div(e.Const(1), x), x);
  e.Out(e.boolean() ? b.Constant(e.type, 0) : b.Cmp(Compare::kLt, x, 0));
}

void LogicalNot(Lowering& l) {
  Elementwise e(l, l.TypeOf(0).dtype);
  e.Out(l.b.Cmp(Compare::kEq, e.In(0), 0));
}

void ConjPhysical(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(e.complex() ? l.b.Complex(l.b.Real(x), l.b.Neg(l.b.Imag(x))) : x);
}

void Angle(Lowering& l) {
  DType d = l.TypeOf(0).dtype;
  Elementwise e(l, IsComplex(d) ? d : l.ResultType(0).dtype);
  Builder& b = l.b;
  Value x = e.In(0);
  if (e.complex()) return e.Out(b.Binary("atan2", b.Imag(x), b.Real(x)));
  Value a = b.Select(b.Cmp(Compare::kLt, x, 0), e.Const(std::numbers::pi), e.Const(0));
  e.Out(e.floating() ? b.Select(b.IsNan(x), x, a) : a);
}

double Largest(DType d) {
  switch (d) {
    case DType::kF64:
      return std::numeric_limits<double>::max();
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.FEp127;
    case DType::kF8E4M3FN:
      return 448;
    default:
      return 57344;
  }
}

Value ReplaceNonFinite(Lowering& l, Value x, DType dtype) {
  Builder& b = l.b;
  auto number = [&](int i, double if_none) { return b.Like(x, l.IsNone(i) ? if_none : l.Double(i)); };
  Value nan = number(1, 0), positive = number(2, Largest(dtype)), negative = number(3, -Largest(dtype));
  Value r = b.Select(b.Cmp(Compare::kEq, x, kInf), positive, x);
  r = b.Select(b.Cmp(Compare::kEq, x, -kInf), negative, r);
  return b.Select(b.IsNan(x), nan, r);
}

void NanToNum(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  if (e.complex()) {
    DType part = RealType(e.common);
    return e.Out(l.b.Complex(ReplaceNonFinite(l, l.b.Real(x), part), ReplaceNonFinite(l, l.b.Imag(x), part)));
  }
  e.Out(e.floating() ? ReplaceNonFinite(l, x, e.common) : x);
}

void Relu(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Max(e.In(0), e.Const(0)));
}

void Square(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(l.b.Mul(x, x));
}

void Sinc(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), p = b.Binary("multiply", x, std::numbers::pi);
  e.Out(b.Select(b.Cmp(Compare::kEq, x, 0), e.Const(1), b.Div(b.Unary("sine", p), p)));
}

void Positive(Lowering& l) {
  Elementwise e(l);
  e.Out(e.In(0));
}

constexpr Pad kPass = Pad::kPass;
const Rule kRules[] = {
    {.name = "abs", .lower = Abs, .pad = kPass},
    {.name = "neg", .lower = Named, .hlo = "negate", .pad = kPass},
    {.name = "positive", .lower = Positive, .pad = kPass},
    {.name = "exp", .lower = Named, .hlo = "exponential", .pad = kPass},
    {.name = "exp2", .lower = Exp2, .pad = kPass},
    {.name = "expm1", .lower = Named, .hlo = "exponential_minus_one", .pad = kPass},
    {.name = "log", .lower = Named, .hlo = "log", .pad = kPass},
    {.name = "log2", .lower = Log2, .pad = kPass},
    {.name = "log10", .lower = Log10, .pad = kPass},
    {.name = "log1p", .lower = Named, .hlo = "log_plus_one", .pad = kPass},
    {.name = "sqrt", .lower = Named, .hlo = "sqrt", .pad = kPass},
    {.name = "rsqrt", .lower = Rsqrt, .pad = kPass},
    {.name = "square", .lower = Square, .pad = kPass},
    {.name = "reciprocal", .lower = Reciprocal, .pad = kPass},
    {.name = "sigmoid", .lower = Sigmoid, .pad = kPass},
    {.name = "tanh", .lower = Named, .hlo = "tanh", .pad = kPass},
    {.name = "sin", .lower = Named, .hlo = "sine", .pad = kPass},
    {.name = "cos", .lower = Named, .hlo = "cosine", .pad = kPass},
    {.name = "tan", .lower = Tan, .pad = kPass},
    {.name = "asin", .lower = Named, .hlo = "chlo.asin", .pad = kPass},
    {.name = "acos", .lower = Named, .hlo = "chlo.acos", .pad = kPass},
    {.name = "atan", .lower = Atan, .pad = kPass},
    {.name = "sinh", .lower = Sinh, .pad = kPass},
    {.name = "cosh", .lower = Cosh, .pad = kPass},
    {.name = "asinh", .lower = Named, .hlo = "chlo.asinh", .pad = kPass},
    {.name = "acosh", .lower = Named, .hlo = "chlo.acosh", .pad = kPass},
    {.name = "atanh", .lower = Named, .hlo = "chlo.atanh", .pad = kPass},
    {.name = "floor", .lower = NamedFloat, .hlo = "floor", .pad = kPass},
    {.name = "ceil", .lower = NamedFloat, .hlo = "ceil", .pad = kPass},
    {.name = "round", .lower = NamedFloat, .hlo = "round_nearest_even", .pad = kPass},
    {.name = "round.decimals", .lower = RoundDecimals, .pad = kPass},
    {.name = "trunc", .lower = Trunc, .pad = kPass},
    {.name = "frac", .lower = Frac, .pad = kPass},
    {.name = "sign", .lower = Sign, .pad = kPass},
    {.name = "sgn", .lower = Sgn, .pad = kPass},
    {.name = "isnan", .lower = IsNanRule, .pad = kPass},
    {.name = "isinf", .lower = IsInf, .pad = kPass},
    {.name = "isfinite", .lower = IsFinite, .pad = kPass},
    {.name = "isposinf", .lower = IsPosInf, .pad = kPass},
    {.name = "isneginf", .lower = IsNegInf, .pad = kPass},
    {.name = "signbit", .lower = SignBit, .pad = kPass},
    {.name = "logical_not", .lower = LogicalNot, .pad = kPass},
    {.name = "bitwise_not", .lower = Named, .hlo = "not", .pad = kPass},
    {.name = "_conj_physical", .lower = ConjPhysical, .pad = kPass},
    {.name = "conj_physical", .lower = ConjPhysical, .pad = kPass},
    {.name = "angle", .lower = Angle, .pad = kPass},
    {.name = "nan_to_num", .lower = NanToNum, .pad = kPass},
    {.name = "relu", .lower = Relu, .pad = kPass},
    {.name = "sinc", .lower = Sinc, .pad = kPass},
};

}  // namespace

std::span<const Rule> UnaryRules() { return kRules; }

}  // namespace tpu::lower
