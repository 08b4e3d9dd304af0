// SPDX-License-Identifier: Apache-2.0
// What the fake knows about each operator: its signature, its typing rule, and how to run it. One table a family, at
// the end of ops_<family>.cc.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "error.h"
#include "program.h"

namespace fake_pjrt {

class Interpreter;

inline constexpr int kAny = -1;

struct AttrSpec {
  const char* name;
  Attr::Kind kind;
  bool required = false;
  // kInt: element type; kEnum, kStruct: "dialect.name"; else unused.
  const char* detail = nullptr;
};

// Returns "" or what is wrong.
using VerifyFn = std::string (*)(const Op&);
// Appends one tensor a result. Requires: a verified op, and `in` as its operand types say.
using EvalFn = Error (*)(Interpreter&, const Op&, const std::vector<Tensor>& in, std::vector<Tensor>* out);

struct OpDef {
  const char* name;
  int min_operands, max_operands;  // kAny: no upper limit
  int results;                     // kAny: checked by verify
  int regions;                     // kAny: checked by verify
  std::vector<AttrSpec> attrs;
  VerifyFn verify = nullptr;
  EvalFn eval = nullptr;     // null: known, but executing it is UNIMPLEMENTED
  bool elementwise = false;  // may stand in the scalar region of a reduce, sort, scatter, ...
};

// Null for an unknown operator.
const OpDef* FindOp(std::string_view name);

// The families.
const std::vector<OpDef>& UnaryOps();
const std::vector<OpDef>& BinaryOps();
const std::vector<OpDef>& ConvertOps();
const std::vector<OpDef>& ShapeOps();
const std::vector<OpDef>& SliceOps();
const std::vector<OpDef>& GatherOps();
const std::vector<OpDef>& ReduceOps();
const std::vector<OpDef>& SortOps();
const std::vector<OpDef>& DotOps();
const std::vector<OpDef>& ConvolutionOps();
const std::vector<OpDef>& ControlOps();
const std::vector<OpDef>& KnownOps();

// Helpers of typing rules.
std::string WrongResult(const Op& op, const Type& expected, size_t result = 0);  // "" when it is as expected
std::string NeedSameDims(const Op& op, size_t operand, const Dims& dims);        // "" when they are

}  // namespace fake_pjrt
