// SPDX-License-Identifier: Apache-2.0
#include "pjrt/compile_options.h"

#include "test_util.h"

namespace tpu::pjrt {
namespace {

std::string Hex(const std::string& bytes) {
  std::string out;
  char pair[3];
  for (unsigned char c : bytes) {
    std::snprintf(pair, sizeof(pair), "%02x", c);
    out += pair;
  }
  return out;
}

TEST(CompileOptionsTest, Portable) {
  EXPECT_EQ(Hex(CompileOptions().Serialize()),
            "1a0f"
            "08ffffffffffffffffff01"
            "20012801"
            "2001");
}

TEST(CompileOptionsTest, AssignmentIsGroupedByPartition) {
  CompileOptions options;
  options.portable = false;
  options.num_replicas = 2;
  options.num_partitions = 2;
  options.device_assignment = {0, 1, 2, 200};
  options.use_spmd_partitioning = true;
  options.use_shardy_partitioner = true;
  options.exec_time_optimization_effort = -1;
  EXPECT_EQ(Hex(options.Serialize()),
            "1a2d"
            "08ffffffffffffffffff01"
            "20022802"
            "3001"
            "4a11"
            "08021002"
            "1a040a020002"
            "1a050a0301c801"
            "980101"
            "a501000080bf");
}

TEST(CompileOptionsTest, OverridesOfEveryKind) {
  CompileOptions options;
  options.overrides = {{"s", std::string("v")}, {"b", false}, {"i", int64_t{-1}}, {"d", 0.5}};
  EXPECT_EQ(Hex(options.Serialize()).substr(2 * 19),
            "3a080a017312030a0176"
            "3a070a016212021000"
            "3a100a0169120b18ffffffffffffffffff01"
            "3a0e0a0164120921000000000000e03f");
}

using CompileOptionsPluginTest = PluginTest;

TEST_F(CompileOptionsPluginTest, OverridesReachTheCompiler) {
  Client& client = TestClient();
  CompileOptions options;
  options.overrides = {{"xla_backend_optimization_level", int64_t{1}},
                       {"xla_cpu_enable_fast_math", false},
                       {"xla_disable_hlo_passes", std::string("algsimp")}};
  options.exec_time_optimization_effort = -0.5f;
  TPU_ASSERT_OK(client.Compile(AddModule(4), options));
  options.overrides.push_back({"xla_nonsense", true});
  Result<LoadedExecutable> refused = client.Compile(AddModule(4), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("No such compile option: 'xla_nonsense'"), std::string::npos)
      << refused.status().message();
}

}  // namespace
}  // namespace tpu::pjrt
