// SPDX-License-Identifier: Apache-2.0
// Checks of what plugins are known to get wrong, for `doctor`: is the defect there, and does the profile cure it?
#pragma once
#include <string>
#include <string_view>

#include "base/status.h"
#include "pjrt/client.h"

namespace tpu::pjrt {

struct ProbeOutcome {
  bool defect = false;  // the plugin gets it wrong
  bool cured = false;   // the client's profile avoids it
  std::string detail;   // one line

  bool ok() const { return !defect || cured; }
};

// Runs one of EngineProfile::probes on the first device: a compile or two (20 to 60 ms). The status is an error when
// the probe could not be run at all.
Result<ProbeOutcome> RunProbe(const Client& client, std::string_view name);

}  // namespace tpu::pjrt
