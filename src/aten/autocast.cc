// SPDX-License-Identifier: Apache-2.0
// torch.autocast("tpu"): core's own lists of operators and policies. Kept alone in this file: it takes 20 s to compile.
#include "aten/autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace tpu::aten {
namespace {

// The names that the macros of autocast_mode.h use.
using namespace at;            // NOLINT
using namespace at::autocast;  // NOLINT

Tensor RefuseBinaryCrossEntropy(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
              "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
              "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
              "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
              "safe to autocast.");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define TPU_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TPU_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TPU_FLOAT32_RESULT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TPU_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(TPU_LOWER_PRECISION)
  AT_FORALL_FP32(TPU_FLOAT32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TPU_FLOAT32_RESULT)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(TPU_PROMOTE)
  m.impl("binary_cross_entropy", TORCH_FN(RefuseBinaryCrossEntropy));
}

}  // namespace
}  // namespace tpu::aten

namespace tpu::aten {

thread_local bool t_autocast_chosen = false;

void ChooseAutocastDtype() {
  t_autocast_chosen = true;
  at::autocast::set_autocast_dtype(at::kPrivateUse1, at::kBFloat16);
}

}  // namespace tpu::aten
