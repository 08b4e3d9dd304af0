// SPDX-License-Identifier: Apache-2.0
#include "pjrt/executable.h"

#include "pjrt/dtype.h"
#include "pjrt/errors.h"

namespace tpu::pjrt {
namespace {

Result<Handle<PJRT_Executable>> ExecutableOf(const PJRT_Api* api, PJRT_LoadedExecutable* loaded) {
  Args<PJRT_LoadedExecutable_GetExecutable_Args> args;
  args->loaded_executable = loaded;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_LoadedExecutable_GetExecutable(args.get())));
  return Handle<PJRT_Executable>(api, args->executable);
}

Status ReadOutputTypes(const PJRT_Api* api, PJRT_Executable* executable, std::vector<TensorType>* types) {
  Args<PJRT_Executable_NumOutputs_Args> count;
  count->executable = executable;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_Executable_NumOutputs(count.get())));
  types->resize(count->num_outputs);
  if (types->empty()) return {};

  Args<PJRT_Executable_OutputElementTypes_Args> elements;
  elements->executable = executable;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_Executable_OutputElementTypes(elements.get())));
  Args<PJRT_Executable_OutputDimensions_Args> dims;
  dims->executable = executable;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_Executable_OutputDimensions(dims.get())));
  if (elements->num_output_types != types->size() || dims->num_outputs != types->size())
    return RuntimeError("the plugin describes another number of outputs than the program has");

  const int64_t* next = dims->dims;
  for (size_t i = 0; i < types->size(); ++i) {
    TensorType& type = (*types)[i];
    const size_t rank = dims->dim_sizes[i];
    if (rank <= kMaxRank) {
      type.dtype = FromPjrtType(EnumNumber(elements->output_types[i]));
      for (size_t d = 0; d < rank; ++d) type.Append(next[d]);
    }
    next += rank;
  }
  return {};
}

MemoryStats ReadMemoryStats(const PJRT_Api* api, PJRT_Executable* executable) {
  MemoryStats stats;
  if (!HasSlot(api, &PJRT_Api::PJRT_Executable_GetCompiledMemoryStats)) return stats;
  Args<PJRT_Executable_GetCompiledMemoryStats_Args> args;
  args->executable = executable;
  if (!ToStatus(api, api->PJRT_Executable_GetCompiledMemoryStats(args.get())).ok()) return stats;
  stats.argument_bytes = args->argument_size_in_bytes;
  stats.output_bytes = args->output_size_in_bytes;
  stats.temp_bytes = args->temp_size_in_bytes;
  stats.alias_bytes = args->alias_size_in_bytes;
  stats.code_bytes = args->generated_code_size_in_bytes;
  return stats;
}

Status ReadDevices(const PJRT_Api* api, PJRT_LoadedExecutable* executable, std::vector<PJRT_Device*>* devices) {
  Args<PJRT_LoadedExecutable_AddressableDevices_Args> args;
  args->executable = executable;
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_LoadedExecutable_AddressableDevices(args.get())));
  devices->assign(args->addressable_devices, args->addressable_devices + args->num_addressable_devices);
  return {};
}

}  // namespace

Result<LoadedExecutable> LoadedExecutable::Wrap(const PJRT_Api* api, PJRT_LoadedExecutable* executable) {
  LoadedExecutable loaded;
  loaded.handle_ = Handle<PJRT_LoadedExecutable>(api, executable);
  Result<Handle<PJRT_Executable>> description = ExecutableOf(api, executable);
  if (!description.ok()) return std::move(description).status();
  TPU_RETURN_IF_ERROR(ReadOutputTypes(api, description->get(), &loaded.output_types_));
  TPU_RETURN_IF_ERROR(ReadDevices(api, executable, &loaded.devices_));
  loaded.memory_stats_ = ReadMemoryStats(api, description->get());
  return loaded;
}

Status LoadedExecutable::Execute(const ExecuteCall& call) const {
  Args<PJRT_ExecuteOptions> options;
  options->non_donatable_input_indices = call.non_donatable;
  options->num_non_donatable_input_indices = call.num_non_donatable;
  Args<PJRT_LoadedExecutable_Execute_Args> args;
  args->executable = handle_.get();
  args->options = options.get();
  args->argument_lists = call.argument_lists;
  args->num_devices = call.num_devices;
  args->num_args = call.num_args;
  args->output_lists = call.output_lists;
  args->execute_device = call.device;
  return ToStatus(handle_.api(), handle_.api()->PJRT_LoadedExecutable_Execute(args.get()));
}

Result<std::string> LoadedExecutable::Serialize() const {
  const PJRT_Api* api = handle_.api();
  Result<Handle<PJRT_Executable>> executable = ExecutableOf(api, handle_.get());
  if (!executable.ok()) return std::move(executable).status();
  Args<PJRT_Executable_Serialize_Args> args;
  args->executable = executable->get();
  TPU_RETURN_IF_ERROR(ToStatus(api, api->PJRT_Executable_Serialize(args.get())));
  std::string bytes(args->serialized_bytes, args->serialized_bytes_size);
  args->serialized_executable_deleter(args->serialized_executable);
  return bytes;
}

}  // namespace tpu::pjrt
