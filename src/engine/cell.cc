// SPDX-License-Identifier: Apache-2.0
#include "engine/cell.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/cpu.h"
#include "engine/memory.h"
#include "engine/runtime.h"

namespace tpu::engine {
namespace {

// Slots of 4 KiB, 64 KiB, ... 64 GiB, a region for each size: 1 TiB, or less where address space is limited (ulimit -v,
// valgrind). A storage larger than its slot still has an address of its own, but views near its end share numbers with
// the next slot; only regions below 64 GiB make that possible.
constexpr int kClassBits[] = {12, 16, 20, 24, 28, 32, 36};
constexpr int kClasses = static_cast<int>(std::size(kClassBits));
constexpr int kMostRegionBits = 40, kFewestRegionBits = 32;
int g_region_bits = 0;  // set with the space, before anything else uses it
uint32_t MaxSlots(int c) { return 1u << std::clamp(g_region_bits - kClassBits[c], 0, 26); }
constexpr size_t kBatch = 64, kSpill = 512;

struct FreeSlots {
  std::mutex mu;
  std::vector<uint32_t> free;
  uint32_t next = 0;
};

struct Space {
  uintptr_t base;
  Cell* cells[kClasses];
  FreeSlots slots[kClasses];

  Space() {
    constexpr int kProtection = PROT_NONE, kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* range = MAP_FAILED;
    for (g_region_bits = kMostRegionBits; range == MAP_FAILED && g_region_bits >= kFewestRegionBits; g_region_bits -= 2)
      range = mmap(nullptr, static_cast<size_t>(kClasses) << g_region_bits, kProtection, kFlags, -1, 0);
    TPU_CHECK(range != MAP_FAILED);
    g_region_bits += 2;  // the loop has moved on from the size that worked
    base = reinterpret_cast<uintptr_t>(range);
    for (int c = 0; c < kClasses; ++c) {
      void* cells_memory = mmap(nullptr, sizeof(Cell) * MaxSlots(c), PROT_READ | PROT_WRITE, kFlags, -1, 0);
      TPU_CHECK(cells_memory != MAP_FAILED);
      cells[c] = static_cast<Cell*>(cells_memory);
    }
  }
};
Space& TheSpace() {
  static auto* space = new Space;
  return *space;
}

struct LocalSlots {
  std::vector<uint32_t> free[kClasses];
  void Give(int c, size_t n) {
    FreeSlots& shared = TheSpace().slots[c];
    std::lock_guard<std::mutex> lock(shared.mu);
    shared.free.insert(shared.free.end(), free[c].end() - static_cast<ptrdiff_t>(n), free[c].end());
    free[c].resize(free[c].size() - n);
  }
  void Take(int c) {
    FreeSlots& shared = TheSpace().slots[c];
    std::lock_guard<std::mutex> lock(shared.mu);
    size_t n = std::min(shared.free.size(), kBatch);
    if (n) {
      free[c].assign(shared.free.end() - static_cast<ptrdiff_t>(n), shared.free.end());
      shared.free.resize(shared.free.size() - n);
      return;
    }
    TPU_CHECK(shared.next < MaxSlots(c));
    for (size_t i = 0; i < kBatch && shared.next < MaxSlots(c); ++i) free[c].push_back(shared.next++);
  }
};
thread_local LocalSlots* t_local = nullptr;
// Given back at the thread's end, and made anew when another thread-local object frees a cell after that.
LocalSlots& Local() {
  struct AtExit {
    LocalSlots* slots;
    ~AtExit() {
      for (int c = 0; c < kClasses; ++c) slots->Give(c, slots->free[c].size());
      t_local = nullptr;
      delete slots;
    }
  };
  if (__builtin_expect(t_local == nullptr, 0)) {
    t_local = new LocalSlots;
    static thread_local AtExit at_exit{t_local};
  }
  return *t_local;
}

}  // namespace

void Cell::Pause(int round) {
  if (round < 100)
    CpuPause();
  else
    sched_yield();
}

Cell* NewCell(size_t bytes, int device, Value* value) {
  int c = 0;
  while (c < kClasses - 1 && bytes > 1ull << kClassBits[c]) ++c;
  auto& free = Local().free[c];
  if (free.empty()) Local().Take(c);
  uint32_t slot = free.back();
  free.pop_back();
  if (!value) value = NewValue(TensorType(DType::kU8, {static_cast<int64_t>(bytes)}), device, ValueState::kUndefined);
  Cell* cell = &TheSpace().cells[c][slot];
  cell->slot = slot;
  cell->size_class = static_cast<uint8_t>(c);
  cell->device = static_cast<int8_t>(device);
  cell->bytes = bytes;
  cell->value.store(reinterpret_cast<uintptr_t>(value), std::memory_order_release);
  CountAllocated(device, static_cast<int64_t>(bytes));
  return cell;
}

void FreeCell(Cell* cell) {
  if (InBadFork()) return;
  CountFreed(cell->device, static_cast<int64_t>(cell->bytes));
  auto* value = reinterpret_cast<Value*>(cell->value.exchange(0, std::memory_order_acq_rel) & ~uintptr_t{1});
  if (value) value->DecRef();
  auto& free = Local().free[cell->size_class];
  free.push_back(cell->slot);
  if (free.size() > kSpill) Local().Give(cell->size_class, kSpill / 2);
}

void* AddressOf(const Cell* cell) {
  return reinterpret_cast<void*>(TheSpace().base + (static_cast<uintptr_t>(cell->size_class) << g_region_bits) +
                                 (static_cast<uintptr_t>(cell->slot) << kClassBits[cell->size_class]));
}

Cell* FindCell(const void* address) {
  uintptr_t distance = reinterpret_cast<uintptr_t>(address) - TheSpace().base;
  uintptr_t c = distance >> g_region_bits;
  if (c >= static_cast<uintptr_t>(kClasses)) return nullptr;
  uintptr_t slot = (distance & ((uintptr_t{1} << g_region_bits) - 1)) >> kClassBits[c];
  return slot < MaxSlots(static_cast<int>(c)) ? &TheSpace().cells[c][slot] : nullptr;
}

}  // namespace tpu::engine
