// SPDX-License-Identifier: Apache-2.0
#include "aten/stream.h"

#include <algorithm>

#include "aten/device.h"
#include "aten/errors.h"
#include "aten/tensor.h"
#include "base/cpu.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "engine/trace.h"
#include "engine/traps.h"

namespace tpu::aten {
namespace {

constexpr uint32_t kPoolSize = 32;

thread_local c10::StreamId t_current[kMaxDevices];

c10::Stream ToStream(int device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(device)), id);
}

// The engine's own word for it in the child of a fork, where waiting would never end.
void ThrowInBadFork() {
  if (engine::InBadFork()) ThrowIfError(engine::Runtime::Get().status());
}

}  // namespace

c10::Stream CurrentStream(int device) { return ToStream(device, t_current[device]); }

c10::Stream ExchangeStream(c10::Stream stream) {
  int device = CheckedOrCurrentDevice(stream.device_index());
  return ToStream(device, std::exchange(t_current[device], stream.id()));
}

c10::Stream PoolStream(int device, int priority) {
  static std::atomic<uint32_t> next[kMaxDevices][2];
  const int high = priority < 0;
  uint32_t slot = next[device][high].fetch_add(1, std::memory_order_relaxed) % kPoolSize;
  return ToStream(device, 1 + 2 * static_cast<c10::StreamId>(slot) + high);
}

int PriorityOf(c10::StreamId id) { return id > 0 && id % 2 == 0 ? -1 : 0; }

void EventRecord::Record(bool timed) {
  engine::SealTraces();
  position_ = engine::QueuePosition();
  recorded_at_ = NowNanos();
  timed_ = timed;
  if (timed) engine::RegisterTimedPosition(position_);
}

bool EventRecord::Reached() const { return engine::QueueReached(position_); }

void EventRecord::Wait() const {
  ThrowInBadFork();
  ThrowIfError(engine::WaitForQueue(position_));
  engine::ResolveAllTraps();
  if (auto failure = engine::TakeFailure()) ThrowIfError(failure->status);
}

// The queue had run dry when nothing is remembered, or when it retired its last entry before the event was recorded.
int64_t EventRecord::Time() const { return std::max(recorded_at_, engine::RetirementTime(position_)); }

void SynchronizeQueue() {
  ThrowInBadFork();
  if (engine::Runtime::IsStarted()) ThrowIfError(engine::Synchronize());
}

bool QueueIdle() {
  if (engine::Runtime::IsStarted()) engine::SealTraces();
  return !engine::Runtime::IsStarted() || engine::QueueReached(engine::QueuePosition());
}

}  // namespace tpu::aten
