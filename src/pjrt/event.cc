// SPDX-License-Identifier: Apache-2.0
#include "pjrt/event.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "pjrt/errors.h"

namespace tpu::pjrt {
namespace {

struct Callback {
  const PJRT_Api* api;
  std::function<void(Status)> done;
};

void RunCallback(PJRT_Error* error, void* arg) {
  std::unique_ptr<Callback> callback(static_cast<Callback*>(arg));
  callback->done(ToStatus(callback->api, error));
}

}  // namespace

struct Event::WaitState {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  Status status;
};

bool Event::IsReady() const {
  Args<PJRT_Event_IsReady_Args> args;
  args->event = handle_.get();
  // A failing query must not make waiters wait for ever: error() tells them.
  if (!ToStatus(handle_.api(), handle_.api()->PJRT_Event_IsReady(args.get())).ok()) return true;
  return args->is_ready;
}

Status Event::error() const {
  Args<PJRT_Event_Error_Args> args;
  args->event = handle_.get();
  return ToStatus(handle_.api(), handle_.api()->PJRT_Event_Error(args.get()));
}

Status Event::OnReady(std::function<void(Status)> done) {
  auto callback = std::make_unique<Callback>(Callback{handle_.api(), std::move(done)});
  Args<PJRT_Event_OnReady_Args> args;
  args->event = handle_.get();
  args->callback = &RunCallback;
  args->user_arg = callback.get();
  TPU_RETURN_IF_ERROR(ToStatus(handle_.api(), handle_.api()->PJRT_Event_OnReady(args.get())));
  (void)callback.release();
  return {};
}

Result<WaitOutcome> Event::WaitFor(std::chrono::nanoseconds timeout) {
  if (!wait_ && IsReady()) {
    TPU_RETURN_IF_ERROR(error());
    return WaitOutcome::kReady;
  }
  if (!wait_) {
    auto state = std::make_shared<WaitState>();
    TPU_RETURN_IF_ERROR(OnReady([state](Status status) {
      std::lock_guard<std::mutex> lock(state->mutex);
      state->status = std::move(status);
      state->done = true;
      state->changed.notify_all();
    }));
    wait_ = std::move(state);
  }
  std::unique_lock<std::mutex> lock(wait_->mutex);
  if (!wait_->changed.wait_for(lock, timeout, [this] { return wait_->done; })) return WaitOutcome::kTimedOut;
  if (!wait_->status.ok()) return wait_->status;
  return WaitOutcome::kReady;
}

}  // namespace tpu::pjrt
