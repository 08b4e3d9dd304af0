// SPDX-License-Identifier: Apache-2.0
// Which files may be loaded as plugins, and which ABI versions are accepted.
#pragma once
#include <string>

#include "base/status.h"
#include "pjrt/api.h"

namespace tpu::pjrt {

// The real path of the plugin file at `path`, after the checks described at Plugin::Load.
Result<std::string> CheckPluginFile(const std::string& path);

// Fails when the table is of another major version, older than kMinAbiMinor, or too short. `path` is for the message.
Status CheckPluginAbi(const std::string& path, const PJRT_Api* api);

}  // namespace tpu::pjrt
