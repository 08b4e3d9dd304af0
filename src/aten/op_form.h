// SPDX-License-Identifier: Apache-2.0
// OpForm: what the recorder must know of one registered operator, worked out once from its schema: which rule serves
// it, where the arguments of the functional overload lie on the stack, and what its results are written to.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <string>
#include <vector>

#include "aten/structured_meta.h"
#include "lower/rule.h"

namespace tpu::aten {

enum class ArgUse : uint8_t {
  kTensor,
  kTensorList,
  kScalar,            // run-time host value
  kClassifiedScalar,  // the rule's or the alpha class decides
  kStructuralScalar,
  kRuntimeFloat,
  kInt,
  kDouble,
  kBool,
  kIntList,
  kDoubleList,
  kBoolList,
  kString,
  kDType,
  kGenerator,         // not in the key: the draw takes it
  kDevice,            // where a factory's result lies; not in the key
  kIgnored,           // layout, pin_memory, non_blocking: none in the key
  kMissing,           // an argument that this form does not have
};

struct ArgPlan {
  ArgUse use = ArgUse::kMissing;
  int16_t stack = -1;      // position among the form's arguments; -1: missing
  int16_t position = 0;    // in the functional schema
  bool is_alpha = false;   // "alpha" or "beta": the value 1 is a class
};

struct OpForm {
  std::string name;                    // "aten::add_.Tensor"
  std::optional<c10::OperatorHandle> op;          // this form
  std::optional<c10::OperatorHandle> functional;  // what Meta is asked; the form itself when it is in-place only
  const lower::Rule* rule = nullptr;   // null: always the fallback
  const StructuredMeta* structured = nullptr;     // the functional operator's C++ Meta function, if it has one
  std::string no_rule;                 // why
  uint64_t op_hash = 0;                // of the rule's name
  int num_stack_args = 0;
  int num_returns = 0;
  std::vector<ArgPlan> args;           // in the functional schema's order
  // In-place: results 0.. are written to these functional arguments (indices of args). out=: to these stack positions.
  std::vector<int16_t> mutated_args;
  std::vector<int16_t> out_args;
  // Functional arguments that results after the schema's replace (Rule::updates), while argument `updates_if` is true.
  std::vector<int16_t> updated_args;
  int16_t updates_if = -1;
  int16_t generator = -1;              // stack position of a Generator argument

  // Whether this argument, where it is None, stands for the dtype of the result that the caller provides.
  bool takes_dtype_of_out(const ArgPlan& plan) const {
    return plan.use == ArgUse::kDType && rule->dtype_of_out && !out_args.empty();
  }
  bool mutates() const { return !mutated_args.empty() || !out_args.empty(); }
};

// Builds the form of `op`. `rule` is null when no row serves it.
std::unique_ptr<OpForm> MakeForm(const c10::OperatorHandle& op);

}  // namespace tpu::aten
