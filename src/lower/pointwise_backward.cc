// SPDX-License-Identifier: Apache-2.0
// Derivatives of activation functions. Argument 0 is the incoming gradient.
#include <limits>
#include <numbers>

#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

void ThresholdBackward(Lowering& l) {
  Elementwise e(l);
  Value outside = l.b.Cmp(Compare::kLe, e.In(1), e.In(2));
  e.Out(l.b.Select(outside, e.Const(0), e.In(0)));
}

void GeluBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value grad = e.In(0), x = e.In(1), square = b.Mul(x, x), slope;
  if (l.num_args() < 3 || l.Text(2) != "tanh") {
    Value erf = Erf(b, b.Binary("multiply", x, 1 / std::numbers::sqrt2));
    Value cdf = b.Binary("multiply", b.Binary("add", erf, 1.0), 0.5);
    Value pdf = b.Binary("multiply", b.Unary("exponential", b.Binary("multiply", square, -0.5)),
                         std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    slope = b.Add(cdf, b.Mul(x, pdf));
  } else {
    const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kappa = 0.044715;
    Value inner = b.Binary("multiply", b.Add(x, b.Binary("multiply", b.Mul(square, x), kappa)), beta);
    Value t = b.Unary("tanh", inner), half_x = b.Binary("multiply", x, 0.5);
    Value left = b.Binary("multiply", b.Binary("add", t, 1.0), 0.5);
    Value inner_slope = b.Binary("multiply", b.Binary("add", b.Binary("multiply", square, 3 * kappa), 1.0), beta);
    slope = b.Add(left, b.Mul(half_x, b.Mul(b.Sub(e.Const(1), b.Mul(t, t)), inner_slope)));
  }
  e.Out(b.Mul(grad, slope));
}

Value Conj(Elementwise& e, Value x) { return e.complex() ? e.b.Complex(e.b.Real(x), e.b.Neg(e.b.Imag(x))) : x; }

void SiluBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(1), s = Logistic(b, x), one = e.Const(1);
  Value slope = b.Mul(s, b.Add(one, b.Mul(x, b.Sub(one, s))));
  // No conjugate: ATen has none here.
  e.Out(b.Mul(e.In(0), slope));
}

void MishBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(1), one = e.Const(1);
  Value tail = b.Unary("log_plus_one", b.Unary("exponential", b.Neg(b.Unary("abs", x))));
  Value t = b.Unary("tanh", b.Add(b.Max(x, e.Const(0)), tail));
  e.Out(b.Mul(e.In(0), b.Add(t, b.Mul(b.Mul(x, Logistic(b, x)), b.Sub(one, b.Mul(t, t))))));
}

void SigmoidBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value y = Conj(e, e.In(1));
  e.Out(b.Mul(b.Mul(e.In(0), b.Sub(e.Const(1), y)), y));
}

void TanhBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value y = e.In(1);
  e.Out(b.Mul(e.In(0), Conj(e, b.Sub(e.Const(1), b.Mul(y, y)))));
}

void HardtanhBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(1), inside = b.And(b.Cmp(Compare::kGt, x, e.In(2)), b.Cmp(Compare::kLt, x, e.In(3)));
  e.Out(b.Select(inside, e.In(0), e.Const(0)));
}

// The result has the sign of the input, so it does as well (self_is_result).
void LeakyReluBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value grad = e.In(0);
  e.Out(b.Select(b.Cmp(Compare::kGt, e.In(1), 0), grad, b.Mul(grad, e.In(2))));
}

void EluBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value grad = e.In(0), alpha = e.In(1), scale = e.In(2), input_scale = e.In(3), x = e.In(5);
  Value coefficient = b.Mul(alpha, scale);
  Value base = l.Bool(4) ? b.Add(x, coefficient) : b.Mul(coefficient, b.Unary("exponential", b.Mul(x, input_scale)));
  Value negative = b.Mul(b.Mul(grad, input_scale), base);
  // NaN takes the side that carries it.
  e.Out(b.Select(b.Cmp(Compare::kGt, x, 0), b.Mul(grad, scale), negative));
}

void SoftplusBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value grad = e.In(0), scaled = b.Mul(e.In(1), e.In(2)), z = b.Unary("exponential", scaled);
  Value soft = b.Div(b.Mul(grad, z), b.Binary("add", z, 1.0));
  e.Out(b.Select(b.Cmp(Compare::kGt, scaled, e.In(3)), grad, soft));
}

void LogSigmoidBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(1), one = e.Const(1), z = b.Unary("exponential", b.Neg(b.Unary("abs", x)));
  Value tail = b.Div(z, b.Add(one, z)), negative = b.Cmp(Compare::kLt, x, 0);
  e.Out(b.Mul(e.In(0), b.Select(negative, b.Sub(one, tail), tail)));
}

void HardswishBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value grad = e.In(0), x = e.In(1);
  Value middle = b.Mul(grad, b.Binary("add", DivideByCount(b, x, 3), 0.5));
  Value upper = b.Select(b.Cmp(Compare::kGe, x, 3.0), grad, middle);
  e.Out(b.Select(b.Cmp(Compare::kLe, x, -3.0), e.Const(0), upper));
}

void HardsigmoidBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(1), inside = b.And(b.Cmp(Compare::kGt, x, -3.0), b.Cmp(Compare::kLt, x, 3.0));
  e.Out(b.Select(inside, DivideByCount(b, e.In(0), 6), e.Const(0)));
}

// Both shrinks: no gradient inside [-lambda, lambda].
void ShrinkBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(1), lambda = e.In(2);
  Value outside = b.Or(b.Cmp(Compare::kLt, x, b.Neg(lambda)), b.Cmp(Compare::kGt, x, lambda));
  e.Out(b.Select(outside, e.In(0), e.Const(0)));
}

void DropoutBackward(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Mul(e.In(0), l.b.Mul(e.In(1), e.In(2))));
}

void LogitBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value grad = e.In(0), x = e.In(1), one = e.Const(1);
  Value slope = b.Div(grad, b.Mul(x, b.Sub(one, x)));
  const bool clamped = !l.IsNone(2) && l.Double(2) >= 0;
  const double low = clamped ? l.Double(2) : 0;
  Value low_end = e.Const(low), high_end = b.Sub(one, low_end);
  Value outside = b.Or(b.Cmp(Compare::kLt, x, low_end), b.Cmp(Compare::kGt, x, high_end));
  Value beyond = e.Const(clamped ? 0 : std::numeric_limits<double>::quiet_NaN());
  e.Out(b.Select(outside, beyond, slope));
}

void PreluBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value grad = e.In(0), x = e.In(1), positive = b.Cmp(Compare::kGt, x, 0);
  if (l.ResultDefined(0)) e.Out(b.Select(positive, grad, b.Mul(e.In(2), grad)));
  if (l.ResultDefined(1)) e.Out(b.Select(positive, e.Const(0), b.Mul(x, grad)), 1);
}

void GluBackward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value grad = l.Cast(l.Tensor(0), e.math), x = l.Cast(l.Tensor(1), e.math);
  int dim = WrapDim(l.Int(2), b.rank(x));
  int64_t n = b.dim(x, dim);
  Value first = b.SliceDim(x, dim, 0, n / 2), s = Logistic(b, b.SliceDim(x, dim, n / 2, n));
  Value second = b.Mul(b.Mul(b.Mul(b.Sub(b.Like(s, 1), s), s), grad), first);
  e.Out(b.Concatenate({b.Mul(s, grad), second}, dim));
}

constexpr Pad kPass = Pad::kPass;
const Rule kRules[] = {
    {.name = "threshold_backward", .lower = ThresholdBackward, .pad = kPass},
    {.name = "gelu_backward", .lower = GeluBackward, .pad = kPass},
    {.name = "silu_backward", .lower = SiluBackward, .pad = kPass},
    {.name = "mish_backward", .lower = MishBackward, .pad = kPass},
    {.name = "sigmoid_backward", .lower = SigmoidBackward, .pad = kPass},
    {.name = "tanh_backward", .lower = TanhBackward, .pad = kPass},
    {.name = "hardtanh_backward", .lower = HardtanhBackward, .pad = kPass},
    {.name = "leaky_relu_backward", .lower = LeakyReluBackward, .pad = kPass},
    {.name = "elu_backward", .lower = EluBackward, .pad = kPass},
    {.name = "softplus_backward", .lower = SoftplusBackward, .pad = kPass},
    {.name = "log_sigmoid_backward", .lower = LogSigmoidBackward, .pad = kPass},
    {.name = "hardswish_backward", .lower = HardswishBackward, .pad = kPass},
    {.name = "hardsigmoid_backward", .lower = HardsigmoidBackward, .pad = kPass},
    {.name = "hardshrink_backward", .lower = ShrinkBackward, .pad = kPass},
    {.name = "softshrink_backward", .lower = ShrinkBackward, .pad = kPass},
    {.name = "native_dropout_backward", .lower = DropoutBackward, .runtime_floats = "scale", .pad = kPass},
    {.name = "logit_backward", .lower = LogitBackward, .pad = kPass},
    {.name = "_prelu_kernel_backward", .lower = PreluBackward, .pad = kPass},
    {.name = "glu_backward", .lower = GluBackward},
};

}  // namespace

std::span<const Rule> ActivationBackwardRules() { return kRules; }

}  // namespace tpu::lower
