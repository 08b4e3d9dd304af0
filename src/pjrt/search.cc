// SPDX-License-Identifier: Apache-2.0
#include "pjrt/search.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "base/log.h"
#include "base/settings.h"

namespace tpu::pjrt {
namespace {

// Google's vendor id also covers network cards and disks of its cloud, so the device decides.
constexpr long kGoogleVendor = 0x1ae0;
constexpr long kTpuDevices[] = {0x0027, 0x005e, 0x0062, 0x0063, 0x006f, 0x0076};  // v2/v3, v4, v5p, v5e, v6e, 7x

struct CpuPackage {
  const char* package;
  const char* file;
};
constexpr CpuPackage kCpuPackages[] = {
    {"xla-cpu-pjrt", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
    {"fastatomstruct-xla-cpu", "fastatomstruct_xla_cpu/libpjrt_cpu.so"},
    {"lammps-jax-pjrt-cpu", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"},
};
constexpr char kLibtpuFile[] = "libtpu/libtpu.so";

long ReadHex(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  return in >> text ? std::strtol(text.c_str(), nullptr, 16) : -1;
}

bool FileExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// "" when no folder holds it. A relative folder would let the working directory decide what code is loaded.
std::string FindIn(const std::vector<std::string>& folders, const std::string& file) {
  for (const std::string& folder : folders) {
    if (folder.empty() || folder[0] != '/') continue;
    std::string path = folder + "/" + file;
    if (FileExists(path)) return path;
  }
  return "";
}

std::string FindLibtpu(const std::vector<std::string>& folders) {
  std::string path = ForeignEnv("TPU_LIBRARY_PATH");
  return !path.empty() ? path : FindIn(folders, kLibtpuFile);
}

Result<PluginChoice> FindCpuPlugin(const SearchRequest& request) {
  const char* file = nullptr;
  std::string others;
  for (const CpuPackage& p : kCpuPackages) {
    if (request.cpu_plugin == p.package) {
      file = p.file;
    } else if (!FindIn(request.folders, p.file).empty()) {
      others += std::string(others.empty() ? "" : " or ") + "TORCH_TPU_CPU_PLUGIN=" + p.package;
    }
  }
  if (!file)
    return Status(ErrorKind::kValue, "setting cpu_plugin: no CPU plugin is named \"" + request.cpu_plugin +
                                         "\"; use xla-cpu-pjrt, fastatomstruct-xla-cpu or lammps-jax-pjrt-cpu");
  std::string path = FindIn(request.folders, file);
  if (path.empty())
    return RuntimeError("no engine for device \"tpu\": there is no TPU and the CPU plugin is not installed. Run: pip install " +
                        request.cpu_plugin + (others.empty() ? "" : ", or use an installed one: " + others));
  return PluginChoice{path, "CPU plugin " + request.cpu_plugin};
}

}  // namespace

bool TpuOnBus(const std::string& pci_folder) {
  DIR* folder = opendir(pci_folder.c_str());
  if (!folder) return false;
  bool found = false;
  while (dirent* entry = found ? nullptr : readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    const std::string device = pci_folder + "/" + entry->d_name;
    if (ReadHex(device + "/vendor") != kGoogleVendor) continue;
    const long id = ReadHex(device + "/device");
    for (long tpu : kTpuDevices) found = found || id == tpu;
  }
  closedir(folder);
  return found;
}

Result<PluginChoice> FindPlugin(const SearchRequest& request) {
  if (request.engine == "off")
    return RuntimeError(
        "device \"tpu\" is switched off by the setting engine=off (TORCH_TPU_ENGINE). Set it to auto, tpu or cpu.");
  if (!request.plugin_path.empty()) return PluginChoice{request.plugin_path, "setting plugin_path"};
  if (request.engine == "cpu") return FindCpuPlugin(request);

  const bool on_bus = TpuOnBus();
  if (request.engine != "tpu" && !on_bus) return FindCpuPlugin(request);
  std::string libtpu = FindLibtpu(request.folders);
  if (!libtpu.empty()) return PluginChoice{libtpu, on_bus ? "a TPU is on the bus" : "setting engine=tpu"};
  if (request.engine == "tpu")
    return RuntimeError("setting engine=tpu, but libtpu is not installed. Run: pip install libtpu, or set TPU_LIBRARY_PATH.");
  Log(LogLevel::kWarning, "a TPU is on the bus, but libtpu is not installed (pip install libtpu): using the CPU engine");
  return FindCpuPlugin(request);
}

}  // namespace tpu::pjrt
