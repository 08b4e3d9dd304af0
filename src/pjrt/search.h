// SPDX-License-Identifier: Apache-2.0
// Which plugin file answers to "tpu".
#pragma once
#include <string>
#include <vector>

#include "base/status.h"

namespace tpu::pjrt {

struct SearchRequest {
  std::string engine = "auto";              // setting engine: auto | tpu | cpu | off
  std::string plugin_path;                  // setting plugin_path; "" when unset
  std::string cpu_plugin = "xla-cpu-pjrt";  // setting cpu_plugin: the package that holds the CPU engine
  std::vector<std::string> folders;         // where packages are installed (sys.path); relative ones are skipped
};

struct PluginChoice {
  std::string path;
  std::string reason;  // one line, for doctor and the log
};

// Explicit path, else libtpu (TPU_LIBRARY_PATH, then the folders) when a TPU is on the bus or engine is "tpu", else the
// CPU plugin. Only looks at files: loads nothing. Errors say what to install or set.
Result<PluginChoice> FindPlugin(const SearchRequest& request);

// True when a TPU chip is on the PCI bus. Reads a few small files; starts no runtime.
bool TpuOnBus(const std::string& pci_folder = "/sys/bus/pci/devices");

}  // namespace tpu::pjrt
