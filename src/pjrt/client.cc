// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client.h"

#include <algorithm>

#include <chrono>
#include <memory>
#include <utility>

#include "base/log.h"
#include "pjrt/dtype.h"
#include "pjrt/errors.h"

namespace tpu::pjrt {
namespace {

PJRT_NamedValue NamedValue(const NamedOption& option) {
  PJRT_NamedValue v{};
  // An array element: the plugin steps by its own idea of the size, so no tail here.
  v.struct_size = sizeof(v);
  v.name = option.name.data();
  v.name_size = option.name.size();
  v.value_size = 1;
  if (auto* s = std::get_if<std::string>(&option.value)) {
    v.type = PJRT_NamedValue_kString;
    v.string_value = s->data();
    v.value_size = s->size();
  } else if (auto* b = std::get_if<bool>(&option.value)) {
    v.type = PJRT_NamedValue_kBool;
    v.bool_value = *b;
  } else if (auto* i = std::get_if<int64_t>(&option.value)) {
    v.type = PJRT_NamedValue_kInt64;
    v.int64_value = *i;
  } else if (auto* d = std::get_if<double>(&option.value)) {
    v.type = PJRT_NamedValue_kFloat;
    v.float_value = static_cast<float>(*d);
  }
  return v;
}

Result<PJRT_Client*> NewClient(const PJRT_Api* api, const std::vector<NamedOption>& options) {
  std::vector<PJRT_NamedValue> values;
  for (const NamedOption& option : options) values.push_back(NamedValue(option));
  Args<PJRT_Client_Create_Args> args;
  args->create_options = values.data();
  args->num_options = values.size();
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_Client_Create(args.get())));
  return args->client;
}

Result<Device> Describe(const PJRT_Api* api, PJRT_Device* device) {
  Args<PJRT_Device_GetDescription_Args> description;
  description->device = device;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_Device_GetDescription(description.get())));
  Args<PJRT_DeviceDescription_Id_Args> id;
  id->device_description = description->device_description;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_DeviceDescription_Id(id.get())));
  Args<PJRT_DeviceDescription_Kind_Args> kind;
  kind->device_description = description->device_description;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_DeviceDescription_Kind(kind.get())));
  Args<PJRT_DeviceDescription_DebugString_Args> debug;
  debug->device_description = description->device_description;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_DeviceDescription_DebugString(debug.get())));
  return Device{device, id->id, std::string(kind->device_kind, kind->device_kind_size),
                std::string(debug->debug_string, debug->debug_string_size)};
}

Status NoSuchDevice(int device, size_t count) {
  return {ErrorKind::kValue, "device index " + std::to_string(device) + " is out of range, the engine has " +
                                 std::to_string(count) + " device(s)"};
}

}  // namespace

Result<Client*> Client::Create(const Plugin* plugin, const ClientOptions& options) {
  if (options.device_count < 1) return Status(ErrorKind::kValue, "device_count must be at least 1");
  std::unique_ptr<Client> client(new Client);
  client->plugin_ = plugin;
  client->profile_ = ProfileFor(*plugin, options.platform);
  if (Status status = client->CreateClient(options); !status.ok())
    return std::move(status).WithContext("PJRT plugin " + plugin->path() + ": no client");
  TPU_RETURN_IF_ERROR(client->ReadNames());
  if (ProfileFor(*plugin, client->platform_name_).kind != client->profile_.kind)
    client->profile_ = ProfileFor(*plugin, client->platform_name_);
  TPU_RETURN_IF_ERROR(client->ReadDevices());
  return client.release();
}

Status Client::CreateClient(const ClientOptions& options) {
  std::vector<NamedOption> required;
  if (profile_.kind == EngineKind::kCpu) required.push_back({"cpu_device_count", int64_t{options.device_count}});
  std::vector<NamedOption> all = profile_.client_options;
  if (options.asynchronous) {
    std::erase_if(all, [](const NamedOption& o) { return o.name == "asynchronous"; });
    all.push_back({"asynchronous", *options.asynchronous});
  }
  all.insert(all.end(), required.begin(), required.end());

  Result<PJRT_Client*> client = NewClient(api(), all);
  if (!client.ok() && all.size() > required.size()) {
    Log(LogLevel::kInfo,
        "the plugin refuses the client options of profile " + profile_.name + ": " + client.status().message());
    client = NewClient(api(), required);
    profile_.client_options.clear();
    profile_.asynchronous_false_helps = false;
    all = required;
  }
  profile_.synchronous = profile_.tested && std::any_of(all.begin(), all.end(), [](const NamedOption& o) {
                           return o.name == "asynchronous" && o.value == OptionValue(false);
                         });
  if (!client.ok()) return std::move(client).status();
  client_ = *client;
  return {};
}

Status Client::ReadNames() {
  Args<PJRT_Client_PlatformName_Args> name;
  name->client = client_;
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Client_PlatformName(name.get())));
  platform_name_.assign(name->platform_name, name->platform_name_size);
  Args<PJRT_Client_PlatformVersion_Args> version;
  version->client = client_;
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Client_PlatformVersion(version.get())));
  platform_version_.assign(version->platform_version, version->platform_version_size);
  return {};
}

