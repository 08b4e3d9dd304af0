// SPDX-License-Identifier: Apache-2.0
#include "pjrt/plugin.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <utility>

#include "base/settings.h"
#include "pjrt/errors.h"
#include "pjrt/plugin_checks.h"
#include "pjrt/search.h"

namespace tpu::pjrt {
namespace {

using GetApiFunction = const PJRT_Api* (*)();

bool IsLibtpu(const std::string& path) { return path.find("libtpu", path.rfind('/') + 1) != std::string::npos; }

void SetEnvironmentDefaults(const std::string& path) {
  // Errors too: they all come back as Status, and some plugins log one at every load of an executable.
  SetForeignEnvDefault("TF_CPP_MIN_LOG_LEVEL", "3");
  if (!IsLibtpu(path)) return;
  SetForeignEnvDefault("TPU_MIN_LOG_LEVEL", "3");
  SetForeignEnvDefault("TPU_STDERR_LOG_LEVEL", "3");
  SetForeignEnvDefault("TPU_LOG_DIR", "disabled");
  // With a chip the metadata server and the lock are needed; without one the first has no answer and hangs.
  if (TpuOnBus()) return;
  SetForeignEnvDefault("TPU_SKIP_MDS_QUERY", "1");
  SetForeignEnvDefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1");
}

std::string Text(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return std::string(value.string_value, value.value_size);
    case PJRT_NamedValue_kInt64:
      return std::to_string(value.int64_value);
    case PJRT_NamedValue_kInt64List: {
      std::string text;
      for (size_t i = 0; i < value.value_size; ++i) text += (i ? "." : "") + std::to_string(value.int64_array_value[i]);
      return text;
    }
    case PJRT_NamedValue_kFloat:
      return std::to_string(value.float_value);
    case PJRT_NamedValue_kBool:
      return value.bool_value ? "true" : "false";
  }
  return "";
}

Status NotAPlugin(const std::string& path, const char* why) {
  return RuntimeError("PJRT plugin " + path + ": is not a PJRT plugin (" + why +
                      "). Give the path of a library that exports GetPjrtApi, for example from: pip install xla-cpu-pjrt");
}

}  // namespace

Result<const Plugin*> Plugin::Load(const std::string& path) {
  static std::mutex mutex;
  static auto* loaded = new std::map<std::string, const Plugin*>;
  std::lock_guard<std::mutex> lock(mutex);
  Result<std::string> real_path = CheckPluginFile(path);
  if (!real_path.ok()) return std::move(real_path).status();
  const Plugin*& entry = (*loaded)[*real_path];
  if (entry) return entry;
  Result<const Plugin*> plugin = Open(*real_path);
  if (plugin.ok()) entry = *plugin;
  return plugin;
}

Result<const Plugin*> Plugin::Open(const std::string& real_path) {
  SetEnvironmentDefaults(real_path);
  void* library = dlopen(real_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return NotAPlugin(real_path, dlerror());
  auto get_api = reinterpret_cast<GetApiFunction>(dlsym(library, "GetPjrtApi"));
  if (!get_api) {
    dlclose(library);
    return NotAPlugin(real_path, "it has no symbol GetPjrtApi");
  }
  const PJRT_Api* api = get_api();
  if (!api) return NotAPlugin(real_path, "GetPjrtApi returned null");
  TPU_RETURN_IF_ERROR(CheckPluginAbi(real_path, api));
  auto* plugin = new Plugin(real_path, api);
  if (Status status = plugin->Initialize(); !status.ok()) {
    delete plugin;
    return std::move(status).WithContext("PJRT plugin " + real_path + ": initialisation failed");
  }
  return plugin;
}

Status Plugin::Initialize() {
  Args<PJRT_Plugin_Initialize_Args> initialize;
  TPU_RETURN_IF_ERROR(ToStatus(api_, api_->PJRT_Plugin_Initialize(initialize.get())));

  Args<PJRT_Plugin_Attributes_Args> attributes;
  TPU_RETURN_IF_ERROR(ToStatus(api_, api_->PJRT_Plugin_Attributes(attributes.get())));
  for (size_t i = 0; i < attributes->num_attributes; ++i) {
    const PJRT_NamedValue& value = attributes->attributes[i];
    attributes_.push_back({std::string(value.name, value.name_size), Text(value)});
  }
  for (const PJRT_Extension_Base* e = api_->extension_start; e; e = e->next) extensions_.push_back(EnumNumber(e->type));
  return {};
}

std::string Plugin::attribute(std::string_view name) const {
  for (const Attribute& a : attributes_) {
    if (a.name == name) return a.value;
  }
  return "";
}

const PJRT_Extension_Base* Plugin::extension(int type) const {
  for (const PJRT_Extension_Base* e = api_->extension_start; e; e = e->next) {
    if (EnumNumber(e->type) == type) return e;
  }
  return nullptr;
}

}  // namespace tpu::pjrt
