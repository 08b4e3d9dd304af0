// SPDX-License-Identifier: Apache-2.0
// The miss: decode, infer, lower, compile, insert.
#pragma once
#include "engine/corridor.h"

namespace tpu::engine {

// Null on a miss. No lock, no allocation on a hit of the thread's table.
Program* FindProgram(const Fingerprint& fingerprint, const graph::KeyWriter& key);

// Meta first and without any lock (it may need the GIL; two threads may both infer, the first insert wins), then lower and
// compile under single flight.
Result<Program*> BuildProgram(const Fingerprint& fingerprint, const graph::KeyWriter& key, const CorridorHooks& hooks);

}  // namespace tpu::engine
