// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include <algorithm>
#include <cstring>

#include "control_state.h"
#include "worker.h"

namespace fake_pjrt {
namespace {

std::string FullName(const std::string& name) { return name.starts_with("PJRT_") ? name : "PJRT_" + name; }

Error Injected(int64_t n, int code, const std::string& name) {
  return {code, "injected failure at call " + std::to_string(n) + " (" + name + ")"};
}

}  // namespace

ControlState& ControlState::Get() {
  static auto* state = new ControlState;
  return *state;
}

Error ControlState::OnCall(const char* name, bool fallible) {
  std::lock_guard lock(mutex_);
  int64_t nth = ++calls_[name];
  ++total_;
  if (!fallible) return {};
  ++fallible_;
  if (fail_countdown_ > 0 && --fail_countdown_ == 0) return Injected(fail_number_, fail_code_, name);
  auto it = named_failures_.find(name);
  if (it == named_failures_.end() || --it->second.countdown > 0) return {};
  int code = it->second.code;
  named_failures_.erase(it);
  return Injected(nth, code, name);
}

Error ControlState::OnExecute() {
  std::lock_guard lock(mutex_);
  if (async_countdown_ == 0 || --async_countdown_ > 0) return {};
  return {async_code_, "injected asynchronous failure"};
}

bool ControlState::TakeBytes(size_t bytes) {
  int64_t limit = memory_limit, wanted = static_cast<int64_t>(bytes);
  int64_t now = live_bytes_.load();
  do {
    if (limit > 0 && now + wanted > limit) return false;
  } while (!live_bytes_.compare_exchange_weak(now, now + wanted));
  return true;
}

void ControlState::Reset() {
  delay_us = -1;
  memory_limit = 0;
  std::lock_guard lock(mutex_);
  calls_.clear();
  named_failures_.clear();
  total_ = fallible_ = fail_countdown_ = async_countdown_ = 0;
}

void ControlState::FailCall(int64_t n, int code) {
  std::lock_guard lock(mutex_);
  fail_countdown_ = fail_number_ = std::max<int64_t>(n, 0);
  fail_code_ = code;
}

void ControlState::FailCallNamed(const std::string& name, int64_t k, int code) {
  std::lock_guard lock(mutex_);
  if (k <= 0)
    named_failures_.erase(FullName(name));
  else
    named_failures_[FullName(name)] = {k, code};
}

void ControlState::FailAsync(int64_t k, int code) {
  std::lock_guard lock(mutex_);
  async_countdown_ = std::max<int64_t>(k, 0);
  async_code_ = code;
}

int64_t ControlState::Calls(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto it = calls_.find(FullName(name));
  return it == calls_.end() ? 0 : it->second;
}

int64_t ControlState::TotalCalls() {
  std::lock_guard lock(mutex_);
  return total_;
}

int64_t ControlState::FallibleCalls() {
  std::lock_guard lock(mutex_);
  return fallible_;
}

void ControlState::SetLastProgram(std::string text) {
  std::lock_guard lock(mutex_);
  last_program_ = std::move(text);
}

std::string ControlState::LastProgram() {
  std::lock_guard lock(mutex_);
  return last_program_;
}

}  // namespace fake_pjrt

using fake_pjrt::ControlState;

void fake_pjrt_reset(void) {
  fake_pjrt::Worker::Get().WaitIdle();
  ControlState::Get().Reset();
}
int64_t fake_pjrt_calls(const char* name) { return ControlState::Get().Calls(name); }
int64_t fake_pjrt_total_calls(void) { return ControlState::Get().TotalCalls(); }
int64_t fake_pjrt_fallible_calls(void) { return ControlState::Get().FallibleCalls(); }
void fake_pjrt_fail_call(int64_t n, int code) { ControlState::Get().FailCall(n, code); }
void fake_pjrt_fail_call_named(const char* name, int64_t k, int code) { ControlState::Get().FailCallNamed(name, k, code); }
void fake_pjrt_fail_async(int64_t k, int code) { ControlState::Get().FailAsync(k, code); }
void fake_pjrt_set_async(int64_t delay_us) { ControlState::Get().delay_us = delay_us; }
void fake_pjrt_set_memory_limit(int64_t bytes) { ControlState::Get().memory_limit = bytes; }
int64_t fake_pjrt_live_buffers(void) { return ControlState::Get().live_buffers; }
int64_t fake_pjrt_live_bytes(void) { return ControlState::Get().live_bytes(); }
int64_t fake_pjrt_live_executables(void) { return ControlState::Get().live_executables; }
int64_t fake_pjrt_live_events(void) { return ControlState::Get().live_events; }
int64_t fake_pjrt_live_errors(void) { return ControlState::Get().live_errors; }
int64_t fake_pjrt_last_program(char* text, size_t size) {
  std::string program = ControlState::Get().LastProgram();
  if (size > 0) {
    size_t n = std::min(program.size(), size - 1);
    std::memcpy(text, program.data(), n);
    text[n] = 0;
  }
  return static_cast<int64_t>(program.size());
}
