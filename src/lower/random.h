// SPDX-License-Identifier: Apache-2.0
// The rows of the random family that stand in their own file; RandomRules() hands them out with its own.
#pragma once
#include <span>

#include "lower/rule.h"

namespace tpu::lower {

std::span<const Rule> SampleRules();

}  // namespace tpu::lower
