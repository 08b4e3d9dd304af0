// SPDX-License-Identifier: Apache-2.0
#include "scalar_region.h"

namespace fake_pjrt {

std::string CheckScalarRegion(const Op& op, const std::vector<DType>& args, const std::vector<DType>& results, size_t i) {
  const Region& region = op.regions[i];
  auto scalars = [](const std::vector<DType>& dtypes) {
    std::vector<Type> types;
    for (DType d : dtypes) types.push_back({d, {}});
    return types;
  };
  auto text = [](const std::vector<Type>& types) {
    std::string s = "(";
    for (const Type& t : types) s += (s.size() > 1 ? ", " : "") + t.ToString();
    return s + ")";
  };
  if (region.arg_types != scalars(args))
    return "the region's arguments are " + text(region.arg_types) + ", expected " + text(scalars(args));
  if (region.result_types != scalars(results))
    return "the region returns " + text(region.result_types) + ", expected " + text(scalars(results));
  return "";
}

std::vector<DType> ElementTypes(const Op& op, size_t first, size_t count) {
  std::vector<DType> types;
  for (size_t i = 0; i < count; ++i) types.push_back(op.operand_types[first + i].dtype);
  return types;
}

std::vector<DType> Twice(const std::vector<DType>& types) {
  std::vector<DType> twice = types;
  twice.insert(twice.end(), types.begin(), types.end());
  return twice;
}

}  // namespace fake_pjrt
