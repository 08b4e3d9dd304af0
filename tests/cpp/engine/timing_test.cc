// SPDX-License-Identifier: Apache-2.0
// Retirement times: what timed events read.
#include <thread>

#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class TimingTest : public EngineTest {};
class FakeTimingTest : public FakeEngineTest {};

TEST_F(TimingTest, RegisteringWhileEntriesWait) {
  // Registering looks at the queue, which may run entries, whose retiring writes times.
  Array x = Filled({16}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  std::vector<uint64_t> positions;
  {
    HeldQueue held;
    for (int i = 0; i < 20; ++i) (void)Add(x, x);
    RegisterTimedPosition(QueuePosition());
    positions.push_back(QueuePosition());
    EXPECT_EQ(RetirementTime(positions[0]), 0) << "nothing has run";
  }
  for (int i = 0; i < 200; ++i) {
    for (int k = 0; k < 20; ++k) (void)Add(x, x);
    RegisterTimedPosition(QueuePosition());
    positions.push_back(QueuePosition());
  }
  EXPECT_OK(WaitForQueue(QueuePosition()));
  int64_t last = 0, now = NowNanos();
  for (uint64_t p : positions) {
    int64_t t = RetirementTime(p);
    EXPECT_GE(t, last);
    EXPECT_LE(t, now);
    EXPECT_GT(t, 0);
    last = t;
  }
}

TEST_F(TimingTest, AnIdleQueuesPositionIsReachedNow) {
  Array x = Filled({16}, 1);
  EXPECT_FILLED(Add(x, x), 2);  // a position that nobody has registered
  EXPECT_OK(WaitForQueue(QueuePosition()));
  int64_t before = NowNanos();
  RegisterTimedPosition(QueuePosition());
  EXPECT_GE(RetirementTime(QueuePosition()), before);
  EXPECT_EQ(RetirementTime(QueuePosition() + 1000), 0);
}

TEST_F(TimingTest, ManyTimesDoNotSlowLaunchesDown) {
  Array x = Filled({16}, 1);
  const auto launches = [&] {
    const int64_t begin = NowNanos();
    for (int i = 0; i < 20000; ++i) (void)Add(x, x);
    EXPECT_OK(WaitForQueue(QueuePosition()));
    return NowNanos() - begin;
  };
  launches();
  const int64_t without = launches();
  for (int i = 0; i < 5000; ++i) {
    (void)Add(x, x);
    RegisterTimedPosition(QueuePosition());
  }
  EXPECT_OK(WaitForQueue(QueuePosition()));
  // Each launch looks at the times behind it, of which there are none: looking through all 5,000 would take far longer.
  EXPECT_LT(launches(), 5 * without);
}

TEST_F(FakeTimingTest, TimesAreThoseOfTheResultsNotOfTheLaunches) {
  Array x = Filled({16}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  Fake().set_async(20000);
  int64_t begin = NowNanos();
  Array a = Add(x, x);
  uint64_t position = QueuePosition();
  RegisterTimedPosition(position);
  EXPECT_OK(WaitForQueue(position));
  EXPECT_GE(RetirementTime(position) - begin, 19'000'000);
}

TEST_F(FakeTimingTest, FailedEntriesRetireToo) {
  Array x = Filled({16}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  Fake().fail_call_named("PJRT_LoadedExecutable_Execute", 1, 13);
  Array bad = Add(x, x);
  RegisterTimedPosition(QueuePosition());
  EXPECT_OK(WaitForQueue(QueuePosition()));
  EXPECT_GT(RetirementTime(QueuePosition()), 0);
  ExpectSays(Synchronize(), "injected");
}

}  // namespace
}  // namespace tpu::engine
