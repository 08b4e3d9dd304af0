// SPDX-License-Identifier: Apache-2.0
// The control surface of the fake plugin (tests/fake_pjrt/control.h), found in the library that the runtime has loaded.
#pragma once
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "fake_pjrt/control.h"

namespace tpu::engine {

struct FakeControl {
  decltype(&fake_pjrt_reset) reset;
  decltype(&fake_pjrt_calls) calls;
  decltype(&fake_pjrt_fallible_calls) fallible_calls;
  decltype(&fake_pjrt_fail_call) fail_call;
  decltype(&fake_pjrt_fail_call_named) fail_call_named;
  decltype(&fake_pjrt_fail_async) fail_async;
  decltype(&fake_pjrt_set_async) set_async;
  decltype(&fake_pjrt_set_memory_limit) set_memory_limit;
  decltype(&fake_pjrt_live_buffers) live_buffers;
  decltype(&fake_pjrt_live_executables) live_executables;
  decltype(&fake_pjrt_live_events) live_events;
  decltype(&fake_pjrt_live_errors) live_errors;
};

inline const FakeControl& Fake() {
  static const FakeControl* control = [] {
    void* library = dlopen(TPU_FAKE_PJRT_PATH, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::fprintf(stderr, "%s\n", dlerror()), std::abort();
    auto* c = new FakeControl;
    auto find = [&](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      if (!*function) std::fprintf(stderr, "the fake plugin has no %s\n", name), std::abort();
    };
    find(&c->reset, "fake_pjrt_reset");
    find(&c->calls, "fake_pjrt_calls");
    find(&c->fallible_calls, "fake_pjrt_fallible_calls");
    find(&c->fail_call, "fake_pjrt_fail_call");
    find(&c->fail_call_named, "fake_pjrt_fail_call_named");
    find(&c->fail_async, "fake_pjrt_fail_async");
    find(&c->set_async, "fake_pjrt_set_async");
    find(&c->set_memory_limit, "fake_pjrt_set_memory_limit");
    find(&c->live_buffers, "fake_pjrt_live_buffers");
    find(&c->live_executables, "fake_pjrt_live_executables");
    find(&c->live_events, "fake_pjrt_live_events");
    find(&c->live_errors, "fake_pjrt_live_errors");
    return c;
  }();
  return *control;
}

}  // namespace tpu::engine
