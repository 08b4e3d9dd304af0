// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "control_state.h"

namespace fake_pjrt {
namespace {
thread_local bool on_worker_thread = false;
}

Worker& Worker::Get() {
  static auto* worker = new Worker;
  return *worker;
}

void Worker::Submit(int64_t delay_us, std::function<void()> job) {
  std::lock_guard lock(mutex_);
  if (!started_) std::thread([this] { Loop(); }).detach();
  started_ = true;
  jobs_.push_back({delay_us, std::move(job)});
  wake_.notify_one();
}

void Worker::WaitIdle() {
  if (on_worker_thread) return;
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void Worker::RunOrSubmit(bool asynchronous, std::function<void()> job) {
  int64_t delay = ControlState::Get().delay_us;
  if (delay >= 0 || asynchronous || on_worker_thread) return Submit(std::max<int64_t>(delay, 0), std::move(job));
  WaitIdle();
  job();
}

void Worker::Loop() {
  on_worker_thread = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return !jobs_.empty(); });
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    if (job.delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(job.delay_us));
    job.run();
    job.run = nullptr;  // what the job held goes before WaitIdle returns
    lock.lock();
    busy_ = false;
    if (jobs_.empty()) idle_.notify_all();
  }
}

}  // namespace fake_pjrt
