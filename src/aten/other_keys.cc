// SPDX-License-Identifier: Apache-2.0
// Kinds of tensors that the device does not have each dispatch to a key of their own: a clear error there, instead of a
// list of dispatch keys. And the two keys where a kernel of ours must be reached unchanged.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace tpu::aten {
namespace {

[[noreturn]] void Refuse(const c10::OperatorHandle& op, const char* kind) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "Could not run '", op.operator_name(), "': ", kind,
                              " tensors are not supported on tpu devices. Keep the tensor on the CPU or make it dense.");
}
void RefuseSparse(const c10::OperatorHandle& op, torch::jit::Stack*) { Refuse(op, "sparse"); }
void RefuseCompressed(const c10::OperatorHandle& op, torch::jit::Stack*) { Refuse(op, "sparse compressed"); }
void RefuseQuantized(const c10::OperatorHandle& op, torch::jit::Stack*) { Refuse(op, "quantized"); }
void RefuseNested(const c10::OperatorHandle& op, torch::jit::Stack*) { Refuse(op, "nested (strided)"); }

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&RefuseSparse>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&RefuseCompressed>()); }
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&RefuseQuantized>()); }
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&RefuseNested>()); }

// The fallbacks at these keys resolve the bits by a copy, which calls _copy_from again, without end. Our kernel honours
// the bits itself.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace
}  // namespace tpu::aten
