// SPDX-License-Identifier: Apache-2.0
#include "op_table.h"

#include <unordered_map>

namespace fake_pjrt {

const OpDef* FindOp(std::string_view name) {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string_view, const OpDef*>;
    for (const auto* family : {&UnaryOps(), &BinaryOps(), &ConvertOps(), &ShapeOps(), &SliceOps(), &GatherOps(), &ReduceOps(),
                               &SortOps(), &DotOps(), &ConvolutionOps(), &ControlOps(), &KnownOps()})
      for (const OpDef& def : *family) t->emplace(def.name, &def);
    return t;
  }();
  auto it = table->find(name);
  return it == table->end() ? nullptr : it->second;
}

std::string WrongResult(const Op& op, const Type& expected, size_t result) {
  if (op.result_types[result] == expected) return "";
  return "result " + std::to_string(result) + " should be " + expected.ToString() + ", is " +
         op.result_types[result].ToString();
}

std::string NeedSameDims(const Op& op, size_t operand, const Dims& dims) {
  if (op.operand_types[operand].dims == dims) return "";
  Type t = op.operand_types[operand];
  return "operand " + std::to_string(operand) + " is " + t.ToString() + " where dimensions as of " + t.With(dims).ToString() +
         " are needed";
}

}  // namespace fake_pjrt
