// SPDX-License-Identifier: Apache-2.0
// Handle: move-only ownership of one PJRT object.
#pragma once
#include <atomic>
#include <utility>

#include "pjrt/api.h"

namespace tpu::pjrt {

// When set, destructors leave plugin objects alone. Set in a forked child, whose plugin threads are gone, and at exit.
extern std::atomic<bool> g_leak_plugin_objects;

// Destroy<T> ends a plugin object; errors are ignored, since nobody could act on them.
void Destroy(const PJRT_Api* api, PJRT_Event* event);
void Destroy(const PJRT_Api* api, PJRT_Buffer* buffer);
void Destroy(const PJRT_Api* api, PJRT_Executable* executable);
void Destroy(const PJRT_Api* api, PJRT_LoadedExecutable* executable);

// Owns `object` unless it is null. Thread rule: one thread at a time per handle; different handles are independent.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(const PJRT_Api* api, T* object) : api_(api), object_(object) {}
  Handle(Handle&& other) noexcept : api_(other.api_), object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      api_ = other.api_;
      object_ = std::exchange(other.object_, nullptr);
    }
    return *this;
  }
  ~Handle() { reset(); }

  T* get() const { return object_; }
  const PJRT_Api* api() const { return api_; }
  explicit operator bool() const { return object_ != nullptr; }
  // Gives ownership to the caller, who ends the object with Destroy(api, object).
  T* release() { return std::exchange(object_, nullptr); }
  void reset() {
    if (T* object = std::exchange(object_, nullptr)) {
      if (!g_leak_plugin_objects.load(std::memory_order_relaxed)) Destroy(api_, object);
    }
  }

 private:
  const PJRT_Api* api_ = nullptr;
  T* object_ = nullptr;
};

}  // namespace tpu::pjrt
