// SPDX-License-Identifier: Apache-2.0
// Event: completion of asynchronous work in the plugin.
#pragma once
#include <chrono>
#include <functional>
#include <memory>

#include "base/status.h"
#include "pjrt/handle.h"

namespace tpu::pjrt {

enum class WaitOutcome { kReady, kTimedOut };

// Owns a PJRT_Event. Thread rule: one thread at a time.
class Event {
 public:
  Event() = default;
  Event(const PJRT_Api* api, PJRT_Event* event) : handle_(api, event) {}

  PJRT_Event* get() const { return handle_.get(); }
  explicit operator bool() const { return static_cast<bool>(handle_); }

  // True also when the work failed. Requires: not empty (here and below).
  bool IsReady() const;
  // How the work ended. Requires: IsReady().
  Status error() const;
  // Calls `done` once with the outcome: on a plugin thread, or before OnReady returns. It must neither block, take the
  // GIL, nor call the plugin. The event may be destroyed before the call. When the result is an error, `done` is not
  // called.
  Status OnReady(std::function<void(Status)> done);
  // Waits at most `timeout`; may be called again after kTimedOut. A failure of the work is the returned error.
  // Never calls PJRT_Event_Await, which could not be interrupted.
  Result<WaitOutcome> WaitFor(std::chrono::nanoseconds timeout);

 private:
  struct WaitState;
  Handle<PJRT_Event> handle_;
  std::shared_ptr<WaitState> wait_;  // made by the first WaitFor, shared with its callback
};

}  // namespace tpu::pjrt
