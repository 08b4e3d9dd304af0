// SPDX-License-Identifier: Apache-2.0
// Special functions.
#include <cmath>
#include <limits>
#include <numbers>

#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void Named(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Unary(l.rule().hlo, e.In(0)));
}

void NamedBinary(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Binary(l.rule().hlo, e.In(0), e.In(1)));
}

void ErfRule(Lowering& l) {
  Elementwise e(l);
  e.Out(Erf(l.b, e.In(0)));
}

// CHLO's zeta(p, q) is right for q > 0. Below, the terms up to there are added first, as ATen's loop does, for as long
// as that loop is worth waiting for.
Value ZetaOf(Elementwise& e, Value p, Value q) {
  Builder& b = e.b;
  Value zero = e.Const(0), low = e.Const(-200), minus_p = b.Neg(p);
  auto pending = [&](Value v) { return b.And(b.Cmp(Compare::kLt, v, b.Like(v, 0)), b.Cmp(Compare::kGt, v, b.Like(v, -200))); };
  Value whole = b.And(b.Cmp(Compare::kLe, q, zero), b.Cmp(Compare::kEq, q, b.Unary("floor", q)));
  whole = b.And(whole, b.Cmp(Compare::kGt, q, low));
  Ints dims = AllDims(b.rank(q));
  Values state = b.While(
      {q, zero, minus_p},
      [&](const Values& v) {
        Value rest = pending(v[0]);
        return Values{dims.empty() ? rest : b.Reduce(rest, b.Constant(DType::kBool, 0), dims, "or")};
      },
      [&](const Values& v) {
        Value here = pending(v[0]), one = b.Like(v[0], 1);
        Value sum = b.Select(here, b.Add(v[1], b.Binary("power", v[0], v[2])), v[1]);
        return Values{b.Select(here, b.Add(v[0], one), v[0]), sum, v[2]};
      });
  if (state.size() != 3) return {};
  Value r = b.Add(state[1], b.Binary("chlo.zeta", p, state[0]));
  r = b.Select(whole, e.Const(kInf), r);
  return b.Select(b.Cmp(Compare::kLt, p, 1.0), e.Const(std::numeric_limits<double>::quiet_NaN()), r);
}

void Zeta(Lowering& l) {
  Elementwise e(l);
  e.Out(ZetaOf(e, e.In(0), e.In(1)));
}

// CHLO's digamma(0) is NaN on older engines; ATen's is the pole, with the sign of the zero.
Value DigammaOf(Elementwise& e, Value x) {
  Value pole = e.b.Div(e.Const(-1), x);
  return e.b.Select(e.b.Cmp(Compare::kEq, x, 0), pole, e.b.Unary("chlo.digamma", x));
}

void Digamma(Lowering& l) {
  Elementwise e(l);
  e.Out(DigammaOf(e, e.In(0)));
}

// ATen's trigamma: reflection below 0.5, six steps of recurrence, asymptotic series.
Value TrigammaOf(Elementwise& e, Value x) {
  Builder& b = e.b;
  Value one = e.Const(1), reflected = b.Cmp(Compare::kLt, x, 0.5);
  Value sine = b.Unary("sine", b.Binary("multiply", x, std::numbers::pi));
  Value pole = b.Div(e.Const(-std::numbers::pi * std::numbers::pi), b.Mul(sine, sine));
  Value sum = b.Select(reflected, pole, e.Const(0));
  Value y = b.Select(reflected, b.Sub(one, x), x);
  for (int i = 0; i < 6; ++i) {
    sum = b.Add(sum, b.Div(one, b.Mul(y, y)));
    y = b.Add(y, one);
  }
  Value r = b.Div(one, b.Mul(y, y));
  Value series = b.Sub(e.Const(1.0 / 30), b.Binary("multiply", r, 1.0 / 42));
  series = b.Mul(r, b.Sub(e.Const(1.0 / 6), b.Mul(r, series)));
  series = b.Add(b.Add(one, b.Div(e.Const(0.5), y)), series);
  sum = b.Add(sum, b.Div(series, y));
  return b.Select(reflected, b.Neg(sum), sum);
}

// n >= 2: (-1)^(n+1) n! zeta(n + 1, x), as ATen: CHLO's polygamma differs below 0.
void Polygamma(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(1);
  const auto n = static_cast<double>(l.Int(0));
  if (n == 0) return e.Out(DigammaOf(e, x));
  if (n == 1) return e.Out(TrigammaOf(e, x));
  Value zeta = ZetaOf(e, e.Const(n + 1), x);
  e.Out(l.b.Binary("multiply", zeta, (l.Int(0) % 2 ? 1 : -1) * std::tgamma(n + 1)));
}

