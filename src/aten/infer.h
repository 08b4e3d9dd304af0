// SPDX-License-Identifier: Apache-2.0
// Result types from PyTorch's own Meta kernels: on a miss only, on this thread, never under a lock of ours.
#pragma once
#include <ATen/core/stack.h>

#include "aten/op_form.h"
#include "base/status.h"
#include "graph/op_record.h"

namespace tpu::aten {

// What the infer hook of the corridor gets.
struct InferContext {
  const OpForm* form;
  const c10::IValue* arguments;  // the form's arguments on the stack
  std::vector<int16_t> updated;  // functional arguments that further results replace
  std::exception_ptr raised;     // what Meta raised: PyTorch's own exception, to be rethrown at the call
  // Set when out= arguments must be resized first (result k of `sizes`); the call is then recorded anew.
  std::vector<std::pair<int, std::vector<int64_t>>> resize;
};

// Fills record->results for the functional operator; checks in-place and out= targets as TensorIterator does.
// NotImplemented: Meta has no answer (data-dependent, no kernel). Runtime with context.raised set: Meta refused.
Status InferResults(InferContext* context, graph::OpRecord* record);

}  // namespace tpu::aten
