// SPDX-License-Identifier: Apache-2.0
#include "engine/value.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "engine/memory.h"
#include "engine/runtime.h"
#include "pjrt/handle.h"

namespace tpu::engine {
namespace {

static_assert(sizeof(Value) == 128, "a value is a pair of cache lines");

// Free values: a list each thread, refilled from and spilled to a shared one in batches.
constexpr size_t kBatch = 256, kSpill = 4 * kBatch;

struct SharedPool {
  std::mutex mu;
  std::vector<void*> free;
};
SharedPool& Shared() {
  static auto* pool = new SharedPool;
  return *pool;
}

struct LocalPool {
  std::vector<void*> free;

  void Refill() {
    {
      std::lock_guard<std::mutex> lock(Shared().mu);
      auto& shared = Shared().free;
      if (shared.size() >= kBatch) {
        free.assign(shared.end() - kBatch, shared.end());
        shared.resize(shared.size() - kBatch);
        return;
      }
    }
    auto* block = static_cast<char*>(std::aligned_alloc(alignof(Value), sizeof(Value) * kBatch));
    TPU_CHECK(block);
    for (size_t i = 0; i < kBatch; ++i) free.push_back(block + i * sizeof(Value));
  }
  void Spill() {
    std::lock_guard<std::mutex> lock(Shared().mu);
    Shared().free.insert(Shared().free.end(), free.end() - 2 * kBatch, free.end());
    free.resize(free.size() - 2 * kBatch);
  }
};
std::atomic<int> g_threads{0};
thread_local LocalPool* t_local = nullptr;
// Given back at the thread's end, and made anew when another thread-local object drops a value after that.
LocalPool& Local() {
  struct AtExit {
    LocalPool* pool;
    ~AtExit() {
      std::lock_guard<std::mutex> lock(Shared().mu);
      Shared().free.insert(Shared().free.end(), pool->free.begin(), pool->free.end());
      t_local = nullptr;
      delete pool;
      g_threads.fetch_sub(1, std::memory_order_relaxed);
    }
  };
  if (__builtin_expect(t_local == nullptr, 0)) {
    t_local = new LocalPool;
    g_threads.fetch_add(1, std::memory_order_relaxed);
    static thread_local AtExit at_exit{t_local};
  }
  return *t_local;
}

}  // namespace

int ThreadsWithValues() { return g_threads.load(std::memory_order_relaxed); }

Value* NewValue(const TensorType& type, int device, ValueState state) {
  LocalPool& pool = Local();
  if (pool.free.empty()) pool.Refill();
  void* memory = pool.free.back();
  pool.free.pop_back();
  auto* value = new (memory) Value;
  value->state.store(state, std::memory_order_relaxed);
  value->device = static_cast<int8_t>(device);
  value->type = type;
  if (state == ValueState::kPending || state == ValueState::kReady) value->CountBytes();
  return value;
}

void Value::CountBytes() {
  counted = true;
  AddReserved(device, static_cast<int64_t>(bytes()));
}

Value* NewPoisoned(const TensorType& type, int device, std::shared_ptr<Failure> failure) {
  Value* value = NewValue(type, device, ValueState::kPoisoned);
  value->failure = std::move(failure);
  return value;
}

void Value::Destroy(Value* value) {
  if (InBadFork()) return;  // the engine's locks may be held for ever by threads that do not exist here
  if (value->buffer && !pjrt::g_leak_plugin_objects.load(std::memory_order_relaxed))
    pjrt::Destroy(Runtime::Started().client().api(), value->buffer);
  if (value->counted) ReleaseReserved(value->device, static_cast<int64_t>(value->type.bytes()));
  value->~Value();
  LocalPool& pool = Local();
  pool.free.push_back(value);
  if (pool.free.size() > kSpill) pool.Spill();
}

}  // namespace tpu::engine
