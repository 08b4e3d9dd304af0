// SPDX-License-Identifier: Apache-2.0
// Launch: `run` and the retiring half of `bind`: from an entry's values to buffers. Consumer only.
#pragma once
#include <memory>

#include "engine/program.h"
#include "engine/value.h"

namespace tpu::engine {

// One launch on a list of devices. One-device programs are portable: devices[0] says where. Programs over N devices take
// args and outputs device by device: [d * program.arguments.size() + i].
struct LaunchCall {
  Program* program;
  Value** args;
  Value** outputs;
  const uint32_t* host_words;
  const int8_t* devices;
  int num_devices;
  uint64_t position;  // of the entry
};

// Runs it: outputs become ready (their buffers perhaps not computed yet) or poisoned. References are not touched.
void Launch(const LaunchCall& call) noexcept;

// Makes the value one that raises `failure` when it is read. Requires: nothing else will make it.
void Poison(Value* value, const std::shared_ptr<Failure>& failure);

// Looks at finished work: completion events, traps.
void Retire();
// False while more bytes are unfinished than the setting allows; waits for the oldest launch then, at most 50 ms.
bool RoomToLaunch();
// True when every launch before `position` has finished.
bool LaunchesDone(uint64_t position);
// Waits for the oldest unfinished launch, at most 50 ms, without the queue's lock.
// False when there is none, or another consumer is at work.
bool WaitOldestLaunch();

// Why the launch that made a value (Value::made_at) failed after Execute had returned; its root, if another launch brought
// it along. Null when it has not failed or has not been retired. Any thread.
std::shared_ptr<Failure> FailureOfLaunch(uint32_t made_at);

}  // namespace tpu::engine
