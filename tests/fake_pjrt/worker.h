// SPDX-License-Identifier: Apache-2.0
// The background thread of asynchronous mode: jobs run one by one, in order.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace fake_pjrt {

class Worker {
 public:
  // Never destroyed: callers may leak buffers until the process ends.
  static Worker& Get();

  // Runs `job` on the worker thread, `delay_us` after the jobs before it. Starts the thread at first use.
  void Submit(int64_t delay_us, std::function<void()> job);
  // Requires: not called from a job.
  void WaitIdle();
  // Runs `job` now when the mode is synchronous (after all jobs in flight), else on the worker with the mode's delay.
  void RunOrSubmit(std::function<void()> job);

 private:
  struct Job {
    int64_t delay_us;
    std::function<void()> run;
  };
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<Job> jobs_;
  bool started_ = false, busy_ = false;
};

}  // namespace fake_pjrt
