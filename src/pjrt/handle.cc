// SPDX-License-Identifier: Apache-2.0
#include "pjrt/handle.h"

#include "pjrt/errors.h"

namespace tpu::pjrt {

std::atomic<bool> g_leak_plugin_objects{false};

void Destroy(const PJRT_Api* api, PJRT_Event* event) {
  Args<PJRT_Event_Destroy_Args> args;
  args->event = event;
  (void)ToStatus(api, api->PJRT_Event_Destroy(args.get()));
}

void Destroy(const PJRT_Api* api, PJRT_Buffer* buffer) {
  Args<PJRT_Buffer_Destroy_Args> args;
  args->buffer = buffer;
  (void)ToStatus(api, api->PJRT_Buffer_Destroy(args.get()));
}

void Destroy(const PJRT_Api* api, PJRT_Executable* executable) {
  Args<PJRT_Executable_Destroy_Args> args;
  args->executable = executable;
  (void)ToStatus(api, api->PJRT_Executable_Destroy(args.get()));
}

void Destroy(const PJRT_Api* api, PJRT_LoadedExecutable* executable) {
  Args<PJRT_LoadedExecutable_Destroy_Args> args;
  args->executable = executable;
  (void)ToStatus(api, api->PJRT_LoadedExecutable_Destroy(args.get()));
}

}  // namespace tpu::pjrt
