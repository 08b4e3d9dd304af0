// SPDX-License-Identifier: Apache-2.0
// Memory accounting, a device each. allocated: bytes of live storages. reserved: bytes of live buffers, plus temporaries
// of programs in flight. The caller reserves before it enqueues; over the limit it drains, drops caches, collects once,
// then gets OutOfMemory with numbers.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace tpu::engine {

struct MemoryStats {
  int64_t allocated, allocated_peak, allocated_total, freed_total;  // bytes; totals since the last reset
  int64_t allocations, frees, active_allocations;                   // counts of storages
  int64_t reserved, reserved_peak;
  int64_t limit;
  int64_t ooms, retries;
};

MemoryStats GetMemoryStats(int device);
void ResetPeakMemoryStats(int device);
void ResetAccumulatedMemoryStats(int device);

// Storages (cells).
void CountAllocated(int device, int64_t bytes);
void CountFreed(int device, int64_t bytes);
// Buffers. AddReserved only counts; Reserve checks the limit first.
void AddReserved(int device, int64_t bytes);
void ReleaseReserved(int device, int64_t bytes);
Status Reserve(int device, int64_t bytes);
int64_t MemoryLimit(int device);

// Called (without any lock held) between the first failure to reserve and the second try; bindings set it to run
// Python's garbage collector.
void SetCollectHook(void (*hook)());

}  // namespace tpu::engine
