// SPDX-License-Identifier: Apache-2.0
// A small client of the PJRT C API for the tests of this folder. Aborts on what no test expects.
#pragma once
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "pjrt_c_api.h"

namespace fake_pjrt {

// A zeroed argument struct with its size set: auto a = Args<PJRT_Client_Create_Args>().
#define TEST_ARGS(type, name) \
  type name{};                \
  name.struct_size = type##_STRUCT_SIZE

struct Failure {
  int code = 0;
  std::string message;
};

struct HostArray {
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  std::vector<int64_t> dims;
  std::vector<uint8_t> bytes;

  template <class T>
  static HostArray Of(PJRT_Buffer_Type type, std::vector<int64_t> dims, std::vector<T> values) {
    HostArray a{type, std::move(dims), std::vector<uint8_t>(values.size() * sizeof(T))};
    if (!values.empty()) std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
    return a;
  }
  static HostArray F32(std::vector<int64_t> dims, std::vector<float> values) {
    return Of(PJRT_Buffer_Type_F32, std::move(dims), std::move(values));
  }
  template <class T>
  std::vector<T> As() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

class Plugin {
 public:
  Plugin(const PJRT_Api* api, int num_devices) : api(api) {
    TEST_ARGS(PJRT_Plugin_Initialize_Args, init);
    Must(api->PJRT_Plugin_Initialize(&init));
    TEST_ARGS(PJRT_NamedValue, option);
    option.name = "cpu_device_count";
    option.name_size = 16;
    option.type = PJRT_NamedValue_kInt64;
    option.int64_value = num_devices;
    option.value_size = 1;
    TEST_ARGS(PJRT_Client_Create_Args, create);
    create.create_options = &option;
    create.num_options = 1;
    Must(api->PJRT_Client_Create(&create));
    client = create.client;
    TEST_ARGS(PJRT_Client_AddressableDevices_Args, list);
    list.client = client;
    Must(api->PJRT_Client_AddressableDevices(&list));
    devices.assign(list.addressable_devices, list.addressable_devices + list.num_addressable_devices);
  }

  // Consumes the error.
  Failure Take(PJRT_Error* error) const {
    if (!error) return {};
    TEST_ARGS(PJRT_Error_Message_Args, m);
    m.error = error;
    api->PJRT_Error_Message(&m);
    TEST_ARGS(PJRT_Error_GetCode_Args, c);
    c.error = error;
    api->PJRT_Error_GetCode(&c);
    Failure f{static_cast<int>(c.code), std::string(m.message, m.message_size)};
    TEST_ARGS(PJRT_Error_Destroy_Args, d);
    d.error = error;
    api->PJRT_Error_Destroy(&d);
    return f;
  }
  void Must(PJRT_Error* error) const {
    Failure f = Take(error);
    if (!f.code) return;
    std::fprintf(stderr, "unexpected error %d: %s\n", f.code, f.message.c_str());
    std::abort();
  }

  // The smallest valid options: one replica, one partition; `portable` adds compile_portable_executable.
  static std::string Options(int replicas = 1, bool portable = false) {
    std::string o = {0x1a, 0x04, 0x20, static_cast<char>(replicas), 0x28, 0x01};
    return portable ? o + std::string{0x20, 0x01} : o;
  }
  // Options() with env_option_overrides for XLA: quick compilation, roundings where the program has them.
  static std::string ExactOptions() {
    std::string o = Options();
    auto add = [&o](const std::string& key, std::string value) {
      std::string entry =
          std::string{0x0a, static_cast<char>(key.size())} + key + std::string{0x12, static_cast<char>(value.size())} + value;
      o += std::string{0x3a, static_cast<char>(entry.size())} + entry;
    };
    add("xla_backend_optimization_level", {0x18, 0});
    add("xla_allow_excess_precision", {0x10, 0});
    add("xla_cpu_enable_fast_min_max", {0x10, 0});
    return o;
  }
  Failure Compile(const std::string& text, PJRT_LoadedExecutable** executable, const std::string& options = Options()) const {
    TEST_ARGS(PJRT_Program, program);
    program.code = const_cast<char*>(text.data());
    program.code_size = text.size();
    program.format = "mlir";
    program.format_size = 4;
    TEST_ARGS(PJRT_Client_Compile_Args, a);
    a.client = client;
    a.program = &program;
    a.compile_options = options.data();
    a.compile_options_size = options.size();
    Failure f = Take(api->PJRT_Client_Compile(&a));
    *executable = a.executable;
    return f;
  }
  void Destroy(PJRT_LoadedExecutable* executable) const {
    TEST_ARGS(PJRT_LoadedExecutable_Destroy_Args, a);
    a.executable = executable;
    Must(api->PJRT_LoadedExecutable_Destroy(&a));
  }
  size_t NumOutputs(PJRT_LoadedExecutable* loaded) const {
    TEST_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, g);
    g.loaded_executable = loaded;
    Must(api->PJRT_LoadedExecutable_GetExecutable(&g));
    TEST_ARGS(PJRT_Executable_NumOutputs_Args, n);
    n.executable = g.executable;
    Must(api->PJRT_Executable_NumOutputs(&n));
    TEST_ARGS(PJRT_Executable_Destroy_Args, d);
    d.executable = g.executable;
    Must(api->PJRT_Executable_Destroy(&d));
    return n.num_outputs;
  }

