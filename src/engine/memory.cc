// SPDX-License-Identifier: Apache-2.0
#include "engine/memory.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/settings.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "engine/trace.h"

namespace tpu::engine {
namespace {

constexpr int kMaxDevices = 128;

// A device each, on cache lines of its own.
struct alignas(64) Account {
  std::atomic<int64_t> allocated{0}, active{0}, allocated_peak{0}, freed_total{0}, frees{0};
  // Totals of allocations are live + freed; a reset moves these.
  std::atomic<int64_t> total_base{0}, freed_base{0}, allocations_base{0}, frees_base{0};
  // Reserved bytes are `added` - `released`. Callers add and the worker releases, each on a line of its own; callers work
  // with the last `released` that they have seen, which makes the reserved bytes look larger, never smaller.
  alignas(64) std::atomic<int64_t> added{0}, released_seen{0}, reserved_peak{0}, ooms{0}, retries{0};
  alignas(64) std::atomic<int64_t> released{0};

  int64_t bound() const { return added.load(std::memory_order_relaxed) - released_seen.load(std::memory_order_relaxed); }
  int64_t reserved() {
    int64_t r = released.load(std::memory_order_relaxed);
    released_seen.store(r, std::memory_order_relaxed);
    return added.load(std::memory_order_relaxed) - r;
  }
};
Account g_accounts[kMaxDevices];
std::atomic<void (*)()> g_collect{nullptr};

void RaisePeak(std::atomic<int64_t>& peak, int64_t now) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
}

std::string Human(int64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double v = static_cast<double>(bytes);
  int u = 0;
  for (; v >= 1024 && u < 4; ++u) v /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, u ? "%.2f %s" : "%.0f %s", v, kUnits[u]);
  return text;
}

Status OutOfMemory(int device, int64_t bytes) {
  MemoryStats s = GetMemoryStats(device);
  return {ErrorKind::kOutOfMemory, "tpu:" + std::to_string(device) + " is out of memory. Tried to reserve " + Human(bytes) +
                                       ". Limit " + Human(s.limit) + ", reserved by live buffers and programs in flight " +
                                       Human(s.reserved) + ", of which storages hold " + Human(s.allocated) + "."};
}

}  // namespace

MemoryStats GetMemoryStats(int device) {
  Account& a = g_accounts[device];
  auto get = [](const std::atomic<int64_t>& x) { return x.load(std::memory_order_relaxed); };
  MemoryStats s;
  s.allocated = get(a.allocated);
  s.allocated_peak = get(a.allocated_peak);
  s.allocated_total = get(a.allocated) + get(a.freed_total) - get(a.total_base);
  s.freed_total = get(a.freed_total) - get(a.freed_base);
  s.allocations = get(a.active) + get(a.frees) - get(a.allocations_base);
  s.frees = get(a.frees) - get(a.frees_base);
  s.active_allocations = get(a.active);
  s.reserved = a.reserved();
  s.reserved_peak = get(a.reserved_peak);
  s.limit = MemoryLimit(device);
  s.ooms = get(a.ooms);
  s.retries = get(a.retries);
  return s;
}

void ResetPeakMemoryStats(int device) {
  Account& a = g_accounts[device];
  a.allocated_peak = a.allocated.load();
  a.reserved_peak = a.reserved();
}

void ResetAccumulatedMemoryStats(int device) {
  Account& a = g_accounts[device];
  // Totals restart from zero; what is alive stays in `allocated`.
  a.total_base = a.allocated + a.freed_total;
  a.freed_base = a.freed_total.load();
  a.allocations_base = a.active + a.frees;
  a.frees_base = a.frees.load();
  a.ooms = 0;
  a.retries = 0;
}

void CountAllocated(int device, int64_t bytes) {
  Account& a = g_accounts[device];
  int64_t now = a.allocated.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  a.active.fetch_add(1, std::memory_order_relaxed);
  if (now > a.allocated_peak.load(std::memory_order_relaxed)) RaisePeak(a.allocated_peak, now);
}

void CountFreed(int device, int64_t bytes) {
  Account& a = g_accounts[device];
  a.allocated.fetch_sub(bytes, std::memory_order_relaxed);
  a.active.fetch_sub(1, std::memory_order_relaxed);
  a.freed_total.fetch_add(bytes, std::memory_order_relaxed);
  a.frees.fetch_add(1, std::memory_order_relaxed);
}

void AddReserved(int device, int64_t bytes) {
  Account& a = g_accounts[device];
  a.added.fetch_add(bytes, std::memory_order_relaxed);
  if (a.bound() > a.reserved_peak.load(std::memory_order_relaxed)) RaisePeak(a.reserved_peak, a.reserved());
}

void ReleaseReserved(int device, int64_t bytes) { g_accounts[device].released.fetch_add(bytes, std::memory_order_relaxed); }

int64_t MemoryLimit(int device) {
  static const int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  if (int64_t limit = GetSettings().memory_limit.load(std::memory_order_relaxed)) return limit;
  if (Runtime::IsStarted() && !Runtime::Started().profile().host_addressable) {
    static std::atomic<int64_t> known[kMaxDevices];
    int64_t limit = known[device].load(std::memory_order_relaxed);
    if (!limit) {
      auto stats = Runtime::Started().client().MemoryStatsOf(device);
      limit = stats.ok() && stats->bytes_limit > 0 ? stats->bytes_limit : machine;
      known[device].store(limit, std::memory_order_relaxed);
    }
    return limit;
  }
  return machine;
}

Status ReserveSlow(int device, int64_t bytes, int64_t limit) {
  Account& a = g_accounts[device];
  auto fits = [&] { return a.reserved() + bytes <= limit; };
  // Entries still in the queue hold their arguments; a drain may free most of what is reserved.
  SealTraces();
  (void)WaitForQueue(QueuePosition());
  if (fits()) return {};
  a.retries.fetch_add(1, std::memory_order_relaxed);
  DropCaches();
  if (auto collect = g_collect.load()) collect();
  (void)WaitForQueue(QueuePosition());
  if (fits()) return {};
  a.ooms.fetch_add(1, std::memory_order_relaxed);
  return OutOfMemory(device, bytes);
}

Status Reserve(int device, int64_t bytes) {
  int64_t limit = MemoryLimit(device);
  if (__builtin_expect(g_accounts[device].bound() + bytes <= limit, 1)) return {};
  if (g_accounts[device].reserved() + bytes <= limit) return {};
  return ReserveSlow(device, bytes, limit);
}

void SetCollectHook(void (*hook)()) { g_collect = hook; }

}  // namespace tpu::engine
