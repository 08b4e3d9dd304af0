// SPDX-License-Identifier: Apache-2.0
// Puts the graphs of single records together.
#pragma once
#include "engine/program.h"
#include "graph/op_record.h"

namespace tpu::engine {

graph::Graph Compose(const Composition& composition);

}  // namespace tpu::engine
