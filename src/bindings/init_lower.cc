// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "bindings/init.h"
#include "lower/rule.h"

namespace tpu::bindings {
namespace {

std::vector<std::string> OpNamesWithRules() {
  std::vector<std::string> names;
  for (const lower::Rule* rule : lower::AllRules()) names.push_back(std::string("aten::") + rule->name);
  return names;
}

}  // namespace

void InitLower(pybind11::module_& m) { m.def("op_names_with_rules", &OpNamesWithRules); }

}  // namespace tpu::bindings
