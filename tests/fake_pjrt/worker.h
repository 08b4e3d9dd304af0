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
  // Returns at once when called from a job (an OnReady callback that calls back into the plugin).
  void WaitIdle();
  // In asynchronous mode, from a job, or when `asynchronous` asks for it: on the worker, with the mode's delay. Else
  // now, after all jobs in flight.
  void RunOrSubmit(bool asynchronous, std::function<void()> job);

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
