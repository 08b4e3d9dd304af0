// SPDX-License-Identifier: Apache-2.0
// Operators that need a kernel of ours and belong to no family.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#define AT_PER_OPERATOR_HEADERS
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/new_empty_strided_native.h>
#include <torch/library.h>

#include "aten/recorder.h"
#include "aten/tensor.h"
#include "engine/trace.h"

namespace tpu::aten {
namespace {

using at::Tensor;

// Forward-mode differentiation's zeros: no memory at all, an own dispatch key that the first real use materialises.
Tensor EfficientZeroTensor(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                           std::optional<at::Device> device, std::optional<bool>) {
  const c10::Device where(kDeviceType, static_cast<c10::DeviceIndex>(DeviceIndexOf(device)));
  at::native::ZeroTensorAllocator allocator(where);
  const c10::DispatchKeySet keys({c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor});
  return at::detail::empty_generic(sizes, &allocator, keys,
                                   dtype ? *dtype : c10::typeMetaToScalarType(c10::get_default_dtype()), std::nullopt);
}

// Core's copy-on-write storages keep their context where ours is. Values are shared until the next write anyway.
Tensor LazyClone(const Tensor& self) {
  at::AutoDispatchBelowADInplaceOrView below;
  return self.clone();
}

// GradScaler's: whether any gradient is not finite, and the gradients times inv_scale, which must be so even then.
void NonFiniteCheckAndUnscale(at::TensorList self, Tensor& found_inf, const Tensor& inv_scale) {
  engine::ScopedTrace trace;
  for (Tensor t : self) {
    const Tensor bad = t.isfinite().all().logical_not().to(found_inf.scalar_type());
    found_inf.copy_(found_inf.maximum(bad.reshape(found_inf.sizes())));
    t.mul_(inv_scale.reshape({}));
  }
}

void BoxedRecord(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Record(op, stack); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_efficientzerotensor", &EfficientZeroTensor);
  m.impl("_lazy_clone", &LazyClone);
  m.impl("lift_fresh_copy", &LazyClone);
  m.impl("_amp_foreach_non_finite_check_and_unscale_", &NonFiniteCheckAndUnscale);
  // They have rules, for whole graphs; op by op core's own kernels do better. Both end in _copy_from, where equal bytes are
  // shared instead of copied, and _to_copy goes to any device.
  m.impl("clone", &at::native::clone);
  m.impl("new_empty_strided", &at::native::new_empty_strided_symint);
  m.impl("_to_copy", &at::native::_to_copy);
  // PyTorch routes accelerators to these, so they have no CPU kernel and the list of operators passes them over. Without a
  // rule they run through host_kernels.cc.
  for (const char* name : {"_thnn_fused_lstm_cell", "_thnn_fused_lstm_cell_backward_impl", "_thnn_fused_gru_cell",
                           "_thnn_fused_gru_cell_backward", "_fused_dropout", "_masked_scale", "_fused_rms_norm_backward"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&BoxedRecord>());
}

}  // namespace tpu::aten
