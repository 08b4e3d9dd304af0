// SPDX-License-Identifier: Apache-2.0
// Compilation, executables and what is known about them.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "api.h"
#include "base/hash.h"
#include "compile_options.h"
#include "objects.h"
#include "op_table.h"
#include "parser.h"

namespace fake_pjrt {
namespace {

constexpr std::string_view kMagic = "FAKE_PJRT 1\n";

// The first operator that the interpreter cannot run where it stands, in program order; "" when there is none.
std::string FindUnexecuted(const Region& region, bool is_scalar = false) {
  for (const Op& op : region.ops) {
    std::string_view name = op.def->name;
    if (name == "func.return" || name == "stablehlo.return") continue;
    if (!op.def->eval) return op.def->name;
    if (is_scalar && !op.def->elementwise && !op.operands.empty()) return std::string(name) + " in a scalar region";
    bool is_control = name == "stablehlo.while" || name == "stablehlo.if" || name == "stablehlo.case";
    for (const Region& r : op.regions)
      if (std::string inner = FindUnexecuted(r, !is_control); !inner.empty()) return inner;
  }
  return "";
}

std::string Fingerprint(const std::string& text, const std::string& options) {
  tpu::Hasher hasher;
  for (const std::string* s : {&text, &options}) {
    hasher.Add(s->size());
    for (char c : *s) hasher.Add(static_cast<unsigned char>(c));
  }
  tpu::Fingerprint f = hasher.Finish();
  char hex[33];
  std::snprintf(hex, sizeof(hex), "%016llx%016llx", static_cast<unsigned long long>(f.hi),
                static_cast<unsigned long long>(f.lo));
  return hex;
}

void Describe(Program* p) {
  const Function& main = p->module->main();
  for (const Type& t : main.result_types) {
    p->output_types.push_back(ToPjrtType(t.dtype));
    p->output_ranks.push_back(t.rank());
    p->output_dims.insert(p->output_dims.end(), t.dims.begin(), t.dims.end());
    p->output_bytes += static_cast<int64_t>(t.bytes());
  }
  for (size_t i = 0; i < main.arg_types.size(); ++i) {
    const Attr* alias = FindAttr(main.arg_attrs[i], "tf.aliasing_output");
    p->alias.push_back(alias ? static_cast<int>(alias->number) : -1);
    int64_t bytes = static_cast<int64_t>(main.arg_types[i].bytes());
    p->argument_bytes += bytes;
    if (alias) p->alias_bytes += bytes;
  }
  // Every intermediate value once: an upper bound that tests can compute.
  for (const Type& t : main.value_types) p->temp_bytes += static_cast<int64_t>(t.bytes());
  p->temp_bytes = std::max<int64_t>(0, p->temp_bytes - p->argument_bytes - p->output_bytes);
  for (const auto& f : p->module->functions)
    if (p->not_executed.empty()) p->not_executed = FindUnexecuted(f->body);
}

Error Load(PJRT_Client* client, std::shared_ptr<const Program> program, PJRT_LoadedExecutable** loaded) {
  auto executable = std::make_unique<PJRT_LoadedExecutable>();
  executable->client = client;
  for (int id : program->device_ids) {
    if (id < 0 || id >= static_cast<int>(client->devices.size()))
      return Invalid("the device assignment names device " + std::to_string(id));
    executable->devices.push_back(client->devices[id]);
  }
  executable->program = std::move(program);
  *loaded = executable.release();
  return {};
}

}  // namespace

Error BuildProgram(std::string text, std::string options, int num_devices, std::shared_ptr<const Program>* program) {
  CompileOptions o;
  if (Error e = ReadCompileOptions(options, &o); !e.ok()) return e;
  auto p = std::make_shared<Program>();
  if (Error e = ParseModule(text, &p->module); !e.ok()) return e;
  p->portable = o.portable;
  if (o.num_replicas * o.num_partitions > num_devices)
    return Invalid("the program needs " + std::to_string(o.num_replicas * o.num_partitions) + " devices, there are " +
                   std::to_string(num_devices));
  p->num_replicas = static_cast<int>(o.num_replicas);
  p->num_partitions = static_cast<int>(o.num_partitions);
  size_t total = static_cast<size_t>(o.num_replicas * o.num_partitions);
  if (o.portable && total != 1) return Invalid("a portable executable runs on one device");
  if (!o.device_ids.empty() && o.device_ids.size() != total) return Invalid("the device assignment has the wrong size");
  for (size_t i = 0; i < total && !o.portable; ++i)
    p->device_ids.push_back(o.device_ids.empty() ? static_cast<int>(i) : static_cast<int>(o.device_ids[i]));
  p->fingerprint = Fingerprint(text, options);
  p->text = std::move(text);
  p->options = std::move(options);
  Describe(p.get());
  *program = std::move(p);
  return {};
}

Error Client_Compile(PJRT_Client_Compile_Args* args) {
  const PJRT_Program& program = *args->program;
  if (Error e = CheckStructSize("PJRT_Program", PJRT_Program_STRUCT_SIZE, program.struct_size); !e.ok()) return e;
  std::string_view format(program.format, program.format_size);
  if (format != "mlir") return Invalid("Unknown program format '" + std::string(format) + "'.");
  std::string text(program.code, program.code_size);
  ControlState::Get().SetLastProgram(text);
  std::shared_ptr<const Program> built;
  std::string options(args->compile_options, args->compile_options_size);
  if (Error e = BuildProgram(std::move(text), std::move(options), static_cast<int>(args->client->devices.size()), &built);
      !e.ok())
    return e;
  return Load(args->client, std::move(built), &args->executable);
}

// ---- loaded executables

Error LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args* args) {
  delete args->executable;
  return {};
}

