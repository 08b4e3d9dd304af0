// SPDX-License-Identifier: Apache-2.0
// Traps: value-dependent checks inside programs. A program with checks has one more result, s32[n], that is looked at
// when the entry retires; nobody waits for it. Until then the values that depend on it carry its bit.
#pragma once
#include <cstdint>
#include <memory>

#include "engine/program.h"
#include "engine/value.h"
#include "pjrt/buffer.h"

namespace tpu::engine {

// ---- consumer only (under the queue's lock)

// The failure that a trap result reports, or null. Requires: `trap` is ready.
std::shared_ptr<Failure> ReadTrap(const pjrt::Buffer& trap, const Program& program);
// Makes sure that `count` more traps can be kept (waits for the kept ones when there are too many). Before InheritTraps.
void EnsureTrapRoom(int count);
// Keeps a trap result that is not ready yet. `outputs` get its bit.
void KeepTrap(pjrt::Buffer trap, const Program* program, Value* const* outputs, size_t num_outputs);
// The bits of arguments whose checks are still open go to the outputs. A check that has failed is returned instead.
std::shared_ptr<Failure> InheritTraps(Value* const* args, size_t num_args, Value* const* outputs, size_t num_outputs);
// Looks at kept traps that are ready.
void PollTraps();

// ---- any thread: waits for the checks that `value` depends on. Null when all passed.
std::shared_ptr<Failure> ResolveTraps(const Value* value);
// Waits for all kept traps; their failures go to RememberFailure.
void ResolveAllTraps();

}  // namespace tpu::engine
