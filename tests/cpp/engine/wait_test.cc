// SPDX-License-Identifier: Apache-2.0
// Host waits: all of them end, with the value or with an error, whatever the plugin answers; hooks run around long ones.
#include <thread>

#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class WaitTest : public FakeEngineTest {
 protected:
  void SetUp() override {
    FakeEngineTest::SetUp();
    if (IsSkipped()) return;
    x_ = Filled({4, 4}, 1);
    (void)Add(x_, x_);
    EXPECT_OK(WaitForQueue(QueuePosition()));
  }
  void TearDown() override {
    SetWaitHook({nullptr, nullptr, nullptr});
    x_ = Array();
    FakeEngineTest::TearDown();
  }
  Array x_;
};

TEST_F(WaitTest, ReadsWaitForTheResult) {
  Fake().set_async(3000);
  for (int i = 0; i < 10; ++i) {
    Array a = Add(x_, x_), b = Add(a, x_);
    EXPECT_FILLED(b, 3);
  }
}

TEST_F(WaitTest, SynchronizeWaitsForAllResults) {
  Fake().set_async(2000);
  Array a = x_;
  for (int i = 0; i < 10; ++i) a = Add(a, x_);
  int64_t begin = NowNanos();
  EXPECT_OK(Synchronize());
  EXPECT_GT(NowNanos() - begin, 10'000'000);
  ValueRef v(a.cell->Load());
  pjrt::Buffer buffer(Runtime::Started().client().api(), v->buffer);
  Status error;
  EXPECT_TRUE(buffer.IsReady(&error));
  buffer.release();
}

TEST_F(WaitTest, EventsAreReachedInOrder) {
  Fake().set_async(20000);
  Array a = Add(x_, x_);
  uint64_t first = QueuePosition();
  Array b = Add(a, x_);
  uint64_t second = QueuePosition();
  EXPECT_FALSE(QueueReached(second));
  EXPECT_OK(WaitForQueue(first));
  EXPECT_TRUE(QueueReached(first));
  EXPECT_FALSE(QueueReached(second));
  EXPECT_OK(WaitForQueue(second));
}

TEST_F(WaitTest, BytesInFlightAreBounded) {
  ScopedSetting limit("max_in_flight_bytes", 256);
  Fake().set_async(1000);
  std::vector<Array> results;
  CounterDelta count;
  for (int i = 0; i < 30; ++i) results.push_back(Add(x_, x_));  // 64 bytes each
  while (count["launches"] < 10) std::this_thread::yield();
  int64_t live = Fake().live_events();  // one for each unfinished launch, and one under way
  EXPECT_LE(live, 256 / 64 + 3);
  for (const Array& a : results) EXPECT_FILLED(a, 2);
  EXPECT_EQ(count["launches"], 30);
}

// ---- whatever fails in the middle of a wait: the right value or an error, then the right value

class WaitFaultTest : public WaitTest, public testing::WithParamInterface<const char*> {};

TEST_P(WaitFaultTest, EndsAndNeverReadsWhatIsNotThere) {
  for (int k = 1; k <= 6; ++k) {
    Fake().set_async(3000);
    Fake().fail_call_named(GetParam(), k, 13);
    Array a = Add(x_, x_), b = Add(a, x_);
    auto read = ReadFilled(b);
    if (read.ok()) {
      EXPECT_EQ(*read, 3) << GetParam() << " " << k;
    } else {
      EXPECT_NE(read.status().message().find("add.Tensor"), std::string::npos) << read.status().message();
    }
    while (!Synchronize().ok()) {
    }
    Fake().fail_call_named(GetParam(), 0, 0);
    EXPECT_FILLED(Add(x_, x_), 2);
    Settle();
  }
}
INSTANTIATE_TEST_SUITE_P(Calls, WaitFaultTest,
                         testing::Values("PJRT_Event_IsReady", "PJRT_Event_OnReady", "PJRT_Event_Error",
                                         "PJRT_Buffer_ReadyEvent", "PJRT_Buffer_ToHostBuffer",
                                         "PJRT_Buffer_OpaqueDeviceMemoryDataPointer", "PJRT_LoadedExecutable_Execute"),
                         [](const auto& info) { return std::string(info.param); });

// ---- hooks

std::atomic<int> g_begun{0}, g_ended{0}, g_checks{0}, g_allowed{0};

TEST_F(WaitTest, LongWaitsCallTheHooksAndCanBeInterrupted) {
  g_begun = g_ended = g_checks = 0;
  SetWaitHook({[]() -> void* {
                 ++g_begun;
                 return &g_begun;
               },
               [](void* token) {
                 EXPECT_EQ(token, &g_begun);
                 ++g_ended;
               },
               [] { return ++g_checks <= g_allowed; }});
  Fake().set_async(300'000);
  Array a = Add(x_, x_);
  g_allowed = 1;
  int64_t begin = NowNanos();
  ExpectSays(ReadFilled(a), "interrupted");
  EXPECT_EQ(g_checks, 2);
  g_checks = 0;
  ExpectSays(WaitForQueue(QueuePosition()), "interrupted");
  EXPECT_LT(NowNanos() - begin, 290'000'000) << "an interrupted wait must not last";
  EXPECT_EQ(g_begun, 2);
  EXPECT_EQ(g_ended, 2);
  g_allowed = 1 << 30;
  EXPECT_FILLED(a, 2);  // an interruption spoils nothing
}

TEST_F(WaitTest, WaitsForTheConsumerAndForRoomCanBeInterrupted) {
  ScopedSetting room("max_in_flight", 2);
  g_allowed = 0;
  g_checks = 0;
  SetWaitHook({nullptr, nullptr, [] { return ++g_checks <= g_allowed; }});
  HeldQueue held;
  Array a = Add(x_, x_), b = Add(x_, x_);
  ExpectSays(ReadFilled(a), "interrupted");
  ExpectSays(TryAdd(x_, x_), "interrupted");
  ExpectSays(TryAddInPlace(x_, x_), "interrupted");
  held.Release();
  g_allowed = 1 << 30;
  EXPECT_FILLED(b, 2);
  EXPECT_FILLED(x_, 1);  // what was interrupted has not been recorded
}

TEST_F(WaitTest, ACallerThatRunsEntriesLooksUp) {
  // A caller that finds much to run is interruptible in between.
  Array a = x_;
  std::thread holder;
  {
    HeldQueue held;
    for (int i = 0; i < 1000; ++i) a = Add(a, x_);
  }
  EXPECT_FILLED(a, 1001);
  EXPECT_TRUE(Drain(nullptr) || true);
}

}  // namespace
}  // namespace tpu::engine
