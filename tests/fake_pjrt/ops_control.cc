// SPDX-License-Identifier: Apache-2.0
// Control flow, calls, terminators.
#include <algorithm>

#include "interpreter.h"
#include "op_table.h"

namespace fake_pjrt {
namespace {

using Kind = Attr::Kind;
const Type kPredicate{DType::kBool, {}};

std::string VerifyWhile(const Op& op) {
  if (op.result_types != op.operand_types) return "results and operands have different types";
  if (op.regions[0].arg_types != op.operand_types || op.regions[1].arg_types != op.operand_types)
    return "region arguments do not match the operands";
  if (op.regions[0].result_types != std::vector<Type>{kPredicate}) return "the condition must return one tensor<i1>";
  return op.regions[1].result_types == op.operand_types ? "" : "the body must return the operands' types";
}

Error EvalWhile(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  std::vector<Tensor> state = in;
  for (;;) {
    std::vector<Tensor> condition, next;
    if (Error e = interpreter.RunRegion(op.regions[0], state, &condition); !e.ok()) return e;
    if (!condition[0].As<bool>()[0]) break;
    if (Error e = interpreter.RunRegion(op.regions[1], state, &next); !e.ok()) return e;
    state = std::move(next);
  }
  *out = std::move(state);
  return {};
}

std::string CheckBranches(const Op& op) {
  for (const Region& r : op.regions) {
    if (!r.args.empty()) return "branches take no arguments";
    if (r.result_types != op.result_types) return "a branch returns other types than the operator";
  }
  return "";
}

std::string VerifyIf(const Op& op) {
  if (!(op.operand_types[0] == kPredicate)) return "the predicate is " + op.operand_types[0].ToString();
  return CheckBranches(op);
}

Error EvalIf(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  return interpreter.RunRegion(op.regions[in[0].As<bool>()[0] ? 0 : 1], {}, out);
}

std::string VerifyCase(const Op& op) {
  if (!(op.operand_types[0] == Type{DType::kI32, {}})) return "the index is " + op.operand_types[0].ToString();
  return op.regions.empty() ? "no branches" : CheckBranches(op);
}

Error EvalCase(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  int64_t index = IntegerAt(in[0], 0), last = static_cast<int64_t>(op.regions.size()) - 1;
  if (index < 0 || index > last) index = last;
  return interpreter.RunRegion(op.regions[index], {}, out);
}

std::string VerifySameTypes(const Op& op) {
  return op.result_types == op.operand_types ? "" : "results and operands have different types";
}

Error EvalForward(Interpreter&, const Op&, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  *out = in;
  return {};
}

Error EvalCall(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  return interpreter.Call(op.attr("callee").text, in, out);
}

}  // namespace

const std::vector<OpDef>& ControlOps() {
  static const auto* ops = new std::vector<OpDef>{
      {"func.call", 0, kAny, kAny, 0, {{"callee", Kind::kSymbol, true}}, nullptr, EvalCall},
      {"func.return", 0, kAny, 0, 0, {}},
      {"stablehlo.return", 0, kAny, 0, 0, {}},
      {"stablehlo.case", 1, 1, kAny, kAny, {}, VerifyCase, EvalCase},
      {"stablehlo.if", 1, 1, kAny, 2, {}, VerifyIf, EvalIf},
      {"stablehlo.optimization_barrier", 1, kAny, kAny, 0, {}, VerifySameTypes, EvalForward, true},
      {"stablehlo.while", 1, kAny, kAny, 2, {}, VerifyWhile, EvalWhile},
  };
  return *ops;
}

// Parsed and compiled with no typing rule; running one is UNIMPLEMENTED.
const std::vector<OpDef>& KnownOps() {
  static const auto* ops = [] {
    auto* list = new std::vector<OpDef>;
    for (const char* name : {"stablehlo.all_gather",
                             "stablehlo.all_reduce",
                             "stablehlo.all_to_all",
                             "stablehlo.batch_norm_grad",
                             "stablehlo.batch_norm_inference",
                             "stablehlo.batch_norm_training",
                             "stablehlo.cholesky",
                             "stablehlo.collective_broadcast",
                             "stablehlo.collective_permute",
                             "stablehlo.composite",
                             "stablehlo.custom_call",
                             "stablehlo.fft",
                             "stablehlo.get_dimension_size",
                             "stablehlo.partition_id",
                             "stablehlo.reduce_scatter",
                             "stablehlo.replica_id",
                             "stablehlo.rng",
                             "stablehlo.rng_bit_generator",
                             "stablehlo.set_dimension_size",
                             "stablehlo.triangular_solve",
                             "chlo.ragged_dot"})
      list->push_back({name, 0, kAny, kAny, kAny, {}});
    return list;
  }();
  return *ops;
}

}  // namespace fake_pjrt
