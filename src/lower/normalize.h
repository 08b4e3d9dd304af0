// SPDX-License-Identifier: Apache-2.0
// The rows of the normalize family that stand in their own files; NormalizeRules() hands them out with its own.
#pragma once
#include <span>

#include "lower/rule.h"

namespace tpu::lower {

std::span<const Rule> LayerNormRules();
std::span<const Rule> BatchNormRules();

}  // namespace tpu::lower