Error LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args* args) {
  args->executable = new PJRT_Executable{args->loaded_executable->program};
  return {};
}

Error LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args* args) {
  args->addressable_devices = args->executable->devices.data();
  args->num_addressable_devices = args->executable->devices.size();
  return {};
}

Error LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args* args) {
  args->executable->deleted = true;
  return {};
}

Error LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args* args) {
  args->is_deleted = args->executable->deleted;
  return {};
}

Error LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args* args) {
  args->executable_fingerprint = args->executable->program->fingerprint.data();
  args->executable_fingerprint_size = args->executable->program->fingerprint.size();
  return {};
}

// ---- executables

Error Executable_Destroy(PJRT_Executable_Destroy_Args* args) {
  delete args->executable;
  return {};
}

Error Executable_Name(PJRT_Executable_Name_Args* args) {
  args->executable_name = args->executable->program->module->name.data();
  args->executable_name_size = args->executable->program->module->name.size();
  return {};
}

Error Executable_NumReplicas(PJRT_Executable_NumReplicas_Args* args) {
  args->num_replicas = static_cast<size_t>(args->executable->program->num_replicas);
  return {};
}

Error Executable_NumPartitions(PJRT_Executable_NumPartitions_Args* args) {
  args->num_partitions = static_cast<size_t>(args->executable->program->num_partitions);
  return {};
}

Error Executable_NumOutputs(PJRT_Executable_NumOutputs_Args* args) {
  args->num_outputs = args->executable->program->output_types.size();
  return {};
}

Error Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args* args) {
  args->size_in_bytes = static_cast<int64_t>(args->executable->program->text.size());
  return {};
}

Error Executable_Fingerprint(PJRT_Executable_Fingerprint_Args* args) {
  args->executable_fingerprint = args->executable->program->fingerprint.data();
  args->executable_fingerprint_size = args->executable->program->fingerprint.size();
  return {};
}

Error Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args* args) {
  args->output_types = const_cast<PJRT_Buffer_Type*>(args->executable->program->output_types.data());
  args->num_output_types = args->executable->program->output_types.size();
  return {};
}

