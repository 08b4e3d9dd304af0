// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <cstring>

#include "op_table.h"

namespace fake_pjrt {
namespace {

Tensor Splat(const Tensor& scalar, int64_t n) {
  Tensor t = Tensor::Empty(scalar.type.With(Dims{n}));
  size_t item = tpu::ItemSize(scalar.type.dtype);
  for (int64_t i = 0; i < n; ++i) std::memcpy(t.bytes() + i * item, scalar.bytes(), item);
  return t;
}

// How often each value is used as an operand anywhere below `region`.
void CountUses(const Region& region, std::vector<int>* uses) {
  for (const Op& op : region.ops) {
    for (int id : op.operands) ++(*uses)[id];
    for (const Region& r : op.regions) CountUses(r, uses);
  }
}

}  // namespace

Error Interpreter::Run(const Function& function, const std::vector<Tensor>& args, std::vector<Tensor>* results) {
  std::vector<Tensor> saved = std::move(values_);
  values_.assign(function.value_types.size(), {});
  for (size_t i = 0; i < args.size(); ++i) values_[function.body.args[i]] = args[i];
  std::vector<int> uses(values_.size());
  CountUses(function.body, &uses);
  Error error;
  for (const Op& op : function.body.ops) {
    if (&op == &function.body.ops.back()) {
      for (int id : op.operands) results->push_back(values_[id]);
      break;
    }
    std::vector<Tensor> in, out;
    for (int id : op.operands) in.push_back(values_[id]);
    error = op.def->eval ? op.def->eval(*this, op, in, &out)
                         : Error{kUnimplemented, std::string("the fake plugin does not execute ") + op.def->name};
    if (!error.ok()) break;
    for (size_t i = 0; i < out.size(); ++i) values_[op.results[i]] = std::move(out[i]);
    // Free what nobody reads any more; values that regions capture stay.
    for (int id : op.operands)
      if (--uses[id] == 0) values_[id] = {};
  }
  values_ = std::move(saved);
  return error;
}

Error Interpreter::RunRegion(const Region& region, const std::vector<Tensor>& args, std::vector<Tensor>* results) {
  for (size_t i = 0; i < args.size(); ++i) values_[region.args[i]] = args[i];
  for (const Op& op : region.ops) {
    std::vector<Tensor> in, out;
    for (int id : op.operands) {
      in.push_back(values_[id]);
      if (batch_ >= 0 && in.back().type.dims.empty()) in.back() = Splat(in.back(), batch_);
    }
    if (&op == &region.ops.back()) {
      *results = std::move(in);
      break;
    }
    bool runs = op.def->eval && (batch_ < 0 || op.def->elementwise || op.operands.empty());
    Error error = runs ? op.def->eval(*this, op, in, &out)
                       : Error{kUnimplemented, std::string("the fake plugin does not execute ") + op.def->name +
                                                   (batch_ < 0 ? "" : " in a scalar region")};
    if (!error.ok()) return error;
    for (size_t i = 0; i < out.size(); ++i) values_[op.results[i]] = std::move(out[i]);
  }
  return {};
}

Error Interpreter::RunScalarRegion(const Region& region, const std::vector<Tensor>& args, std::vector<Tensor>* results) {
  int64_t outer = batch_;
  batch_ = args[0].type.dims[0];
  Error error = RunRegion(region, args, results);
  batch_ = outer;
  return error;
}

Error Interpreter::Call(const std::string& function, const std::vector<Tensor>& args, std::vector<Tensor>* results) {
  if (depth_ > 100) return {kUnimplemented, "calls nested too deeply"};
  ++depth_;
  Error error = Run(*module_.Find(function), args, results);
  --depth_;
  return error;
}

}  // namespace fake_pjrt
