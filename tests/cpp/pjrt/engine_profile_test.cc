// SPDX-License-Identifier: Apache-2.0
#include "pjrt/engine_profile.h"

#include "test_util.h"

namespace tpu::pjrt {
namespace {

using EngineProfileTest = PluginTest;

std::vector<std::string> Names(const std::vector<NamedOption>& options) {
  std::vector<std::string> names;
  for (const NamedOption& option : options) names.push_back(option.name);
  return names;
}

TEST_F(EngineProfileTest, ByPlugin) {
  const Plugin& plugin = *TestPlugin().plugin;
  const int minor = plugin.minor_version();
  EngineProfile profile = ProfileFor(plugin, "");
  EXPECT_EQ(profile.name, "cpu-0." + std::to_string(minor));
  EXPECT_EQ(profile.kind, EngineKind::kCpu);
  EXPECT_TRUE(profile.tested) << "a CPU plugin that nobody has measured: ABI 0." << minor;
  EXPECT_TRUE(profile.host_addressable);
  EXPECT_EQ(profile.atan_needs_barrier, minor >= 115);
  EXPECT_EQ(profile.asynchronous_false_helps, minor >= 115);
  EXPECT_EQ(profile.sum_as_dot_width > 0, minor < 115);
  EXPECT_EQ(profile.barrier_between_passes, minor >= 115);
  EXPECT_TRUE(profile.DonationHelps(4095));
  EXPECT_FALSE(profile.DonationHelps(4096));
  EXPECT_FALSE(profile.DonationHelps(65536));
  EXPECT_FALSE(profile.DonationHelps(256 << 10));
  EXPECT_TRUE(profile.DonationHelps(1 << 20));
}

TEST_F(EngineProfileTest, OtherPlatformsGetTheirOwn) {
  const Plugin& plugin = *TestPlugin().plugin;
  EXPECT_EQ(ProfileFor(plugin, "tpu").kind, EngineKind::kTpu);
  EXPECT_FALSE(ProfileFor(plugin, "tpu").host_addressable);
  EXPECT_TRUE(ProfileFor(plugin, "tpu").DonationHelps(4096));
  EXPECT_EQ(ProfileFor(plugin, "cuda").name, "generic");
}

TEST_F(EngineProfileTest, KnownOptionsStay) {
  Client& client = TestClient();
  EngineProfile profile = client.profile();
  TPU_ASSERT_OK(ProbeOptions(client, &profile));
  std::vector<std::string> known{"xla_allow_excess_precision", "xla_cpu_enable_fast_min_max"};
  if (profile.name == "cpu-0.81") known.push_back("xla_cpu_use_xnnpack");
  EXPECT_EQ(Names(profile.compile_overrides), known);
}

TEST_F(EngineProfileTest, UnknownOptionsGo) {
  Client& client = TestClient();
  EngineProfile profile = client.profile();
  profile.compile_overrides = {{"xla_nonsense", true},
                               {"xla_cpu_enable_fast_min_max", false},
                               {"xla_nonsense_too", int64_t{1}},
                               {"xla_allow_excess_precision", false}};
  TPU_ASSERT_OK(ProbeOptions(client, &profile));
  EXPECT_EQ(Names(profile.compile_overrides),
            (std::vector<std::string>{"xla_cpu_enable_fast_min_max", "xla_allow_excess_precision"}));
}

// A known name with a value of the wrong kind is refused in other words.
TEST_F(EngineProfileTest, UnusableValuesGo) {
  Client& client = TestClient();
  EngineProfile profile = client.profile();
  profile.compile_overrides = {{"xla_allow_excess_precision", false}, {"xla_backend_optimization_level", std::string("much")}};
  TPU_ASSERT_OK(ProbeOptions(client, &profile));
  EXPECT_EQ(Names(profile.compile_overrides), (std::vector<std::string>{"xla_allow_excess_precision"}));
}

}  // namespace
}  // namespace tpu::pjrt
