// SPDX-License-Identifier: Apache-2.0
// The state behind control.h: counters, injected failures, the memory limit, live objects. One a process.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "error.h"

namespace fake_pjrt {

class ControlState {
 public:
  static ControlState& Get();

  // Counts a call of API function `name`; the error to return instead of running it, if one was asked for.
  Error OnCall(const char* name, bool fallible);
  // The error to put into the outputs of an execution that starts now, if one was asked for.
  Error OnExecute();

  bool TakeBytes(size_t bytes);
  void ReturnBytes(size_t bytes) { live_bytes_ -= static_cast<int64_t>(bytes); }

  void Reset();
  void FailCall(int64_t n, int code);
  void FailCallNamed(const std::string& name, int64_t k, int code);
  void FailAsync(int64_t k, int code);
  int64_t Calls(const std::string& name);
  int64_t TotalCalls();
  int64_t FallibleCalls();
  void SetLastProgram(std::string text);
  std::string LastProgram();

  std::atomic<int64_t> delay_us{-1};  // below zero: executions complete before Execute returns
  std::atomic<int64_t> memory_limit{0};
  std::atomic<int64_t> live_buffers{0}, live_executables{0}, live_events{0}, live_errors{0};
  int64_t live_bytes() const { return live_bytes_; }

 private:
  struct NamedFailure {
    int64_t countdown;
    int code;
  };
  std::mutex mutex_;
  std::map<std::string, int64_t> calls_;
  std::map<std::string, NamedFailure> named_failures_;
  int64_t total_ = 0, fallible_ = 0;
  int64_t fail_countdown_ = 0, async_countdown_ = 0;  // 0: no failure asked for
  int64_t fail_number_ = 0;                           // what the caller named the failing call
  int fail_code_ = 0, async_code_ = 0;
  std::string last_program_;
  std::atomic<int64_t> live_bytes_{0};
};

}  // namespace fake_pjrt
