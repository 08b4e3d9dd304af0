// SPDX-License-Identifier: Apache-2.0
// A bounded number of loaded executables: the least recently used go, and come back when they are used.
#include <thread>

#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class EvictionTest : public EngineTest {
 protected:
  // Programs of `count` different shapes, used once each.
  static void UsePrograms(int first, int count) {
    for (int n = first; n < first + count; ++n) {
      Array x = Filled({n, 2}, 1);
      EXPECT_FILLED(Add(x, x), 2);
    }
  }
};
class FakeEvictionTest : public FakeEngineTest {};

TEST_F(EvictionTest, ProgramsGoAndComeBack) {
  ScopedSetting limit("max_executables", 16);
  CounterDelta count;
  UsePrograms(100, 40);
  EXPECT_EQ(count["compiles"], 40);
  EXPECT_GT(count["evictions"], 20);
  EXPECT_LE(LoadedExecutables(), 17);
  EXPECT_EQ(count["reloads"], 0);
  UsePrograms(100, 40);  // all hits, each reloaded
  EXPECT_EQ(count["compiles"], 40);
  EXPECT_GT(count["reloads"], 20);
  EXPECT_LE(LoadedExecutables(), 17);
}

TEST_F(EvictionTest, WhatIsUsedStays) {
  ScopedSetting limit("max_executables", 24);
  Array x = Filled({50, 2}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  UsePrograms(200, 30);
  CounterDelta count;
  for (int n = 300; n < 340; ++n) {
    UsePrograms(n, 1);
    EXPECT_FILLED(Add(x, x), 2);
  }
  // Only what is not used meanwhile has to be loaded again.
  EXPECT_LE(count["reloads"], 1);
}

TEST_F(EvictionTest, ThreadsAndEvictionsTogether) {
  ScopedSetting limit("max_executables", 16);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 150; ++i) {
        Array x = Filled({400 + (i * 5 + t * 3) % 30}, 1);
        EXPECT_FILLED(Add(x, x), 2);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_LE(LoadedExecutables(), 17);
}

TEST_F(FakeEvictionTest, ExecutablesAreReallyGone) {
  ScopedSetting limit("max_executables", 16);
  for (int n = 500; n < 560; ++n) {
    Array x = Filled({n}, 1);
    EXPECT_FILLED(Add(x, x), 2);
    EXPECT_LE(Fake().live_executables(), 18);
  }
}

TEST_F(FakeEvictionTest, AFailedReloadPoisonsAndTheNextUseTriesAgain) {
  ScopedSetting limit("max_executables", 16);
  Array x = Filled({600}, 1);
  EXPECT_FILLED(Add(x, x), 2);
  for (int n = 601; n < 640; ++n) {
    Array y = Filled({n}, 1);
    EXPECT_FILLED(Add(y, y), 2);
  }
  Fake().fail_call_named("PJRT_Client_Compile", 1, 13);
  CounterDelta count;
  Array bad = Add(x, x);
  ExpectSays(ReadFilled(bad), "add.Tensor");
  ExpectSays(ReadFilled(bad), "injected failure");
  EXPECT_FILLED(Add(x, x), 2);
  EXPECT_EQ(count["reloads"], 1);
}

}  // namespace
}  // namespace tpu::engine
