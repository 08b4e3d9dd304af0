// SPDX-License-Identifier: Apache-2.0
// Operators that PyTorch routes to accelerators only: they have no CPU kernel, so the fallback brings its own.
#pragma once
#include <ATen/core/stack.h>

#include <string>

namespace tpu::aten {

// Works on CPU tensors: pops the arguments, pushes the results.
using HostKernel = void (*)(torch::jit::Stack* stack);

// Null when there is none. `name` as c10::toString writes it.
HostKernel FindHostKernel(const std::string& name);

}  // namespace tpu::aten
