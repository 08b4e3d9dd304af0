// SPDX-License-Identifier: Apache-2.0
#include "engine/timing.h"

#include <atomic>
#include <map>
#include <mutex>

#include "base/cpu.h"
#include "engine/runtime.h"

namespace tpu::engine {
namespace {

constexpr size_t kMaxTimed = 65536;  // forgotten oldest first

std::mutex g_mu;
std::atomic<bool> g_any{false};
// Queue position -> time at which all entries before it had finished; 0: not yet.
std::map<uint64_t, int64_t>& Times() {
  static auto* times = new std::map<uint64_t, int64_t>;
  return *times;
}

}  // namespace

void RegisterTimedPosition(uint64_t position) {
  {
    std::lock_guard<std::mutex> lock(g_mu);
    auto& times = Times();
    times.emplace(position, 0);
    if (times.size() > kMaxTimed) times.erase(times.begin());
    g_any.store(true, std::memory_order_release);
  }
  // Without the lock: looking may run entries, and their retiring takes it.
  if (!QueueReached(position)) return;
  // Nothing is left to wait for: now is the time.
  std::lock_guard<std::mutex> lock(g_mu);
  auto it = Times().find(position);
  if (it != Times().end() && !it->second) it->second = NowNanos();
}

int64_t RetirementTime(uint64_t position) {
  std::lock_guard<std::mutex> lock(g_mu);
  auto it = Times().find(position);
  return it == Times().end() ? 0 : it->second;
}

void NoteRetired(uint64_t position) {
  if (!g_any.load(std::memory_order_relaxed)) return;
  std::lock_guard<std::mutex> lock(g_mu);
  // Launches on several devices may finish out of order: a time moves until everything before it is done.
  int64_t now = NowNanos();
  for (auto it = Times().upper_bound(position); it != Times().end(); ++it) it->second = now;
}

}  // namespace tpu::engine
