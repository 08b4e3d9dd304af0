// SPDX-License-Identifier: Apache-2.0
// Puts the graphs of single records together.
#pragma once
#include <vector>

#include "engine/program.h"
#include "graph/op_record.h"

namespace tpu::engine {

graph::Graph Compose(const Composition& composition);

// For each live value, whether a value-dependent check (Program::traps) of a part was made on the way to it.
std::vector<bool> CheckedOutputs(const Composition& composition);

}  // namespace tpu::engine
