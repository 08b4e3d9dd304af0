// SPDX-License-Identifier: Apache-2.0
// The kernels of one operator.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "aten/op_form.h"

namespace tpu::aten {

// Records one call of `form`: arguments on the stack become results.
void RecordForm(const OpForm& form, torch::jit::Stack* stack);

// The same for the signatures of small hot operators (tensors and numbers in, one tensor out), without boxing. In-place
// forms return an undefined tensor: their result is their first argument. Instantiated in recorder.cc for (Tensor),
// (Tensor, Tensor), (Tensor, Scalar), (Tensor, Tensor, Scalar).
template <class... Args>
at::Tensor RecordTyped(const OpForm& form, const Args&... args);

}  // namespace tpu::aten
