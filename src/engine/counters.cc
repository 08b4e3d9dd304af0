// SPDX-License-Identifier: Apache-2.0
#include "engine/counters.h"

namespace tpu::engine {

Counters g_counters;

std::map<std::string, uint64_t> ReadCounters() {
  std::map<std::string, uint64_t> m;
#define TPU_COUNTER(name) m[#name] = g_counters.name.load(std::memory_order_relaxed);
  TPU_COUNTERS(TPU_COUNTER)
#undef TPU_COUNTER
  return m;
}

void ResetCounters() {
#define TPU_COUNTER(name) g_counters.name.store(0, std::memory_order_relaxed);
  TPU_COUNTERS(TPU_COUNTER)
#undef TPU_COUNTER
}

}  // namespace tpu::engine
