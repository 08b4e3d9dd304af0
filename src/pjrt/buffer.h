// SPDX-License-Identifier: Apache-2.0
// Buffer: one array in device memory, itself a future.
#pragma once
#include <cstddef>

#include "base/status.h"
#include "base/tensor_type.h"
#include "pjrt/event.h"
#include "pjrt/handle.h"

namespace tpu::pjrt {

// Owns a PJRT_Buffer. Requires, for all but get/release/reset: not empty. Thread rule: const members may be called from
// several threads at once.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const PJRT_Api* api, PJRT_Buffer* buffer) : handle_(api, buffer) {}

  PJRT_Buffer* get() const { return handle_.get(); }
  const PJRT_Api* api() const { return handle_.api(); }
  explicit operator bool() const { return static_cast<bool>(handle_); }
  // Gives ownership to the caller, who ends it with pjrt::Destroy(api, buffer).
  PJRT_Buffer* release() { return handle_.release(); }
  void reset() { handle_.reset(); }

  // True when the contents are there, or will never be; `*error` then tells which.
  bool IsReady(Status* error) const;
  Result<Event> ReadyEvent() const;
  // Where the elements lie in host memory, row-major; valid until the buffer is destroyed or donated. Null for an empty
  // array on some plugins. Requires: EngineProfile::host_addressable, and IsReady before the memory is read.
  Result<const void*> HostPointer() const;
  // Starts a copy of the elements, row-major, to `dst`, which must stay alive until the event is ready. `bytes` must be
  // at least the array's size. Waits for nothing. Slow for small arrays on CPU plugins: prefer HostPointer.
  Result<Event> CopyToHost(void* dst, size_t bytes) const;
  Result<size_t> OnDeviceSize() const;
  // True after donation.
  bool IsDeleted() const;

  // Two C calls: for checks and tests, not for hot paths. Fails for types and ranks that TensorType cannot hold.
  Result<TensorType> Type() const;
  // Fails, naming both types, when the buffer is not an array of `expected`'s element type and dimensions.
  Status CheckType(const TensorType& expected) const;

 private:
  Handle<PJRT_Buffer> handle_;
};

}  // namespace tpu::pjrt