void Logit(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), one = e.Const(1);
  if (!l.IsNone(1) && l.Double(1) >= 0) {
    // The bounds are rounded to the tensor's own type: in bf16 1 - 0.001 is 1.
    auto rounded = [&](Value v) { return l.Cast(l.Cast(v, e.common), e.math); };
    Value low = rounded(e.Const(l.Double(1))), high = rounded(b.Sub(one, low));
    x = b.Select(b.Cmp(Compare::kLt, x, low), low, b.Select(b.Cmp(Compare::kGt, x, high), high, x));
  }
  e.Out(b.Unary("log", b.Div(x, b.Sub(one, x))));
}

void Entr(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), zero = e.Const(0);
  Value r = b.Select(b.Cmp(Compare::kGt, x, zero), b.Mul(b.Neg(x), b.Unary("log", x)),
                     b.Select(b.Cmp(Compare::kEq, x, zero), zero, e.Const(-kInf)));
  e.Out(b.Select(b.IsNan(x), x, r));
}

// Narrow floats step in their own bits: CHLO knows f32 and f64 only.
void NextAfter(Lowering& l) {
  Elementwise e(l);
  if (e.math == e.common) return NamedBinary(l);
  Builder& b = l.b;
  Value x = e.In(0), y = e.In(1);
  Value bits = b.BitcastConvert(l.Cast(x, e.common), DType::kI16), one = b.Like(bits, 1);
  Value outward = b.Cmp(Compare::kEq, b.Cmp(Compare::kLt, x, y), b.Cmp(Compare::kGt, x, 0));
  Value from_zero = b.Select(b.Cmp(Compare::kLt, y, 0), b.Like(bits, -32767), one);
  bits = b.Select(outward, b.Add(bits, one), b.Sub(bits, one));
  bits = b.Select(b.Cmp(Compare::kEq, x, 0), from_zero, bits);
  Value r = b.Select(b.Cmp(Compare::kEq, x, y), l.Cast(y, e.common), b.BitcastConvert(bits, e.common));
  Value nan = b.Or(b.IsNan(x), b.IsNan(y));
  l.SetResult(0, b.Select(nan, l.Cast(b.Add(x, y), e.common), r));
}

// Euclid on magnitudes, until every element is done.
Value GcdOf(Lowering& l, Value x, Value y) {
  Builder& b = l.b;
  if (IsSigned(b.dtype(x))) x = b.Unary("abs", x), y = b.Unary("abs", y);
  Ints dims = AllDims(b.rank(x));
  Values state = b.While(
      {x, y},
      [&](const Values& v) {
        Value rest = b.Cmp(Compare::kNe, v[1], 0);
        return Values{dims.empty() ? rest : b.Reduce(rest, b.Constant(DType::kBool, 0), dims, "or")};
      },
      [&](const Values& v) {
        Value done = b.Cmp(Compare::kEq, v[1], 0);
        Value safe = b.Select(done, b.Like(v[1], 1), v[1]);
        Value rest = DivideIntegers(l, v[0], safe).remainder;
        return Values{b.Select(done, v[0], v[1]), b.Select(done, b.Like(v[1], 0), rest)};
      });
  return state[0];
}

void Gcd(Lowering& l) {
  Elementwise e(l);
  e.Out(GcdOf(l, e.In(0), e.In(1)));
}

void Lcm(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), y = e.In(1), gcd = GcdOf(l, x, y);
  Value none = b.Cmp(Compare::kEq, gcd, 0), safe = b.Select(none, e.Const(1), gcd);
  Value r = b.Mul(DivideIntegers(l, x, safe).quotient, y);
  if (IsSigned(e.math)) r = b.Unary("abs", r);
  e.Out(b.Select(none, e.Const(0), r));
}

constexpr Pad kPass = Pad::kPass;
const Rule kRules[] = {
    {.name = "erf", .lower = ErfRule, .pad = kPass},
    {.name = "erfc", .lower = Named, .hlo = "chlo.erfc", .pad = kPass},
    {.name = "erfinv", .lower = Named, .hlo = "chlo.erf_inv", .pad = kPass},
    {.name = "lgamma", .lower = Named, .hlo = "chlo.lgamma", .pad = kPass},
    {.name = "digamma", .lower = Digamma, .pad = kPass},
    {.name = "polygamma", .lower = Polygamma, .pad = kPass},
    {.name = "special_zeta", .lower = Zeta, .pad = kPass},
    {.name = "special_zeta.other_scalar", .lower = Zeta, .pad = kPass},
    {.name = "special_zeta.self_scalar", .lower = Zeta, .pad = kPass},
    {.name = "special_i1e", .lower = Named, .hlo = "chlo.bessel_i1e", .pad = kPass},
    {.name = "logit", .lower = Logit, .pad = kPass},
    {.name = "special_entr", .lower = Entr, .pad = kPass},
    {.name = "nextafter", .lower = NextAfter, .hlo = "chlo.next_after", .pad = kPass},
    {.name = "gcd", .lower = Gcd},
    {.name = "lcm", .lower = Lcm},
};

}  // namespace

std::span<const Rule> SpecialFunctionRules() { return kRules; }

}  // namespace tpu::lower
