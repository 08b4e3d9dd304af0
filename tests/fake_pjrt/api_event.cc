// SPDX-License-Identifier: Apache-2.0
// Errors, promises and events.
#include "api.h"
#include "objects.h"

namespace fake_pjrt {

void Promise::Set(Error error) {
  std::vector<Callback> callbacks;
  {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
    ready_ = true;
    callbacks.swap(callbacks_);
    set_.notify_all();
  }
  for (const Callback& c : callbacks) c(error_);  // error_ never changes again
}

bool Promise::ready() {
  std::lock_guard lock(mutex_);
  return ready_;
}

Error Promise::Wait() {
  std::unique_lock lock(mutex_);
  set_.wait(lock, [this] { return ready_; });
  return error_;
}

void Promise::OnReady(Callback callback) {
  {
    std::lock_guard lock(mutex_);
    if (!ready_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(error_);
}

std::shared_ptr<Promise> ReadyPromise(Error error) {
  auto promise = std::make_shared<Promise>();
  promise->Set(std::move(error));
  return promise;
}

PJRT_Error* NewError(Error error) { return error.ok() ? nullptr : new PJRT_Error{std::move(error)}; }

PJRT_Event* NewEvent(std::shared_ptr<Promise> promise) { return new PJRT_Event{std::move(promise)}; }

Error Event_Destroy(PJRT_Event_Destroy_Args* args) {
  delete args->event;
  return {};
}

Error Event_IsReady(PJRT_Event_IsReady_Args* args) {
  args->is_ready = args->event->promise->ready();
  return {};
}

Error Event_Error(PJRT_Event_Error_Args* args) {
  if (!args->event->promise->ready()) return {kFailedPrecondition, "PJRT_Event_Error of an event that is not ready"};
  return args->event->promise->Wait();
}

Error Event_Await(PJRT_Event_Await_Args* args) { return args->event->promise->Wait(); }

Error Event_OnReady(PJRT_Event_OnReady_Args* args) {
  // The promise, not the event, is held: the caller may destroy the event before it fires.
  args->event->promise->OnReady(
      [callback = args->callback, user_arg = args->user_arg](const Error& error) { callback(NewError(error), user_arg); });
  return {};
}

}  // namespace fake_pjrt
