// SPDX-License-Identifier: Apache-2.0
// Custom operators without a derivative. Core leaves this key of ours empty, which would drop gradients without a word.
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

namespace tpu::aten {
namespace {

// The basic one, as core has it for CPU and CUDA: a warning in backward (torch._C._set_autograd_fallback_mode), and in-place
// operators on leaves, such as a collective on a Parameter, keep working.
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) { m.fallback(torch::autograd::basicAutogradNotImplementedFallback()); }

}  // namespace
}  // namespace tpu::aten
