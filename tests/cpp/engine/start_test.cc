// SPDX-License-Identifier: Apache-2.0
// The start: whatever fails there is one error that stands, never a crash. And the same tests on the real plugin.
#include <filesystem>

#include "engine_fixture.h"
#include "run_self.h"

namespace tpu::engine {
namespace {

// In a process of its own: fails fallible call TPU_TEST_FAIL of the start.
TEST(StartChild, DISABLED_FailsOneCall) {
  ASSERT_FALSE(Runtime::IsStarted());
  ASSERT_TRUE(SetSetting("plugin_path", TPU_FAKE_PJRT_PATH).ok());
  const int64_t n = std::stoll(ForeignEnv("TPU_TEST_FAIL"));
  Fake().fail_call(n, 13);
  auto first = Runtime::Get();
  if (n == 0) {
    EXPECT_OK(first.status());
    std::printf("calls of the start: %d\n", static_cast<int>(Fake().fallible_calls()));
    return;
  }
  // The profile's options are dropped when the plugin refuses them: a start may survive one failure.
  if (first.ok()) {
    std::printf("survived\n");
    EXPECT_FILLED(Add(Filled({4}, 1), Filled({4}, 1)), 2);
    EXPECT_OK(Synchronize());
    return;
  }
  ExpectSays(first, "injected failure");
  Fake().fail_call(0, 0);
  auto second = Runtime::Get();
  ASSERT_FALSE(second.ok()) << "the first outcome stands for the process";
  EXPECT_EQ(second.status().message(), first.status().message());
  EXPECT_FALSE(Runtime::IsStarted());
  EXPECT_OK(Synchronize());
  Shutdown();
}

TEST(StartTest, AnyCallMayFail) {
  SelfRun clean = RunSelf("TPU_TEST_FAIL=0", "StartChild.DISABLED_FailsOneCall");
  ASSERT_EQ(clean.exit_code, 0) << clean.output;
  size_t at = clean.output.find("calls of the start: ");
  ASSERT_NE(at, std::string::npos) << clean.output;
  int calls = std::stoi(clean.output.substr(at + 20));
  EXPECT_GT(calls, 5);
  EXPECT_LT(calls, 100);
  int survived = 0;
  for (int n = 1; n <= calls; ++n) {
    SelfRun run = RunSelf("TPU_TEST_FAIL=" + std::to_string(n), "StartChild.DISABLED_FailsOneCall");
    EXPECT_EQ(run.exit_code, 0) << "call " << n << "\n" << run.output;
    survived += run.output.find("survived") != std::string::npos;
  }
  EXPECT_LE(survived, 2);
}

TEST(StartChild, DISABLED_AnswersWithAnError) {
  auto runtime = Runtime::Get();
  ASSERT_FALSE(runtime.ok());
  std::printf("error: %s\n", runtime.status().message().c_str());
  EXPECT_EQ(runtime.status().kind(), ErrorKind::kRuntime);
}

TEST(StartTest, WhatIsNoPluginIsAnErrorThatNamesIt) {
  for (const char* path : {"/nowhere/plugin.so", "/bin/true", TPU_TEST_SOURCE_DIR "/CMakeLists.txt"}) {
    SelfRun run = RunSelf(std::string("TORCH_TPU_PLUGIN_PATH=") + path, "StartChild.DISABLED_AnswersWithAnError");
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_NE(run.output.find(path), std::string::npos) << run.output;
  }
}

// What does not need the fake's levers holds on the engine that users have.
TEST(RealPluginTest, PassesTheSameTests) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the plugin's own code is not instrumented";
#endif
  if (!OnFake() || !std::filesystem::exists(TPU_XLA_CPU_PJRT_PATH)) GTEST_SKIP();
  SelfRun run = RunSelf(
      "TORCH_TPU_TEST_PLUGIN=" TPU_XLA_CPU_PJRT_PATH,
      "DonationTest.*:QueueTest.*:MemoryTest.*:TrapTest.*:TimingTest.*:EvictionTest.ProgramsGoAndComeBack:StressTest.*");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("[  PASSED  ]"), std::string::npos) << run.output;
}

}  // namespace
}  // namespace tpu::engine
