// SPDX-License-Identifier: Apache-2.0
// The queue: one for all devices, run in enqueue order by exactly one consumer at a time: the worker, or a thread that
// needs a value and finds the worker not running.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "engine/cell.h"
#include "engine/program.h"
#include "engine/value.h"

namespace tpu::engine {

// What a call hands over. References of args and one reference of each output (two when the output is also published or
// returned) pass to the queue.
struct Submission {
  Program* program;
  Value* const* args;          // in the order of program->arguments
  Value* const* outputs;       // one for each of program->outputs
  const uint32_t* host_words;  // program->host_words of them
  int device;
  // Cells that get a new value: cells[i] <- values[i] (takes the reference).
  Cell* const* cells;
  Value* const* values;
  int num_cells;
};

// False while as many entries are in flight as the setting allows. Ask before recording makes anything, and wait with
// WaitForRoom (engine/runtime.h).
bool QueueHasRoom();

// Room first (waited for while the caller holds nothing), then ticket, publish, commit: the ticket fixes the order, cells are
// swapped, then the slot's sequence number makes the entry visible. Nothing between may allocate, throw or block. So a
// consumer never precedes its producer, and an old value has lost its cell before the worker counts its holders.
void Enqueue(const Submission& submission);

// Where the queue has to get to for a caller that found no room: a quarter of it is free then.
uint64_t RoomyPosition();

// Starts the worker. Once, by the runtime.
void StartQueue();
// Stops intake (records then fail) and waits for the queue at most `timeout_ms`, or one entry longer.
void StopQueue(int timeout_ms);
bool QueueStopped();

// Runs committed entries in order until `until` is no longer pending (null: until none is left), but no new one after
// 50 ms: the caller may have been interrupted. False when another consumer is at work.
bool Drain(Value* until);

// Sleeps while another consumer is at work, until it has run the entries before `position` or leaves, at most 50 ms. May
// return at any time: ask again.
void AwaitConsumer(uint64_t position);

// The consumer's lock, for code that looks at launches outside of Drain. Hold it briefly.
bool TryLockQueue();
void UnlockQueue();

// Frees what can be made again, the consumer's host arguments, and gives free memory back to the system.
void DropCaches();

// Failures that nobody has raised yet.
void RememberFailure(std::shared_ptr<Failure> failure);
std::shared_ptr<Failure> TakeFailure();
// A read has raised an error of asynchronous work that ends in `message`: synchronize need not.
void MarkReported(const std::string& message);

}  // namespace tpu::engine