Error Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args* args) {
  const Program& p = *args->executable->program;
  args->num_outputs = p.output_ranks.size();
  args->dims = p.output_dims.data();
  args->dim_sizes = p.output_ranks.data();
  return {};
}

Error Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args* args) {
  static constexpr size_t kMost = 4096;
  static const auto* kinds = new std::vector<const char*>(kMost, "device");
  static const auto* sizes = new std::vector<size_t>(kMost, 6);
  args->num_outputs = args->executable->program->output_types.size();
  if (args->num_outputs > kMost) return {kUnimplemented, "too many outputs"};
  args->memory_kinds = kinds->data();
  args->memory_kind_sizes = sizes->data();
  return {};
}

Error Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args* args) {
  const std::string& text = args->executable->program->text;
  PJRT_Program* program = args->program;
  if (Error e = CheckStructSize("PJRT_Program", PJRT_Program_STRUCT_SIZE, program->struct_size); !e.ok()) return e;
  program->format = "mlir";
  program->format_size = 4;
  if (program->code) {
    if (program->code_size < text.size()) return Invalid("code_size is too small");
    std::memcpy(program->code, text.data(), text.size());
  }
  program->code_size = text.size();
  return {};
}

Error Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  const Program& p = *args->executable->program;
  args->generated_code_size_in_bytes = static_cast<int64_t>(p.text.size());
  args->argument_size_in_bytes = p.argument_bytes;
  args->output_size_in_bytes = p.output_bytes;
  args->alias_size_in_bytes = p.alias_bytes;
  args->temp_size_in_bytes = p.temp_bytes;
  args->host_generated_code_size_in_bytes = args->host_argument_size_in_bytes = args->host_output_size_in_bytes = 0;
  args->host_alias_size_in_bytes = args->host_temp_size_in_bytes = 0;
  args->peak_memory_in_bytes = p.argument_bytes + p.output_bytes - p.alias_bytes + p.temp_bytes;
  return {};
}

// ---- serialization: magic, size of the options, options, text

Error Executable_Serialize(PJRT_Executable_Serialize_Args* args) {
  const Program& p = *args->executable->program;
  auto serialized = std::make_unique<PJRT_SerializedExecutable>();
  serialized->bytes =
      std::string(kMagic) + std::to_string(p.options.size()) + "\n" + std::to_string(p.text.size()) + "\n" + p.options + p.text;
  args->serialized_bytes = serialized->bytes.data();
  args->serialized_bytes_size = serialized->bytes.size();
  args->serialized_executable = serialized.release();
  args->serialized_executable_deleter = [](PJRT_SerializedExecutable* s) { delete s; };
  return {};
}

Error Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args* args) {
  std::string_view bytes(args->serialized_executable, args->serialized_executable_size);
  Error damaged = Invalid("cannot deserialize the executable");
  if (!bytes.starts_with(kMagic)) return damaged;
  bytes.remove_prefix(kMagic.size());
  size_t sizes[2];
  for (size_t& size : sizes) {
    size_t end = bytes.find('\n');
    if (end == 0 || end > 18) return damaged;
    size = 0;
    for (char c : bytes.substr(0, end)) {
      if (c < '0' || c > '9') return damaged;
      size = size * 10 + static_cast<size_t>(c - '0');
    }
    bytes.remove_prefix(end + 1);
  }
  if (sizes[0] > bytes.size() || bytes.size() - sizes[0] != sizes[1]) return damaged;
  std::string options(bytes.substr(0, sizes[0])), text(bytes.substr(sizes[0]));
  if (args->overridden_serialized_compile_options_size > 0)
    options.assign(args->overridden_serialized_compile_options, args->overridden_serialized_compile_options_size);
  std::shared_ptr<const Program> built;
  if (Error e = BuildProgram(std::move(text), std::move(options), static_cast<int>(args->client->devices.size()), &built);
      !e.ok())
    return e;
  return Load(args->client, std::move(built), &args->loaded_executable);
}

}  // namespace fake_pjrt
