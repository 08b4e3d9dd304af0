// SPDX-License-Identifier: Apache-2.0
// The rows of the index family that stand in their own files; IndexRules() hands them out with its own.
#pragma once
#include <span>

#include "lower/rule.h"

namespace tpu::lower {

std::span<const Rule> ScatterRules();
std::span<const Rule> IndexListRules();

}  // namespace tpu::lower
