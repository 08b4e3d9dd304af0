// SPDX-License-Identifier: Apache-2.0
// Plugin, client, devices, memories.
#include <cstring>
#include <string_view>

#include "api.h"
#include "objects.h"

namespace fake_pjrt {
namespace {

constexpr std::string_view kPlatformName = "cpu", kPlatformVersion = "fake", kDeviceKind = "fake", kMemoryKind = "device";

void Give(std::string_view s, const char** data, size_t* size) {
  *data = s.data();
  *size = s.size();
}

PJRT_NamedValue IntList(std::string_view name, const int64_t* values, size_t count) {
  PJRT_NamedValue v{};
  v.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  v.name = name.data();
  v.name_size = name.size();
  v.type = PJRT_NamedValue_kInt64List;
  v.int64_array_value = values;
  v.value_size = count;
  return v;
}

}  // namespace

Error Plugin_Initialize(PJRT_Plugin_Initialize_Args*) { return {}; }

Error Plugin_Attributes(PJRT_Plugin_Attributes_Args* args) {
  static const int64_t current[] = {1, 13, 0}, minimum[] = {0, 9, 0};
  static const std::vector<PJRT_NamedValue> attributes = [] {
    PJRT_NamedValue xla = IntList("xla_version", nullptr, 1);
    xla.type = PJRT_NamedValue_kInt64;
    xla.int64_value = 2;
    return std::vector{xla, IntList("stablehlo_current_version", current, 3), IntList("stablehlo_minimum_version", minimum, 3)};
  }();
  args->attributes = attributes.data();
  args->num_attributes = attributes.size();
  return {};
}

// ---- client

Error Client_Create(PJRT_Client_Create_Args* args) {
  int64_t count = 4;  // as XLA's CPU plugin
  bool asynchronous = false;
  for (size_t i = 0; i < args->num_options; ++i) {
    const PJRT_NamedValue& option = args->create_options[i];
    if (Error e = CheckStructSize("PJRT_NamedValue", PJRT_NamedValue_STRUCT_SIZE, option.struct_size); !e.ok()) return e;
    std::string_view name(option.name, option.name_size);
    if (name == "asynchronous" && option.type == PJRT_NamedValue_kBool) asynchronous = option.bool_value;
    if (name != "cpu_device_count") continue;
    if (option.type != PJRT_NamedValue_kInt64) return Invalid("cpu_device_count must be an int64");
    count = option.int64_value;
  }
  if (count < 1 || count > 1024) return Invalid("cpu_device_count must be from 1 to 1024");
  auto client = std::make_unique<PJRT_Client>();
  client->asynchronous = asynchronous;
  for (int id = 0; id < count; ++id) {
    auto device = std::make_unique<PJRT_Device>();
    device->description = {id, "fake:" + std::to_string(id)};
    device->memory.id = id;
    device->memory.text = "device memory of fake:" + std::to_string(id);
    device->memory.device = device.get();
    device->client = client.get();
    client->devices.push_back(device.get());
    client->memories.push_back(&device->memory);
    client->owned.push_back(std::move(device));
  }
  args->client = client.release();
  return {};
}

Error Client_Destroy(PJRT_Client_Destroy_Args* args) {
  delete args->client;
  return {};
}

Error Client_PlatformName(PJRT_Client_PlatformName_Args* args) {
  Give(kPlatformName, &args->platform_name, &args->platform_name_size);
  return {};
}

Error Client_ProcessIndex(PJRT_Client_ProcessIndex_Args* args) {
  args->process_index = 0;
  return {};
}

Error Client_PlatformVersion(PJRT_Client_PlatformVersion_Args* args) {
  Give(kPlatformVersion, &args->platform_version, &args->platform_version_size);
  return {};
}

Error Client_Devices(PJRT_Client_Devices_Args* args) {
  args->devices = args->client->devices.data();
  args->num_devices = args->client->devices.size();
  return {};
}

Error Client_AddressableDevices(PJRT_Client_AddressableDevices_Args* args) {
  args->addressable_devices = args->client->devices.data();
  args->num_addressable_devices = args->client->devices.size();
  return {};
}

namespace {
Error Lookup(PJRT_Client* client, int id, PJRT_Device** device) {
  if (id < 0 || id >= static_cast<int>(client->devices.size()))
    return Invalid("No matching device found for device_id " + std::to_string(id));
  *device = client->devices[id];
  return {};
}
}  // namespace

Error Client_LookupDevice(PJRT_Client_LookupDevice_Args* args) { return Lookup(args->client, args->id, &args->device); }

Error Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args* args) {
  return Lookup(args->client, args->local_hardware_id, &args->addressable_device);
}

