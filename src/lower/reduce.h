// SPDX-License-Identifier: Apache-2.0
// The rows of the reduce family that stand in their own files; ReduceRules() hands them out with its own.
#pragma once
#include <span>

#include "lower/rule.h"

namespace tpu::lower {

std::span<const Rule> MomentRules();
std::span<const Rule> ScanRules();

}  // namespace tpu::lower
