// SPDX-License-Identifier: Apache-2.0
// The boxed kernel of one operator.
#pragma once
#include <ATen/core/stack.h>

#include "aten/op_form.h"

namespace tpu::aten {

// Records one call of `form`: arguments on the stack become results.
void RecordForm(const OpForm& form, torch::jit::Stack* stack);

}  // namespace tpu::aten
