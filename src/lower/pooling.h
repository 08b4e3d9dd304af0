// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "lower/windows.h"

namespace tpu::lower {

// Where kernel_size lies in the schema (stride and padding follow), and dilation; -1: there is none.
struct PoolArguments {
  int kernel;
  int dilation = -1;
};
// One window a spatial dimension: the last `n` of `in` (the pooled tensor) and `out`.
std::vector<PoolWindow> PoolWindows(const Lowering& l, int n, const TensorType& in, const TensorType& out, PoolArguments at);

std::span<const Rule> MaxPoolRules();

}  // namespace tpu::lower
