// SPDX-License-Identifier: Apache-2.0
// Which plugin the tests of a room run on.
#pragma once
#include <string>

#include "base/settings.h"

namespace tpu {

// The file named by TORCH_TPU_TEST_PLUGIN, else the one that the build found.
inline std::string TestPluginPath() {
  std::string path = ForeignEnv("TORCH_TPU_TEST_PLUGIN");
#ifdef TPU_XLA_CPU_PJRT_PATH
  if (path.empty()) path = TPU_XLA_CPU_PJRT_PATH;
#endif
  return path;
}

}  // namespace tpu
