// SPDX-License-Identifier: Apache-2.0
// C++ Meta functions of structured operators, by name: at::meta::<op>, without the dispatcher and without Python.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace tpu::aten {

struct StructuredMeta {
  void (*function)() = nullptr;  // at::meta::<op>, its type known to invoke
  void (*invoke)(void (*function)(), torch::jit::Stack& arguments, std::vector<at::Tensor>* results) = nullptr;
};
using StructuredMetaTable = std::unordered_map<std::string, StructuredMeta>;

// Null when the operator ("aten::add.Tensor") is not structured.
const StructuredMeta* FindStructuredMeta(const std::string& name);

}  // namespace tpu::aten