Error Client_AddressableMemories(PJRT_Client_AddressableMemories_Args* args) {
  args->addressable_memories = args->client->memories.data();
  args->num_addressable_memories = args->client->memories.size();
  return {};
}

Error Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args* args) {
  int need = args->num_replicas * args->num_partitions;
  if (need < 1 || need > static_cast<int>(args->client->devices.size()))
    return Invalid("not enough devices for " + std::to_string(need) + " programs");
  if (args->default_assignment_size < static_cast<size_t>(need)) return Invalid("default_assignment_size is too small");
  for (int i = 0; i < need; ++i) args->default_assignment[i] = i;
  return {};
}

// ---- devices

Error DeviceDescription_Id(PJRT_DeviceDescription_Id_Args* args) {
  args->id = args->device_description->id;
  return {};
}

Error DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args* args) {
  args->process_index = 0;
  return {};
}

Error DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args* args) {
  args->num_attributes = 0;
  args->attributes = nullptr;
  return {};
}

Error DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args* args) {
  Give(kDeviceKind, &args->device_kind, &args->device_kind_size);
  return {};
}

Error DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args* args) {
  Give(args->device_description->text, &args->debug_string, &args->debug_string_size);
  return {};
}

Error DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args* args) {
  Give(args->device_description->text, &args->to_string, &args->to_string_size);
  return {};
}

Error Device_GetDescription(PJRT_Device_GetDescription_Args* args) {
  args->device_description = &args->device->description;
  return {};
}

Error Device_IsAddressable(PJRT_Device_IsAddressable_Args* args) {
  args->is_addressable = true;
  return {};
}

Error Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args* args) {
  args->local_hardware_id = args->device->description.id;
  return {};
}

Error Device_AddressableMemories(PJRT_Device_AddressableMemories_Args* args) {
  args->memories = args->device->memory_list;
  args->num_memories = 1;
  return {};
}

Error Device_DefaultMemory(PJRT_Device_DefaultMemory_Args* args) {
  args->memory = &args->device->memory;
  return {};
}

Error Device_MemoryStats(PJRT_Device_MemoryStats_Args* args) {
  ControlState& state = ControlState::Get();
  // As on XLA:CPU, unless a test has set a limit.
  if (state.memory_limit == 0) return {kUnimplemented, "PJRT_Device_MemoryStats is not implemented without a memory limit"};
  args->bytes_in_use = state.live_bytes();  // of all devices
  args->bytes_limit = state.memory_limit;
  args->bytes_limit_is_set = true;
  args->peak_bytes_in_use_is_set = args->num_allocs_is_set = args->largest_alloc_size_is_set = args->bytes_reserved_is_set =
      false;
  args->peak_bytes_reserved_is_set = args->bytes_reservable_limit_is_set = args->largest_free_block_bytes_is_set = false;
  args->pool_bytes_is_set = args->peak_pool_bytes_is_set = false;
  return {};
}

// ---- memories

Error Memory_Id(PJRT_Memory_Id_Args* args) {
  args->id = args->memory->id;
  return {};
}

Error Memory_Kind(PJRT_Memory_Kind_Args* args) {
  Give(kMemoryKind, &args->kind, &args->kind_size);
  return {};
}

Error Memory_Kind_Id(PJRT_Memory_Kind_Id_Args* args) {
  args->kind_id = 0;
  return {};
}

Error Memory_DebugString(PJRT_Memory_DebugString_Args* args) {
  Give(args->memory->text, &args->debug_string, &args->debug_string_size);
  return {};
}

Error Memory_ToString(PJRT_Memory_ToString_Args* args) {
  Give(args->memory->text, &args->to_string, &args->to_string_size);
  return {};
}

Error Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args* args) {
  args->devices = &args->memory->device;
  args->num_devices = 1;
  return {};
}

}  // namespace fake_pjrt