  Failure Upload(const HostArray& array, PJRT_Buffer** buffer, PJRT_Device* device = nullptr) const {
    TEST_ARGS(PJRT_Client_BufferFromHostBuffer_Args, a);
    a.client = client;
    a.data = array.bytes.data();
    a.type = array.type;
    a.dims = array.dims.data();
    a.num_dims = array.dims.size();
    a.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    a.device = device ? device : devices[0];
    Failure f = Take(api->PJRT_Client_BufferFromHostBuffer(&a));
    *buffer = a.buffer;
    if (!f.code) Destroy(a.done_with_host_buffer);
    return f;
  }
  PJRT_Buffer* Upload(const HostArray& array) const {
    PJRT_Buffer* buffer;
    if (Failure f = Upload(array, &buffer); f.code) Must(nullptr), std::abort();
    return buffer;
  }
  void Destroy(PJRT_Event* event) const {
    TEST_ARGS(PJRT_Event_Destroy_Args, a);
    a.event = event;
    Must(api->PJRT_Event_Destroy(&a));
  }
  void Destroy(PJRT_Buffer* buffer) const {
    TEST_ARGS(PJRT_Buffer_Destroy_Args, a);
    a.buffer = buffer;
    Must(api->PJRT_Buffer_Destroy(&a));
  }
  // Waits for the event and destroys it.
  Failure Await(PJRT_Event* event) const {
    TEST_ARGS(PJRT_Event_Await_Args, a);
    a.event = event;
    Failure f = Take(api->PJRT_Event_Await(&a));
    Destroy(event);
    return f;
  }
  PJRT_Event* ReadyEvent(PJRT_Buffer* buffer) const {
    TEST_ARGS(PJRT_Buffer_ReadyEvent_Args, a);
    a.buffer = buffer;
    Must(api->PJRT_Buffer_ReadyEvent(&a));
    return a.event;
  }
  Failure Download(PJRT_Buffer* buffer, HostArray* array) const {
    TEST_ARGS(PJRT_Buffer_ElementType_Args, t);
    t.buffer = buffer;
    Must(api->PJRT_Buffer_ElementType(&t));
    array->type = t.type;
    TEST_ARGS(PJRT_Buffer_Dimensions_Args, d);
    d.buffer = buffer;
    Must(api->PJRT_Buffer_Dimensions(&d));
    array->dims.assign(d.dims, d.dims + d.num_dims);
    TEST_ARGS(PJRT_Buffer_ToHostBuffer_Args, a);
    a.src = buffer;
    if (Failure f = Take(api->PJRT_Buffer_ToHostBuffer(&a)); f.code) return f;
    array->bytes.resize(a.dst_size);
    uint8_t none;
    a.dst = a.dst_size ? array->bytes.data() : &none;
    if (Failure f = Take(api->PJRT_Buffer_ToHostBuffer(&a)); f.code) return f;
    return Await(a.event);
  }

  Failure Execute(PJRT_LoadedExecutable* executable, const std::vector<PJRT_Buffer*>& args, std::vector<PJRT_Buffer*>* outputs,
                  const std::vector<int64_t>& not_donatable = {}, PJRT_Device* device = nullptr) const {
    TEST_ARGS(PJRT_ExecuteOptions, options);
    options.non_donatable_input_indices = not_donatable.data();
    options.num_non_donatable_input_indices = not_donatable.size();
    TEST_ARGS(PJRT_LoadedExecutable_Execute_Args, a);
    a.executable = executable;
    a.options = &options;
    PJRT_Buffer* const* arg_list = args.data();
    outputs->assign(NumOutputs(executable), nullptr);
    PJRT_Buffer** output_list = outputs->data();
    a.argument_lists = &arg_list;
    a.num_devices = 1;
    a.num_args = args.size();
    a.output_lists = &output_list;
    a.execute_device = device;
    return Take(api->PJRT_LoadedExecutable_Execute(&a));
  }

  // Compile, upload, execute, read back, destroy everything.
  Failure Run(const std::string& text, const std::vector<HostArray>& inputs, std::vector<HostArray>* results,
              const std::string& compile_options = Options()) const {
    PJRT_LoadedExecutable* executable;
    if (Failure f = Compile(text, &executable, compile_options); f.code) return f;
    std::vector<PJRT_Buffer*> args, outputs;
    for (const HostArray& a : inputs) args.push_back(Upload(a));
    Failure f = Execute(executable, args, &outputs);
    results->clear();
    for (PJRT_Buffer* b : outputs) {
      if (!b) continue;
      results->emplace_back();
      if (Failure g = Download(b, &results->back()); g.code && !f.code) f = g;
      Destroy(b);
    }
    for (PJRT_Buffer* b : args) Destroy(b);
    Destroy(executable);
    return f;
  }

  const PJRT_Api* api;
  PJRT_Client* client = nullptr;
  std::vector<PJRT_Device*> devices;
};

// XLA's CPU plugin; null when it is not installed. Kept loaded, its client leaked.
inline const Plugin* XlaCpuPlugin() {
  static const Plugin* plugin = []() -> const Plugin* {
    std::string path;
#ifdef TPU_XLA_CPU_PJRT_PATH
    path = TPU_XLA_CPU_PJRT_PATH;
#else
    namespace fs = std::filesystem;
    std::error_code none;
    fs::path repository = fs::path(__FILE__).parent_path().parent_path().parent_path();
    for (const auto& python : fs::directory_iterator(repository / ".venv" / "lib", none))
      path = python.path() / "site-packages/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so";
#endif
    void* handle = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return nullptr;
    auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(handle, "GetPjrtApi"));
    return new Plugin(get(), 1);
  }();
  return plugin;
}

}  // namespace fake_pjrt

extern "C" const PJRT_Api* GetPjrtApi();
