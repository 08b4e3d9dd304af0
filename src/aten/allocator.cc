// SPDX-License-Identifier: Apache-2.0
#include "aten/allocator.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "aten/device.h"
#include "aten/errors.h"
#include "aten/tensor.h"
#include "engine/memory.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "engine/trace.h"

namespace tpu::aten {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

// There is one pool. It is reported as the large one, so that the sums over pools are right.
StatArray ToStats(int64_t current, int64_t peak, int64_t allocated, int64_t freed) {
  Stat stat;
  stat.current = current;
  stat.peak = std::max(peak, current);
  stat.allocated = allocated;
  stat.freed = freed;
  StatArray stats;
  stats[static_cast<size_t>(StatType::AGGREGATE)] = stat;
  stats[static_cast<size_t>(StatType::LARGE_POOL)] = stat;
  return stats;
}

bool Fits(int64_t bytes, int device) {
  engine::MemoryStats stats = engine::GetMemoryStats(device);
  return std::max(stats.allocated, stats.reserved) + bytes <= stats.limit;
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override { return NewDataPtr(bytes, CurrentDevice(), nullptr); }
  c10::DeleterFnPtr raw_deleter() const override { return CellDeleter(); }

  // Copies of whole storages only (c10::Allocator::clone): values never change, so a copy is one more holder.
  void copy_data(void* dest, const void* src, std::size_t count) const override {
    if (count == 0) return;
    engine::Cell *to = engine::FindCell(dest), *from = engine::FindCell(src);
    TORCH_CHECK(to && from && engine::AddressOf(to) == dest && engine::AddressOf(from) == src && to->bytes == count &&
                    from->bytes == count && to->device == from->device,
                "a part of a tpu storage cannot be copied by address");
    to->Swap(from->Load());
  }

  // Storages can be made, and counted, before the engine runs.
  bool initialized() override { return true; }

  void emptyCache(c10::MempoolId_t) override {
    if (!engine::Runtime::IsStarted() || engine::InBadFork()) return;
    // Entries that have not run yet hold their arguments.
    engine::SealTraces();
    ThrowIfError(engine::WaitForQueue(engine::QueuePosition()));
    engine::DropCaches();
  }

  // An entry in the queue holds the values it reads, so memory is never reused under it.
  void recordStream(const c10::DataPtr&, c10::Stream) override {}

  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    engine::MemoryStats s = engine::GetMemoryStats(CheckedOrCurrentDevice(index));
    DeviceStats stats;
    stats.allocation = ToStats(s.active_allocations, s.active_allocations, s.allocations, s.frees);
    stats.active = stats.allocation;
    stats.allocated_bytes = ToStats(s.allocated, s.allocated_peak, s.allocated_total, s.freed_total);
    stats.active_bytes = stats.requested_bytes = stats.allocated_bytes;
    stats.reserved_bytes = ToStats(s.reserved, s.reserved_peak, 0, 0);  // the engine keeps no totals of these
    stats.num_alloc_retries = s.retries;
    stats.num_ooms = s.ooms;
    return stats;
  }

  void resetAccumulatedStats(c10::DeviceIndex index) override {
    engine::ResetAccumulatedMemoryStats(CheckedOrCurrentDevice(index));
  }
  void resetPeakStats(c10::DeviceIndex index) override { engine::ResetPeakMemoryStats(CheckedOrCurrentDevice(index)); }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    int device = CheckedOrCurrentDevice(index);
    ThrowIfError(engine::Runtime::Get().status());  // only the running engine knows a TPU's memory
    engine::MemoryStats s = engine::GetMemoryStats(device);
    return {static_cast<size_t>(std::max<int64_t>(s.limit - s.reserved, 0)), static_cast<size_t>(s.limit)};
  }
};

Allocator* TheAllocator() {
  static auto* allocator = new Allocator;  // storages outlive static destructors
  return allocator;
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, TheAllocator());

}  // namespace

c10::Allocator* DeviceAllocator() { return TheAllocator(); }

void CheckRoom(size_t bytes, int device) {
  auto wanted = static_cast<int64_t>(bytes);
  if (__builtin_expect(Fits(wanted, device), 1)) return;
  engine::MemoryStats before = engine::GetMemoryStats(device);
  // The engine knows how to make room (drain, drop caches, collect garbage), but counts buffers alone. Undefined storages
  // have none yet, so it is asked for as much as makes its sum equal to ours.
  Status room = engine::Reserve(device, std::max(wanted, before.allocated + wanted - before.reserved));
  if (room.ok() || Fits(wanted, device)) return;
  engine::MemoryStats s = engine::GetMemoryStats(device);
  C10_THROW_ERROR(OutOfMemoryError,
                  c10::str("tpu:", device, " is out of memory. Tried to allocate ", c10::CachingAllocator::format_size(bytes),
                           ". Limit ", c10::CachingAllocator::format_size(s.limit), ", held by storages ",
                           c10::CachingAllocator::format_size(s.allocated), ", by buffers and programs in flight ",
                           c10::CachingAllocator::format_size(s.reserved), "."));
}

}  // namespace tpu::aten
