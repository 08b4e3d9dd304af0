// SPDX-License-Identifier: Apache-2.0
// Streams and events. There is one queue, which runs in the order of recording: a stream is a label on it, an event a
// position in it.
#pragma once
#include <c10/core/Stream.h>

#include <atomic>
#include <cstdint>

namespace tpu::aten {

// Id 0 is a device's default stream. Other ids carry their priority: see PriorityOf.
c10::Stream CurrentStream(int device);
// Makes `stream` the calling thread's current one on its device; returns the one before.
c10::Stream ExchangeStream(c10::Stream stream);
// Streams are handed out in turn from a fixed pool, one for each priority: negative is high, as in torch.cuda.
c10::Stream PoolStream(int device, int priority);
// -1 (high) or 0.
int PriorityOf(c10::StreamId id);

// One recording of an event. Record and the rest may be called from different threads, but not at once.
class EventRecord {
 public:
  void Record(bool timed);
  bool Reached() const;
  // Throws what failed meanwhile and nobody has read.
  void Wait() const;
  bool timed() const { return timed_; }
  // When everything recorded before had been done, in nanoseconds. Requires: timed and Reached().
  int64_t Time() const;

 private:
  uint64_t position_ = 0;
  int64_t recorded_at_ = 0;
  bool timed_ = false;
};

// Waits for everything recorded and throws the first failure that nobody has read. Starts nothing.
void SynchronizeQueue();
bool QueueIdle();

}  // namespace tpu::aten