Status Client::ReadDevices() {
  Args<PJRT_Client_AddressableDevices_Args> args;
  args->client = client_;
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Client_AddressableDevices(args.get())));
  for (size_t i = 0; i < args->num_addressable_devices; ++i) {
    Result<Device> device = Describe(api(), args->addressable_devices[i]);
    if (!device.ok()) return std::move(device).status();
    devices_.push_back(std::move(*device));
  }
  if (devices_.empty()) return RuntimeError("PJRT plugin " + plugin_->path() + ": the client has no devices");
  return {};
}

CompileOptions Client::DefaultCompileOptions() const {
  CompileOptions options;
  options.overrides = profile_.compile_overrides;
  options.portable = devices_.size() > 1;
  return options;
}

Result<LoadedExecutable> Client::Compile(std::string_view stablehlo_text, const CompileOptions& options) const {
  return Compile(stablehlo_text, options.Serialize());
}

Result<LoadedExecutable> Client::Compile(std::string_view stablehlo_text, const std::string& serialized_options) const {
  constexpr std::string_view kFormat = "mlir";
  Args<PJRT_Program> program;
  program->code = const_cast<char*>(stablehlo_text.data());  // the C API lacks a const
  program->code_size = stablehlo_text.size();
  program->format = kFormat.data();
  program->format_size = kFormat.size();
  Args<PJRT_Client_Compile_Args> args;
  args->client = client_;
  args->program = program.get();
  args->compile_options = serialized_options.data();
  args->compile_options_size = serialized_options.size();
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Client_Compile(args.get())));
  return LoadedExecutable::Wrap(api(), args->executable);
}

Result<LoadedExecutable> Client::Load(std::string_view serialized) const {
  Args<PJRT_Executable_DeserializeAndLoad_Args> args;
  args->client = client_;
  args->serialized_executable = serialized.data();
  args->serialized_executable_size = serialized.size();
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Executable_DeserializeAndLoad(args.get())));
  return LoadedExecutable::Wrap(api(), args->loaded_executable);
}

Result<Buffer> Client::BufferFromHost(const void* data, const TensorType& type, int device, HostBufferSemantics semantics,
                                      const int64_t* byte_strides, Event* done) const {
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) return NoSuchDevice(device, devices_.size());
  int64_t dims[kMaxRank];
  for (int i = 0; i < type.rank; ++i) dims[i] = type.dims[i].size();
  Args<PJRT_Client_BufferFromHostBuffer_Args> args;
  args->client = client_;
  args->data = data;
  args->type = ToPjrtType(type.dtype);
  args->dims = dims;
  args->num_dims = type.rank;
  args->byte_strides = byte_strides;
  args->num_byte_strides = byte_strides ? type.rank : 0;
  args->host_buffer_semantics = static_cast<PJRT_HostBufferSemantics>(semantics);
  args->device = devices_[device].device;
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Client_BufferFromHostBuffer(args.get())));
  Buffer buffer(api(), args->buffer);
  Event transferred(api(), args->done_with_host_buffer);
  if (transferred && semantics == HostBufferSemantics::kImmutableOnlyDuringCall) {
    // The copy is made before the call returns, so this does not really wait; it only makes sure.
    for (WaitOutcome outcome = WaitOutcome::kTimedOut; outcome == WaitOutcome::kTimedOut;) {
      Result<WaitOutcome> waited = transferred.WaitFor(std::chrono::seconds(1));
      if (!waited.ok()) return std::move(waited).status();
      outcome = *waited;
    }
  }
  if (done) *done = std::move(transferred);
  return buffer;
}

Result<Buffer> Client::CopyToDevice(const Buffer& buffer, int device) const {
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) return NoSuchDevice(device, devices_.size());
  Args<PJRT_Buffer_CopyToDevice_Args> args;
  args->buffer = buffer.get();
  args->dst_device = devices_[device].device;
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Buffer_CopyToDevice(args.get())));
  return Buffer(api(), args->dst_buffer);
}

Result<DeviceMemoryStats> Client::MemoryStatsOf(int device) const {
  if (device < 0 || static_cast<size_t>(device) >= devices_.size()) return NoSuchDevice(device, devices_.size());
  Args<PJRT_Device_MemoryStats_Args> args;
  args->device = devices_[device].device;
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Device_MemoryStats(args.get())));
  DeviceMemoryStats stats;
  stats.bytes_in_use = args->bytes_in_use;
  if (args->peak_bytes_in_use_is_set) stats.peak_bytes_in_use = args->peak_bytes_in_use;
  if (args->bytes_limit_is_set) stats.bytes_limit = args->bytes_limit;
  if (args->largest_free_block_bytes_is_set) stats.largest_free_block_bytes = args->largest_free_block_bytes;
  return stats;
}

}  // namespace tpu::pjrt
