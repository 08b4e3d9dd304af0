// SPDX-License-Identifier: Apache-2.0
// Counters for tests, doctor and explain.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace tpu::engine {

#define TPU_COUNTERS(X)    \
  X(records)               \
  X(misses)                \
  X(compiles)              \
  X(reloads)               \
  X(evictions)             \
  X(launches)              \
  X(composed)              \
  X(launches_by_caller)    \
  X(donated)               \
  X(vetoed)                \
  X(host_argument_hits)    \
  X(host_argument_uploads) \
  X(uploads)               \
  X(reads)                 \
  X(host_waits)            \
  X(fallbacks)             \
  X(failures)              \
  X(worker_wakes)          \
  X(worker_sleeps)         \
  X(queue_full)            \
  X(meta_calls)

struct Counters {
#define TPU_COUNTER(name) std::atomic<uint64_t> name{0};
  TPU_COUNTERS(TPU_COUNTER)
#undef TPU_COUNTER
};
extern Counters g_counters;
// For counters that only one thread writes at a time, or where an occasional lost count under contention is fine on the
// hot path: no locked instruction.
inline void CountRelaxed(std::atomic<uint64_t>& c) {
  c.store(c.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}
inline void Count(std::atomic<uint64_t>& c) { c.fetch_add(1, std::memory_order_relaxed); }
std::map<std::string, uint64_t> ReadCounters();
void ResetCounters();

}  // namespace tpu::engine
