// SPDX-License-Identifier: Apache-2.0
// The end of the process, and the child of a fork.
#include <unistd.h>

#include <thread>

#include "engine_fixture.h"
#include "run_self.h"

namespace tpu::engine {
namespace {

void Start() {
  ASSERT_TRUE(SetSetting("plugin_path", TPU_FAKE_PJRT_PATH).ok());
  ASSERT_TRUE(Runtime::Get().ok());
  EXPECT_FILLED(Add(Filled({4}, 1), Filled({4}, 1)), 2);
}

TEST(ShutdownChild, DISABLED_RefusesIntakeAndEndsWhatWasRecorded) {
  Start();
  Array x = Filled({4}, 1), sum;
  {
    HeldQueue held;
    sum = Add(x, x);
  }
  Shutdown();
  EXPECT_FILLED(sum, 2);  // reading still works
  ExpectSays(TryAdd(x, x), "shut down");
  ExpectSays(TryAddInPlace(x, x), "shut down");
  EXPECT_FILLED(x, 1);
  EXPECT_OK(Synchronize());
  Shutdown();  // once more does no harm
}

TEST(ShutdownChild, DISABLED_WaitsNoLongerThanAllowed) {
  Start();
  EXPECT_OK(SetSetting("exit_timeout_ms", "300"));
  // Results that take their time: a second each.
  Fake().set_async(1'000'000);
  ASSERT_TRUE(SetSetting("max_in_flight_bytes", "16").ok());
  Array x = Filled({4}, 1);
  for (int i = 0; i < 30; ++i) (void)Add(x, x);
  int64_t begin = NowNanos();
  Shutdown();
  int64_t took = NowNanos() - begin;
  EXPECT_GE(took, 290'000'000);
  EXPECT_LT(took, 900'000'000);
}

TEST(ShutdownChild, DISABLED_WaitsForResultsInFlight) {
  Start();
  Fake().set_async(100'000);
  Array x = Filled({4}, 1);
  int64_t begin = NowNanos();
  Array sum = Add(x, x);
  Shutdown();
  EXPECT_GE(NowNanos() - begin, 95'000'000);
}

TEST(ShutdownChild, DISABLED_ThreadsGoOnWhileTheProcessEnds) {
  Start();
  for (int t = 0; t < 3; ++t) {
    std::thread([] {
      Array x = Filled({16}, 1);
      for (;;) {
        auto sum = TryAdd(x, x);
        if (!sum.ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }).detach();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  Shutdown();
}

TEST(ShutdownChild, DISABLED_AForkedChildIsTold) {
  Start();
  Fake().set_async(50'000);
  Array x = Filled({4}, 1), in_flight = Add(x, x), pending;
  HeldQueue held;  // in the child, no thread is left to release it
  pending = Add(x, x);
  pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    alarm(20);
    int told = 0;
    told += !Runtime::Get().ok() && Runtime::Get().status().message().find("fork") != std::string::npos;
    told += !ReadFilled(pending).ok();
    told += !ReadFilled(in_flight).ok();
    told += !WaitForQueue(QueuePosition()).ok();
    told += !Synchronize().ok();
    float one = 1;
    told += !Upload(&one, TensorType(DType::kF32, {1}), 0).ok();
    x = in_flight = pending = Array();  // destructors leak
    Shutdown();
    _exit(told == 6 ? 0 : 100 + told);
  }
  int status;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  held.Release();
  EXPECT_FILLED(pending, 2);
}

class ShutdownTest : public testing::TestWithParam<const char*> {};

TEST_P(ShutdownTest, InAProcessOfItsOwn) {
  SelfRun run = RunSelf("A=B", std::string("ShutdownChild.DISABLED_") + GetParam());
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("[  PASSED  ] 1 test"), std::string::npos) << run.output;
}
INSTANTIATE_TEST_SUITE_P(Cases, ShutdownTest,
                         testing::Values("RefusesIntakeAndEndsWhatWasRecorded", "WaitsNoLongerThanAllowed",
                                         "WaitsForResultsInFlight", "ThreadsGoOnWhileTheProcessEnds", "AForkedChildIsTold"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tpu::engine
