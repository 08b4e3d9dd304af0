// SPDX-License-Identifier: Apache-2.0
#include "aten/host_allocator.h"

#include <ATen/core/CachingHostAllocator.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "aten/tensor.h"
#include "base/cpu.h"

namespace tpu::aten {
namespace {

constexpr size_t kPage = 4096;

// All live allocations, so that is_pinned() tells the truth, also about addresses inside.
struct Blocks {
  std::mutex mu;
  std::map<uintptr_t, size_t> sizes;  // by first address
  at::HostStats stats;
};
// Leaked: tensors are freed after static destructors.
Blocks& TheBlocks() {
  static auto* blocks = [] {
    auto* made = new Blocks;
    // The pinning thread of a DataLoader allocates while its workers are forked: the lock must be free in the child.
    pthread_atfork([] { TheBlocks().mu.lock(); }, [] { TheBlocks().mu.unlock(); }, [] { TheBlocks().mu.unlock(); });
    return made;
  }();
  return *blocks;
}

void Free(void* address) {
  if (!address) return;
  Blocks& blocks = TheBlocks();
  {
    std::lock_guard<std::mutex> lock(blocks.mu);
    auto it = blocks.sizes.find(reinterpret_cast<uintptr_t>(address));
    TPU_CHECK(it != blocks.sizes.end());
    for (auto* stat : {&blocks.stats.active_bytes, &blocks.stats.allocated_bytes}) stat->decrease(it->second);
    for (auto* stat : {&blocks.stats.active_requests, &blocks.stats.allocations}) stat->decrease(1);
    ++blocks.stats.num_host_free;
    blocks.sizes.erase(it);
  }
  std::free(address);
}

class HostAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &Free, c10::Device(c10::kCPU)};
    int64_t begin = NowNanos();
    void* address = nullptr;
    if (posix_memalign(&address, kPage, bytes) != 0)
      C10_THROW_ERROR(OutOfMemoryError, c10::str("cannot allocate ", bytes, " bytes of pinned host memory"));
    Blocks& blocks = TheBlocks();
    std::lock_guard<std::mutex> lock(blocks.mu);
    blocks.sizes[reinterpret_cast<uintptr_t>(address)] = bytes;
    for (auto* stat : {&blocks.stats.active_bytes, &blocks.stats.allocated_bytes}) stat->increase(bytes);
    for (auto* stat : {&blocks.stats.active_requests, &blocks.stats.allocations}) stat->increase(1);
    blocks.stats.host_alloc_time.increase((NowNanos() - begin) / 1000);
    ++blocks.stats.num_host_alloc;
    return {address, address, &Free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* dest, const void* src, std::size_t count) const override { std::memcpy(dest, src, count); }

  // Uploads copy before they return and downloads wait, so nothing is ever in flight from or to host memory.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}  // keeps nothing

  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> lock(TheBlocks().mu);
    return TheBlocks().stats;
  }
  void reset_accumulated_stats() override {
    std::lock_guard<std::mutex> lock(TheBlocks().mu);
    at::HostStats& s = TheBlocks().stats;
    for (auto* stat : {&s.active_requests, &s.active_bytes, &s.allocations, &s.allocated_bytes}) stat->reset_accumulated();
    s.host_alloc_time.reset_accumulated();
    s.num_host_alloc = s.num_host_free = 0;
  }
  void reset_peak_stats() override {
    std::lock_guard<std::mutex> lock(TheBlocks().mu);
    at::HostStats& s = TheBlocks().stats;
    for (auto* stat : {&s.active_requests, &s.active_bytes, &s.allocations, &s.allocated_bytes}) stat->reset_peak();
    s.host_alloc_time.reset_peak();
  }
};

HostAllocator* TheHostAllocator() {
  static auto* allocator = new HostAllocator;
  return allocator;
}

REGISTER_HOST_ALLOCATOR(c10::DeviceType::PrivateUse1, TheHostAllocator());

}  // namespace

c10::Allocator* PinnedAllocator() { return TheHostAllocator(); }

bool IsPinned(const void* address) {
  auto where = reinterpret_cast<uintptr_t>(address);
  Blocks& blocks = TheBlocks();
  std::lock_guard<std::mutex> lock(blocks.mu);
  auto it = blocks.sizes.upper_bound(where);
  return it != blocks.sizes.begin() && where - (--it)->first < it->second;
}

}  // namespace tpu::aten
