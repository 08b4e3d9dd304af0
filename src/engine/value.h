// SPDX-License-Identifier: Apache-2.0
// Value: an immutable array on a device, perhaps not computed yet. Reference counted; any thread may hold references.
// Only the consumer of the queue (engine/queue.h) turns pending into ready or poisoned.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/tensor_type.h"

struct PJRT_Buffer;

namespace tpu::engine {

struct Program;

// An entry's position in the queue as values keep it: its low bits, and never 0 but once in 2^32.
inline uint32_t MadeAt(uint64_t position) { return static_cast<uint32_t>(position + 1); }
// The position behind the entry, seen from `now`, a later one.
inline uint64_t PositionBehind(uint32_t made_at, uint64_t now) { return now - (static_cast<uint32_t>(now) - made_at); }

enum class ValueState : uint8_t {
  kUndefined,  // reads as zeros, allocates nothing
  kTraced,     // recorded in a trace that has not been sealed (engine/trace.h)
  kPending,    // an entry in the queue will make it
  kReady,      // has a buffer, which may itself still be computed by the plugin
  kPoisoned,   // reading it raises `failure`
};

// Why a value cannot be read. One object for each root cause, shared by everything that depends on it.
struct Failure {
  explicit Failure(Status s) : status(std::move(s)) {}
  const Status status;
  // Set by the first read or synchronize that raised it: synchronize raises each root failure once.
  std::atomic<bool> reported{false};
};

// A pair of cache lines of its own each: the worker writes refs and state while the caller touches the neighbours.
struct alignas(128) Value {
  std::atomic<int32_t> refs{1};
  std::atomic<ValueState> state{ValueState::kPending};
  int8_t device = 0;
  bool counted = false;              // its bytes are in the device's reserved memory
  bool known_ready = false;          // the consumer has seen the buffer ready (consumer only)
  TensorType type;
  PJRT_Buffer* buffer = nullptr;     // owned; set before state becomes kReady
  const Program* maker = nullptr;    // names the operators in errors; set with buffer
  std::shared_ptr<Failure> failure;  // kPoisoned
  // Trap checks that the contents depend on and that had not been looked at at launch (engine/traps.h).
  uint32_t trap_epoch = 0;
  // MadeAt of its entry: set when that is queued, 0 again once the buffer was ready when the launch had returned.
  std::atomic<uint32_t> made_at{0};
  uint64_t traps = 0;

  void IncRef() { refs.fetch_add(1, std::memory_order_relaxed); }
  // Any thread; never needs the GIL. The last one destroys the buffer.
  void DecRef() {
    if (refs.load(std::memory_order_acquire) == 1 || refs.fetch_sub(1, std::memory_order_acq_rel) == 1) Destroy(this);
  }
  size_t bytes() const { return type.bytes(); }
  // Its bytes belong to the device's reserved memory from now on. Once; values in the state kTraced are not counted yet.
  void CountBytes();

 private:
  static void Destroy(Value* value);
};

// From a pool; one reference belongs to the caller.
Value* NewValue(const TensorType& type, int device, ValueState state);
Value* NewPoisoned(const TensorType& type, int device, std::shared_ptr<Failure> failure);

// Living threads that have made or dropped a value: the worker is one.
int ThreadsWithValues();

// Owning pointer for code off the hot path.
class ValueRef {
 public:
  ValueRef() = default;
  explicit ValueRef(Value* adopted) : value_(adopted) {}
  ValueRef(ValueRef&& o) noexcept : value_(o.value_) { o.value_ = nullptr; }
  ValueRef& operator=(ValueRef&& o) noexcept {
    std::swap(value_, o.value_);
    return *this;
  }
  ~ValueRef() {
    if (value_) value_->DecRef();
  }
  Value* get() const { return value_; }
  Value* operator->() const { return value_; }
  Value* release() {
    Value* v = value_;
    value_ = nullptr;
    return v;
  }

 private:
  Value* value_ = nullptr;
};

}  // namespace tpu::engine
