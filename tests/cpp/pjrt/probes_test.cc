// SPDX-License-Identifier: Apache-2.0
#include "pjrt/probes.h"

#include "test_util.h"

namespace tpu::pjrt {
namespace {

using ProbesTest = PluginTest;

TEST_F(ProbesTest, TheProfileCuresWhatThePluginGetsWrong) {
  Client& client = TestClient();
  const int minor = client.plugin().minor_version();
  ASSERT_FALSE(client.profile().probes.empty());
  for (const std::string& name : client.profile().probes) {
    ProbeOutcome outcome = Take(RunProbe(client, name));
    EXPECT_TRUE(outcome.ok()) << name << ": " << outcome.detail;
    // The measured plugins; a cure that is no longer needed is worth knowing, too.
    if (name == "atan_vectorised") {
      EXPECT_EQ(outcome.defect, minor == 115) << outcome.detail;
    }
    if (name == "reduce_max_nan") {
      EXPECT_EQ(outcome.defect, minor == 115) << outcome.detail;
    }
    if (name == "sort_nan") {
      EXPECT_EQ(outcome.defect, minor == 81) << outcome.detail;
    }
  }
  EXPECT_EQ(RunProbe(client, "nonsense").status().kind(), ErrorKind::kValue);
}

}  // namespace
}  // namespace tpu::pjrt
