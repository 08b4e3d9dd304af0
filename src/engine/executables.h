// SPDX-License-Identifier: Apache-2.0
// The loaded executables of the process: a bounded number. Each holds 100 to 180 KiB and two or three memory maps, and a
// process dies near 21,000 of them.
#pragma once
#include "base/status.h"
#include "engine/program.h"

namespace tpu::engine {

// Compiles the program when nobody has yet. Any thread; one compiles, the others wait for it.
Status EnsureLoaded(Program* program);
// Compiles once more what has been evicted. Consumer only.
Status Reload(Program* program);

// True when more are loaded than the setting max_executables allows.
bool EvictionWanted();
// Drops the least recently used eighth. Consumer only.
void Evict();
int64_t LoadedExecutables();

}  // namespace tpu::engine
