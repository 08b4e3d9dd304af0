// SPDX-License-Identifier: Apache-2.0
// The rows of the loss family that stand in their own file; LossRules() hands them out with its own.
#pragma once
#include <span>

#include "lower/rule.h"

namespace tpu::lower {

std::span<const Rule> NllLossRules();

}  // namespace tpu::lower
