// SPDX-License-Identifier: Apache-2.0
// The rule that the regions of reduce, sort, scatter, ... share: scalar arguments, scalar results.
#pragma once
#include <string>
#include <vector>

#include "program.h"

namespace fake_pjrt {

// "" when region `i` of `op` takes scalars of `args` and returns scalars of `results`.
std::string CheckScalarRegion(const Op& op, const std::vector<DType>& args, const std::vector<DType>& results, size_t i = 0);
// The element types of operands [first, first + count).
std::vector<DType> ElementTypes(const Op& op, size_t first, size_t count);
// `types` twice: the arguments of a combining region.
std::vector<DType> Twice(const std::vector<DType>& types);

}  // namespace fake_pjrt
