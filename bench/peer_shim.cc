// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin that stands between a peer and a CPU plugin (BENCH_SHIM_TARGET): what the peer asks of a TPU and the CPU
// plugin lacks is dropped or emulated. Everything else is the target's own function, so timed calls pay nothing extra.
//   - client options are dropped, except those named in BENCH_SHIM_KEEP (separated by commas);
//   - the raw-buffer extension is added: on a CPU a raw buffer is the buffer's own memory.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "pjrt_c_api.h"

namespace {

const PJRT_Api* g_target = nullptr;

// ---- client options

bool Kept(std::string_view name) {
  const char* list = std::getenv("BENCH_SHIM_KEEP");
  if (!list) return false;
  std::string padded = "," + std::string(list) + ",";
  return padded.find("," + std::string(name) + ",") != std::string::npos;
}

PJRT_Error* CreateClient(PJRT_Client_Create_Args* args) {
  const PJRT_NamedValue* asked = args->create_options;
  size_t num_asked = args->num_options;
  std::vector<PJRT_NamedValue> kept;
  for (size_t i = 0; i < num_asked; ++i)
    if (Kept({asked[i].name, asked[i].name_size})) kept.push_back(asked[i]);
  args->create_options = kept.data();
  args->num_options = kept.size();
  PJRT_Error* error = g_target->PJRT_Client_Create(args);
  args->create_options = asked;
  args->num_options = num_asked;
  return error;
}

// ---- raw buffers. The structs follow pjrt_c_api_raw_buffer_extension.h, which the plugin wheel does not carry.

struct RawBuffer {
  PJRT_Buffer* owner;
  char* data;
  size_t size;
  PJRT_Memory* memory;
};

template <class Value>
struct RawArgs {  // every call begins so; Value is what differs
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  Value value;
};
struct Alias {
  PJRT_Buffer* buffer;
  RawBuffer* raw;  // out
};
struct Destruction {
  RawBuffer* raw;
};
template <class T>
struct Query {
  RawBuffer* raw;
  T answer;  // out
};
struct Copy {
  RawBuffer* raw;
  void* host;
  int64_t offset;
  int64_t size;
  PJRT_Event* done;  // out
};

PJRT_Error* ReadyEvent(PJRT_Buffer* buffer, PJRT_Event** event) {
  PJRT_Buffer_ReadyEvent_Args args{};
  args.struct_size = PJRT_Buffer_ReadyEvent_Args_STRUCT_SIZE;
  args.buffer = buffer;
  PJRT_Error* error = g_target->PJRT_Buffer_ReadyEvent(&args);
  *event = args.event;
  return error;
}

PJRT_Error* WaitFor(PJRT_Buffer* buffer) {
  PJRT_Event* event = nullptr;
  if (PJRT_Error* error = ReadyEvent(buffer, &event)) return error;
  PJRT_Event_Await_Args await{};
  await.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE;
  await.event = event;
  PJRT_Error* error = g_target->PJRT_Event_Await(&await);
  PJRT_Event_Destroy_Args destroy{};
  destroy.struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE;
  destroy.event = event;
  g_target->PJRT_Event_Destroy(&destroy);
  return error;
}

PJRT_Error* CreateRaw(RawArgs<Alias>* args) {
  PJRT_Buffer_UnsafePointer_Args pointer{};
  pointer.struct_size = PJRT_Buffer_UnsafePointer_Args_STRUCT_SIZE;
  pointer.buffer = args->value.buffer;
  if (PJRT_Error* error = g_target->PJRT_Buffer_UnsafePointer(&pointer)) return error;
  PJRT_Buffer_OnDeviceSizeInBytes_Args size{};
  size.struct_size = PJRT_Buffer_OnDeviceSizeInBytes_Args_STRUCT_SIZE;
  size.buffer = args->value.buffer;
  if (PJRT_Error* error = g_target->PJRT_Buffer_OnDeviceSizeInBytes(&size)) return error;
  PJRT_Buffer_Memory_Args memory{};
  memory.struct_size = PJRT_Buffer_Memory_Args_STRUCT_SIZE;
  memory.buffer = args->value.buffer;
  if (PJRT_Error* error = g_target->PJRT_Buffer_Memory(&memory)) return error;
  args->value.raw = new RawBuffer{args->value.buffer, reinterpret_cast<char*>(pointer.buffer_pointer),
                                  size.on_device_size_in_bytes, memory.memory};
  return nullptr;
}

PJRT_Error* DestroyRaw(RawArgs<Destruction>* args) {
  delete args->value.raw;
  return nullptr;
}
PJRT_Error* RawHostPointer(RawArgs<Query<void*>>* args) {
  args->value.answer = args->value.raw->data;
  return nullptr;
}
PJRT_Error* RawSize(RawArgs<Query<size_t>>* args) {
  args->value.answer = args->value.raw->size;
  return nullptr;
}
PJRT_Error* RawMemory(RawArgs<Query<PJRT_Memory*>>* args) {
  args->value.answer = args->value.raw->memory;
  return nullptr;
}

PJRT_Error* CopyIn(RawArgs<Copy>* args) {
  Copy& c = args->value;
  if (PJRT_Error* error = WaitFor(c.raw->owner)) return error;
  std::memcpy(c.raw->data + c.offset, c.host, static_cast<size_t>(c.size));
  return ReadyEvent(c.raw->owner, &c.done);
}
PJRT_Error* CopyOut(RawArgs<Copy>* args) {
  Copy& c = args->value;
  if (PJRT_Error* error = WaitFor(c.raw->owner)) return error;
  std::memcpy(c.host, c.raw->data + c.offset, static_cast<size_t>(c.size));
  return ReadyEvent(c.raw->owner, &c.done);
}

struct RawBufferExtension {
  PJRT_Extension_Base base;
  PJRT_Error* (*create)(RawArgs<Alias>*) = CreateRaw;
  PJRT_Error* (*destroy)(RawArgs<Destruction>*) = DestroyRaw;
  PJRT_Error* (*size)(RawArgs<Query<size_t>>*) = RawSize;
  PJRT_Error* (*memory)(RawArgs<Query<PJRT_Memory*>>*) = RawMemory;
  PJRT_Error* (*copy_in)(RawArgs<Copy>*) = CopyIn;
  PJRT_Error* (*copy_out)(RawArgs<Copy>*) = CopyOut;
  PJRT_Error* (*host_pointer)(RawArgs<Query<void*>>*) = RawHostPointer;
};

bool HasRawBuffers(const PJRT_Api* api) {
  for (const PJRT_Extension_Base* e = api->extension_start; e; e = e->next)
    if (e->type == PJRT_Extension_Type_RawBuffer) return true;
  return false;
}

const PJRT_Api* MakeApi() {
  const char* path = std::getenv("BENCH_SHIM_TARGET");
  void* library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  auto* get = library ? reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi")) : nullptr;
  if (!get) {
    std::fprintf(stderr, "BENCH_SHIM_TARGET is not a PJRT plugin: %s\n", path ? dlerror() : "not set");
    std::abort();
  }
  g_target = get();
  // The target's table may be longer than this header's, so it is copied by its own size.
  auto* api = static_cast<PJRT_Api*>(std::malloc(g_target->struct_size));
  std::memcpy(static_cast<void*>(api), g_target, g_target->struct_size);
  api->PJRT_Client_Create = CreateClient;
  if (!HasRawBuffers(g_target)) {
    static RawBufferExtension extension;
    extension.base.struct_size = sizeof(RawBufferExtension);
    extension.base.type = PJRT_Extension_Type_RawBuffer;
    extension.base.next = api->extension_start;
    api->extension_start = &extension.base;
  }
  return api;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api* api = MakeApi();
  return api;
}
