// SPDX-License-Identifier: Apache-2.0
#include "aten/availability.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <unistd.h>

#include <string>

#include "base/settings.h"
#include "engine/runtime.h"
#include "pjrt/search.h"

namespace tpu::aten {
namespace {

// CUDA's own count starts the driver, so it is asked only where a GPU driver has left device files.
bool CudaSeesGpu() {
  static const bool sees = [] {
    for (const char* file : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvhost-gpu", "/dev/dxg", "/dev/kfd"}) {
      if (access(file, F_OK) == 0) return at::detail::getCUDAHooks().hasCUDA();
    }
    return false;
  }();
  return sees;
}

bool Decide() {
  const Settings& settings = GetSettings();
  const std::string& engine = *settings.engine.load(std::memory_order_acquire);
  if (engine == "off" || !engine::Runtime::EngineConfigured()) return false;
  if (engine != "cpu" && TpuOnBus()) return true;
  if (engine == "tpu") return !settings.plugin_path.load(std::memory_order_acquire)->empty();
  return !CudaSeesGpu();
}

}  // namespace

bool TpuOnBus() {
  static const bool on_bus = pjrt::TpuOnBus();
  return on_bus;
}

bool IsAvailable() noexcept {
  try {
    return Decide();
  } catch (...) {
    return false;
  }
}

}  // namespace tpu::aten
