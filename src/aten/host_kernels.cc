// SPDX-License-Identifier: Apache-2.0
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#define AT_PER_OPERATOR_HEADERS
#include "aten/host_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

namespace tpu::aten {
namespace {

using at::Tensor;
using torch::jit::Stack;

std::optional<Tensor> OptionalOf(const c10::IValue& v) {
  if (v.isNone() || !v.toTensor().defined()) return std::nullopt;
  return v.toTensor();
}

// Narrow floats are computed in float32 and rounded once.
Tensor Wide(const Tensor& t) {
  return t.scalar_type() == c10::kHalf || t.scalar_type() == c10::kBFloat16 ? t.to(c10::kFloat) : t;
}

std::vector<c10::IValue> PopArguments(Stack* stack, size_t n) {
  std::vector<c10::IValue> args = torch::jit::pop(*stack, n);
  return args;
}

Tensor WithBias(const c10::IValue& gates, const c10::IValue& bias) {
  Tensor g = Wide(gates.toTensor());
  auto b = OptionalOf(bias);
  return b ? g + Wide(*b) : g;
}

// The parts of equal width side by side.
Tensor Columns(const std::vector<Tensor>& parts) {
  const int64_t rows = parts[0].size(0), width = parts[0].size(1);
  Tensor out = parts[0].new_empty({rows, width * static_cast<int64_t>(parts.size())});
  for (size_t i = 0; i < parts.size(); ++i) out.narrow(1, static_cast<int64_t>(i) * width, width).copy_(parts[i]);
  return out;
}

Tensor SigmoidSlope(const Tensor& y) { return y * (1 - y); }
Tensor TanhSlope(const Tensor& y) { return 1 - y * y; }

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace: the four activated gates)
void LstmCell(Stack* stack) {
  auto a = PopArguments(stack, 5);
  const Tensor cx = a[2].toTensor();
  auto gates = (WithBias(a[0], a[3]) + WithBias(a[1], a[4])).chunk(4, 1);
  Tensor i = gates[0].sigmoid(), f = gates[1].sigmoid(), g = gates[2].tanh(), o = gates[3].sigmoid();
  Tensor cy = f * Wide(cx) + i * g;
  Tensor hy = o * cy.tanh();
  const auto dtype = a[0].toTensor().scalar_type();
  torch::jit::push(*stack, hy.to(dtype), cy.to(cx.scalar_type()), Columns({i, f, g, o}).to(dtype));
}

// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx, grad_bias)
void LstmCellBackward(Stack* stack) {
  auto a = PopArguments(stack, 6);
  auto grad_hy = OptionalOf(a[0]), grad_cy = OptionalOf(a[1]);
  if (!grad_hy && !grad_cy) {
    torch::jit::push(*stack, Tensor(), Tensor(), Tensor());
    return;
  }
  const Tensor cx = Wide(a[2].toTensor()), tanh_c = Wide(a[3].toTensor()).tanh(), workspace = a[4].toTensor();
  auto gates = Wide(workspace).chunk(4, 1);
  const Tensor &i = gates[0], &f = gates[1], &g = gates[2], &o = gates[3];
  Tensor gh = grad_hy ? Wide(*grad_hy) : tanh_c.new_zeros(tanh_c.sizes());
  Tensor gc = gh * o * TanhSlope(tanh_c);
  if (grad_cy) gc = gc + Wide(*grad_cy);
  Tensor grad =
      Columns({gc * g * SigmoidSlope(i), gc * cx * SigmoidSlope(f), gc * i * TanhSlope(g), gh * tanh_c * SigmoidSlope(o)})
          .to(workspace.scalar_type());
  torch::jit::push(*stack, grad, (gc * f).to(a[2].toTensor().scalar_type()), a[5].toBool() ? grad.sum(0) : Tensor());
}

// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace: reset, update, new, hx, hidden part of new)
void GruCell(Stack* stack) {
  auto a = PopArguments(stack, 5);
  const Tensor hx = Wide(a[2].toTensor());
  auto in = WithBias(a[0], a[3]).chunk(3, 1), hidden = WithBias(a[1], a[4]).chunk(3, 1);
  Tensor r = (in[0] + hidden[0]).sigmoid(), z = (in[1] + hidden[1]).sigmoid(), n = (in[2] + r * hidden[2]).tanh();
  const auto dtype = a[0].toTensor().scalar_type();
  torch::jit::push(*stack, (n + z * (hx - n)).to(a[2].toTensor().scalar_type()), Columns({r, z, n, hx, hidden[2]}).to(dtype));
}

// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx, grad_input_bias, grad_hidden_bias)
void GruCellBackward(Stack* stack) {
  auto a = PopArguments(stack, 3);
  const Tensor grad = Wide(a[0].toTensor()), workspace = a[1].toTensor();
  auto w = Wide(workspace).chunk(5, 1);
  const Tensor &r = w[0], &z = w[1], &n = w[2], &hx = w[3], &hn = w[4];
  Tensor gn = grad * (1 - z) * TanhSlope(n), gz = grad * (hx - n) * SigmoidSlope(z), gr = gn * hn * SigmoidSlope(r);
  const auto dtype = workspace.scalar_type();
  Tensor gi = Columns({gr, gz, gn}).to(dtype), gh = Columns({gr, gz, gn * r}).to(dtype);
  const bool bias = a[2].toBool();
  torch::jit::push(*stack, gi, gh, (grad * z).to(a[0].toTensor().scalar_type()), bias ? gi.sum(0) : Tensor(),
                   bias ? gh.sum(0) : Tensor());
}

// (self, p: probability to keep, generator?) -> (result, mask)
void FusedDropout(Stack* stack) {
  auto a = PopArguments(stack, 3);
  const Tensor self = a[0].toTensor();
  const double keep = a[1].toDouble();
  std::optional<at::Generator> generator;
  if (!a[2].isNone()) generator = a[2].toGenerator();
  Tensor mask = self.new_empty(self.sizes(), c10::kByte).bernoulli_(keep, generator);
  torch::jit::push(*stack, (Wide(self) * mask / keep).to(self.scalar_type()), mask);
}

// (self, mask, scale) -> result
void MaskedScale(Stack* stack) {
  auto a = PopArguments(stack, 3);
  const Tensor self = a[0].toTensor();
  torch::jit::push(*stack, (Wide(self) * a[1].toTensor() * a[2].toDouble()).to(self.scalar_type()));
}

// (grad_out, input, normalized_shape, rstd, weight?, output_mask) -> (grad_input, grad_weight)
void RmsNormBackward(Stack* stack) {
  auto a = PopArguments(stack, 6);
  const Tensor input = a[1].toTensor(), grad = Wide(a[0].toTensor()), rstd = Wide(a[3].toTensor());
  auto weight = OptionalOf(a[4]);
  const auto mask = a[5].toBoolList();
  const int64_t inner_rank = static_cast<int64_t>(a[2].toListRef().size()), outer_rank = input.dim() - inner_rank;
  std::vector<int64_t> inner, outer;
  for (int64_t d = 0; d < input.dim(); ++d) (d < outer_rank ? outer : inner).push_back(d);
  Tensor normal = Wide(input) * rstd;
  Tensor grad_input, grad_weight;
  if (mask[0]) {
    Tensor g = weight ? grad * Wide(*weight) : grad;
    grad_input = (rstd * (g - normal * (g * normal).mean(inner, /*keepdim=*/true))).to(input.scalar_type());
  }
  if (mask[1] && weight) {
    grad_weight = grad * normal;
    if (!outer.empty()) grad_weight = grad_weight.sum(outer);
    grad_weight = grad_weight.to(weight->scalar_type());
  }
  torch::jit::push(*stack, grad_input, grad_weight);
}

// (self) -> (indices padded to the element count, count)
void NonzeroPadded(Stack* stack) {
  const Tensor self = torch::jit::pop(*stack).toTensor();
  Tensor found = self.nonzero();
  Tensor rows = found.new_zeros({self.numel(), self.dim()});
  rows.narrow(0, 0, found.size(0)).copy_(found);
  torch::jit::push(*stack, rows, found.new_zeros({}).fill_(found.size(0)));
}

struct Row {
  const char* name;
  HostKernel kernel;
};
constexpr Row kRows[] = {
    {"aten::_thnn_fused_lstm_cell", &LstmCell},
    {"aten::_thnn_fused_lstm_cell_backward_impl", &LstmCellBackward},
    {"aten::_thnn_fused_gru_cell", &GruCell},
    {"aten::_thnn_fused_gru_cell_backward", &GruCellBackward},
    {"aten::_fused_dropout", &FusedDropout},
    {"aten::_masked_scale", &MaskedScale},
    {"aten::_fused_rms_norm_backward", &RmsNormBackward},
    {"torch_tpu::nonzero_padded", &NonzeroPadded},
};

}  // namespace

HostKernel FindHostKernel(const std::string& name) {
  for (const Row& row : kRows)
    if (name == row.name) return row.kernel;
  return nullptr;
}

}  // namespace tpu::aten
