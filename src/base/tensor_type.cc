// SPDX-License-Identifier: Apache-2.0
#include "base/tensor_type.h"

namespace tpu {

std::string TensorType::ToHlo() const {
  std::string s = "tensor<";
  for (Dim d : *this) s += std::to_string(d.size()) + "x";
  return s + HloName(dtype) + ">";
}

}  // namespace tpu
