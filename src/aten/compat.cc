// SPDX-License-Identifier: Apache-2.0
// Module.to and `p.data = x` keep a Parameter object when its new tensor has a compatible TensorImpl. Core's list of dense
// devices lacks ours; without this, moving a module makes new Parameters, and ties and optimizers made before come apart.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace tpu::aten {
namespace {

// Stock TensorImpl over a dense storage, on a device that modules move between.
bool IsPlain(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kDevices({c10::BackendComponent::CPUBit, c10::BackendComponent::PrivateUse1Bit});
  constexpr c10::DispatchKeySet kWrappers({c10::DispatchKey::Python, c10::DispatchKey::Functionalize});
  c10::DispatchKeySet keys = tensor.key_set();
  return keys.has(c10::DispatchKey::Dense) && keys.has_any(kDevices) && !keys.has_any(kWrappers);
}

bool HasCompatibleShallowCopyType(const at::Tensor& self, const at::Tensor& from) {
  return (IsPlain(self) && IsPlain(from)) || self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(HasCompatibleShallowCopyType));
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(HasCompatibleShallowCopyType));
}

}  // namespace
}  // namespace tpu::aten
