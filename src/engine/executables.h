// SPDX-License-Identifier: Apache-2.0
// The loaded executables of the process: a bounded number. Each holds 100 to 180 KiB and two or three memory maps, and a
// process dies near 21,000 of them.
#pragma once
#include "base/status.h"
#include "engine/program.h"

namespace tpu::engine {

// Lowers and compiles `program->key` once more. Consumer only.
Status Reload(Program* program);
// Called by whoever has loaded program->executable, before others can see the program.
void NoteLoaded(Program* program);

// True when more are loaded than the setting max_executables allows.
bool EvictionWanted();
// Drops the least recently used eighth. Consumer only.
void Evict();
int64_t LoadedExecutables();

}  // namespace tpu::engine
