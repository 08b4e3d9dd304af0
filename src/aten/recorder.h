// SPDX-License-Identifier: Apache-2.0
// The recorder: one boxed function, registered per operator by name, carries all of ATen into the corridor.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tpu::aten {

// Records `op` over the arguments on the stack and leaves its results there, as the dispatcher would: through its rule,
// or through the counted CPU fallback when it has none (for this signature). For kernels of ours that prepare arguments
// (boolean masks) and then go on like any operator.
void Record(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// dst <- src on the device, broadcast and converted: the operator copy_ between tensors of ours on one device.
void RecordCopy(const at::Tensor& dst, const at::Tensor& src);

}  // namespace tpu::aten
