// SPDX-License-Identifier: Apache-2.0
// Memory: what is counted, the limit, the plugin's own limit. The fixture checks after every test that nothing is left.
#include "engine/memory.h"

#include <thread>

#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class MemoryTest : public EngineTest {};
class FakeMemoryTest : public FakeEngineTest {};

TEST_F(MemoryTest, StoragesAndBuffersAreCounted) {
  MemoryStats before = GetMemoryStats(0);
  {
    Array x = Filled({1000}, 1);
    EXPECT_EQ(GetMemoryStats(0).allocated, before.allocated + 4000);
    EXPECT_EQ(GetMemoryStats(0).reserved, before.reserved + 4000);
    Array shared = x.Shared();  // a storage more, the same buffer
    EXPECT_EQ(GetMemoryStats(0).allocated, before.allocated + 8000);
    EXPECT_EQ(GetMemoryStats(0).reserved, before.reserved + 4000);
    Array undefined(nullptr, DType::kF32, {1000});
    EXPECT_EQ(GetMemoryStats(0).reserved, before.reserved + 4000) << "an undefined value allocates nothing";
    Array sum = Add(x, x);
    EXPECT_FILLED(sum, 2);
    EXPECT_OK(WaitForQueue(QueuePosition()));
    EXPECT_EQ(GetMemoryStats(0).reserved, before.reserved + 8000);
  }
  EXPECT_EQ(GetMemoryStats(0).allocated, before.allocated);
  EXPECT_EQ(GetMemoryStats(0).reserved, before.reserved);
  EXPECT_GE(GetMemoryStats(0).allocated_peak, before.allocated + 16000);
}

TEST_F(MemoryTest, OverTheLimitIsOutOfMemoryWithNumbersAndLifeGoesOn) {
  Array x = Filled({256 << 10}, 1);  // 1 MiB
  ScopedSetting limit("memory_limit", GetMemoryStats(0).reserved + (5 << 19));
  Array a = Add(x, x), b = Add(x, x);
  int64_t ooms = GetMemoryStats(0).ooms;
  auto c = TryAdd(x, x);
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.status().kind(), ErrorKind::kOutOfMemory);
  for (const char* text : {"tpu:0 is out of memory", "1.00 MiB", "Limit", "reserved"}) ExpectSays(c, text);
  EXPECT_EQ(GetMemoryStats(0).ooms, ooms + 1);
  std::vector<float> data(256 << 10, 1);
  auto upload = Upload(data.data(), TensorType(DType::kF32, {256 << 10}), 0);
  EXPECT_EQ(upload.status().kind(), ErrorKind::kOutOfMemory);
  EXPECT_FILLED(a, 2);
  b = Array();
  EXPECT_FILLED(Add(x, x), 2);
}

TEST_F(MemoryTest, WhatTheQueueStillHoldsIsWaitedFor) {
  Array x = Filled({256 << 10}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  ScopedSetting limit("memory_limit", GetMemoryStats(0).reserved + (5 << 19));
  // Each result is garbage at once, but its entry may not have run when the next is recorded.
  for (int i = 0; i < 50; ++i) (void)Add(x, x);
}

std::atomic<int> g_collected{0};

TEST_F(MemoryTest, GarbageIsCollectedBeforeGivingUp) {
  Array x = Filled({256 << 10}, 1);
  static Array garbage;
  garbage = Add(x, x);
  ScopedSetting limit("memory_limit", GetMemoryStats(0).reserved + (1 << 19));
  g_collected = 0;
  SetCollectHook([] {
    ++g_collected;
    garbage = Array();
  });
  EXPECT_TRUE(TryAdd(x, x).ok());
  EXPECT_EQ(g_collected, 1);
  SetCollectHook(nullptr);
}

TEST_F(MemoryTest, ThreadsAtTheLimitNeverHang) {
  Array x = Filled({64 << 10}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  ScopedSetting limit("memory_limit", GetMemoryStats(0).reserved + (3 << 18));
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        auto a = TryAdd(x, x);
        if (a.ok()) {
          EXPECT_FILLED(*a, 2);
          ++done;
        } else {
          EXPECT_EQ(a.status().kind(), ErrorKind::kOutOfMemory);
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_GT(done, 0);
}

TEST_F(FakeMemoryTest, ThePluginsOwnLimitIsOutOfMemoryAtTheRead) {
  Array x = Filled({1000}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  Fake().set_memory_limit(1);
  Array a = Add(x, x), b = Add(a, x);
  auto read = ReadFilled(b);
  EXPECT_EQ(read.status().kind(), ErrorKind::kOutOfMemory);
  ExpectSays(read, "add.Tensor");
  ExpectSays(read, "4000 bytes");
  float one = 1;
  auto upload = Upload(&one, TensorType(DType::kF32, {1}), 0);
  EXPECT_EQ(upload.status().kind(), ErrorKind::kOutOfMemory);
  Fake().set_memory_limit(0);
  EXPECT_FILLED(Add(x, x), 2);
}

TEST_F(FakeMemoryTest, FailuresLeakNothing) {
  Array x = Filled({64}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  for (const char* call :
       {"PJRT_LoadedExecutable_Execute", "PJRT_Buffer_ReadyEvent", "PJRT_Event_IsReady", "PJRT_Event_Error"}) {
    for (int delay : {-1, 0}) {
      Fake().set_async(delay);
      Fake().fail_call_named(call, 1, 13);
      Array a = Add(x, x), b = Add(a, x);
      (void)ReadFilled(b);
      Settle();
    }
  }
}

}  // namespace
}  // namespace tpu::engine
