// SPDX-License-Identifier: Apache-2.0
// Which way core's scaled_dot_product_attention takes on "tpu": one program (src/lower/attention.cc) where that holds
// all of it, else core's own composition out of products and softmax.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include <optional>

namespace tpu::aten {
namespace {

using at::Tensor;

bool OneProgram(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                double dropout_p, bool enable_gqa) {
  if (!at::globalContext().userEnabledFlashSDP() || dropout_p != 0) return false;
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4 || !query.is_floating_point()) return false;
  if (query.size(3) != value.size(3)) return false;
  int64_t heads = query.size(1), groups = key.size(1);
  if (groups != value.size(1) || (heads != groups && (!enable_gqa || groups == 0 || heads % groups != 0))) return false;
  return !mask || !mask->requires_grad();
}

int64_t Choose(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask, double dropout_p,
               bool, std::optional<double>, bool enable_gqa) {
  if (OneProgram(query, key, value, mask, dropout_p, enable_gqa)) return static_cast<int64_t>(at::SDPBackend::flash_attention);
  TORCH_CHECK(at::globalContext().userEnabledMathSDP(), "No available kernel. Aborting execution.");
  return static_cast<int64_t>(at::SDPBackend::math);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_fused_sdp_choice", &Choose); }

}  // namespace
}  // namespace tpu::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tpu::aten::Choose)
}  // namespace at::native
