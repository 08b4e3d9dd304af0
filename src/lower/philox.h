// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10 (Salmon et al., SC 2011) in integer operations: the same bits on every engine.
#pragma once
#include <array>

#include "hlo/builder.h"

namespace tpu::lower {

// Four ui32[count] words; element i is the block of counter {low, high} + i and key {key0, key1}. All inputs are ui32
// scalars. Requires: count <= 2^32.
std::array<hlo::Value, 4> Philox(hlo::Builder& b, hlo::Value low, hlo::Value high, hlo::Value key0, hlo::Value key1,
                                 int64_t count);

}  // namespace tpu::lower
