// SPDX-License-Identifier: Apache-2.0
// The miss: decode, infer, lower, insert. Compiling waits until the program is to run (engine/executables.h): a record
// that is sealed together with others may never run by itself.
#pragma once
#include <memory>

#include "engine/corridor.h"
#include "graph/op_record.h"

namespace tpu::engine {

// Null on a miss. No lock, no allocation on a hit of the thread's table.
Program* FindProgram(const Fingerprint& fingerprint, const graph::KeyWriter& key);

// Meta first and without any lock (it may need the GIL; two threads may both infer, the first insert wins), then lower
// under single flight.
Result<Program*> BuildProgram(const Fingerprint& fingerprint, const graph::KeyWriter& key, const CorridorHooks& hooks);

// The program of several records. Not in the cache: who asks keeps it.
Result<std::unique_ptr<Program>> BuildComposite(Composition composition);

// What the program is lowered from.
graph::Graph GraphOf(const Program& program);

}  // namespace tpu::engine
