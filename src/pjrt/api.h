// SPDX-License-Identifier: Apache-2.0
// The PJRT C API and the one way to fill its argument structs. The header itself comes from the installed plugin wheel
// (version 0.81); its table is a prefix of every newer one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pjrt_c_api.h"

namespace tpu::pjrt {

// An argument struct: zeroed, followed by a zeroed tail, struct_size covering both. Plugins refuse a struct smaller
// than their own and accept a larger one, so the tail is what lets one old header talk to newer plugins.
template <class T>
class Args {
 public:
  Args() { value_.struct_size = sizeof(T) + kTail; }
  Args(const Args&) = delete;
  Args& operator=(const Args&) = delete;

  T* operator->() { return &value_; }
  T* get() { return &value_; }

 private:
  static constexpr size_t kTail = 256;
  T value_{};
  char tail_[kTail] = {};
};

// True when the plugin's table reaches the slot and fills it: HasSlot(api, &PJRT_Api::PJRT_Buffer_CopyRawToHost).
template <class Function>
bool HasSlot(const PJRT_Api* api, Function PJRT_Api::* slot) {
  auto offset = reinterpret_cast<const char*>(&(api->*slot)) - reinterpret_cast<const char*>(api);
  return api->struct_size >= static_cast<size_t>(offset) + sizeof(Function) && api->*slot != nullptr;
}

// The number of an enumerator that the plugin wrote: newer plugins have numbers that this header's enum cannot hold.
template <class Enum>
int EnumNumber(const Enum& value) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

}  // namespace tpu::pjrt
