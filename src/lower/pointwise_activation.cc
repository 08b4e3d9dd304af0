// SPDX-License-Identifier: Apache-2.0
// Activation functions. Formulas and their treatment of NaN follow ATen's CPU kernels.
#include <numbers>

#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;

// 0.5 (1 + erf(x / sqrt 2))
Value NormalCdf(Elementwise& e, Value x) {
  Value erf = Erf(e.b, e.b.Binary("multiply", x, kSqrtHalf));
  return e.b.Binary("multiply", e.b.Binary("add", erf, 1.0), 0.5);
}

void Gelu(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0);
  if (l.num_args() < 2 || l.Text(1) != "tanh") return e.Out(b.Mul(x, NormalCdf(e, x)));
  const double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  Value cube = b.Mul(b.Mul(x, x), x);
  Value inner = b.Binary("multiply", b.Add(x, b.Binary("multiply", cube, 0.044715)), beta);
  e.Out(b.Mul(b.Binary("multiply", x, 0.5), b.Binary("add", b.Unary("tanh", inner), 1.0)));
}

void Silu(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  if (e.complex()) return e.Out(l.b.Mul(x, Logistic(l.b, x)));
  e.Out(l.b.Div(x, l.b.Binary("add", l.b.Unary("exponential", l.b.Neg(x)), 1.0)));
}

// log(1 + exp(x)), without overflow.
Value Log1pExp(Builder& b, Value x) {
  Value tail = b.Unary("log_plus_one", b.Unary("exponential", b.Neg(b.Unary("abs", x))));
  return b.Add(b.Max(x, b.Like(x, 0)), tail);
}

void Mish(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(l.b.Mul(x, l.b.Unary("tanh", Log1pExp(l.b, x))));
}

void Softplus(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), scaled = b.Mul(x, e.In(1));
  Value soft = b.Div(b.Unary("log_plus_one", b.Unary("exponential", scaled)), e.Divisor(1));
  e.Out(b.Select(b.Cmp(Compare::kGt, scaled, e.In(2)), x, soft));
}

void LogSigmoidForward(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), z = b.Unary("exponential", b.Neg(b.Unary("abs", x)));
  e.Out(b.Sub(b.Min(x, e.Const(0)), b.Unary("log_plus_one", z)));
  if (l.num_results() < 2) return;
  // The buffer has the input's dims where the reference is CPU, and none where it is CUDA.
  TensorType buffer = l.ResultType(1);
  l.SetResult(1, buffer.SameDims(e.type) ? l.Cast(z, buffer.dtype) : b.Constant(buffer, 0));
}

void Elu(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), alpha = e.In(1), scale = e.In(2), input_scale = e.In(3);
  Value negative = b.Mul(b.Unary("exponential_minus_one", b.Mul(x, input_scale)), b.Mul(alpha, scale));
  e.Out(b.Select(b.Cmp(Compare::kLe, x, 0), negative, b.Mul(x, scale)));
}

void Celu(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), alpha = e.In(1);
  Value negative = b.Mul(b.Unary("exponential_minus_one", b.Div(x, e.Divisor(1))), alpha);
  e.Out(b.Select(b.Cmp(Compare::kLe, x, 0), negative, x));
}

void Selu(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  constexpr double kAlpha = 1.6732632423543772848170429916717, kScale = 1.0507009873554804934193349852946;
  Value x = e.In(0), negative = b.Binary("multiply", b.Unary("exponential_minus_one", x), kAlpha * kScale);
  e.Out(b.Select(b.Cmp(Compare::kLe, x, 0), negative, b.Binary("multiply", x, kScale)));
}

void LeakyRelu(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(l.b.Select(l.b.Cmp(Compare::kGt, x, 0), x, l.b.Mul(x, e.In(1))));
}

void Hardtanh(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Min(l.b.Max(e.In(0), e.In(1)), e.In(2)));
}

void Relu6(Lowering& l) {
  Elementwise e(l);
  e.Out(l.b.Min(l.b.Max(e.In(0), e.Const(0)), e.Const(6)));
}

// min(max(x + 3, 0), 6)
Value HardSix(Elementwise& e, Value x) { return e.b.Min(e.b.Max(e.b.Binary("add", x, 3.0), e.Const(0)), e.Const(6)); }

void Hardswish(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(DivideByCount(l.b, l.b.Mul(x, HardSix(e, x)), 6));
}

void Hardsigmoid(Lowering& l) {
  Elementwise e(l);
  e.Out(DivideByCount(l.b, HardSix(e, e.In(0)), 6));
}

void Hardshrink(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), lambda = e.In(1);
  Value inside = b.And(b.Cmp(Compare::kGe, x, b.Neg(lambda)), b.Cmp(Compare::kLe, x, lambda));
  e.Out(b.Select(inside, e.Const(0), x));
}

void Softshrink(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = e.In(0), lambda = e.In(1);
  // x * 0 in the middle carries NaN.
  Value low = b.Select(b.Cmp(Compare::kLt, x, b.Neg(lambda)), b.Add(x, lambda), b.Mul(x, e.Const(0)));
  e.Out(b.Select(b.Cmp(Compare::kGt, x, lambda), b.Sub(x, lambda), low));
}

void Threshold(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(l.b.Select(l.b.Cmp(Compare::kLe, x, e.In(1)), e.In(2), x));
}

void Prelu(Lowering& l) {
  Elementwise e(l);
  Value x = e.In(0);
  e.Out(l.b.Select(l.b.Cmp(Compare::kGt, x, 0), x, l.b.Mul(e.In(1), x)));
}

void Glu(Lowering& l) {
  Elementwise e(l);
  Builder& b = l.b;
  Value x = l.Cast(l.Tensor(0), e.math);
  int dim = WrapDim(l.IntOr(1, -1), b.rank(x));
  int64_t n = b.dim(x, dim);
  e.Out(b.Mul(b.SliceDim(x, dim, 0, n / 2), Logistic(b, b.SliceDim(x, dim, n / 2, n))));
}

constexpr Pad kPass = Pad::kPass;
const Rule kRules[] = {
    {.name = "gelu", .lower = Gelu, .pad = kPass},
    {.name = "silu", .lower = Silu, .pad = kPass},
    {.name = "mish", .lower = Mish, .pad = kPass},
    {.name = "softplus", .lower = Softplus, .pad = kPass},
    {.name = "log_sigmoid_forward", .lower = LogSigmoidForward, .pad = kPass},
    {.name = "elu", .lower = Elu, .pad = kPass},
    {.name = "celu", .lower = Celu, .pad = kPass},
    {.name = "selu", .lower = Selu, .pad = kPass},
    {.name = "leaky_relu", .lower = LeakyRelu, .pad = kPass},
    {.name = "hardtanh", .lower = Hardtanh, .pad = kPass},
    {.name = "relu6", .lower = Relu6, .pad = kPass},
    {.name = "hardswish", .lower = Hardswish, .pad = kPass},
    {.name = "hardsigmoid", .lower = Hardsigmoid, .pad = kPass},
    {.name = "hardshrink", .lower = Hardshrink, .pad = kPass},
    {.name = "softshrink", .lower = Softshrink, .pad = kPass},
    {.name = "threshold", .lower = Threshold, .pad = kPass},
    {.name = "_prelu_kernel", .lower = Prelu, .pad = kPass},
    {.name = "glu", .lower = Glu},
};

}  // namespace

std::span<const Rule> ActivationRules() { return kRules; }

}  // namespace tpu::lower
