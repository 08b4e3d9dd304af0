// SPDX-License-Identifier: Apache-2.0
// Everything at once, for the sanitizers: four producers, functional and in-place programs, reads, shared values,
// evictions, failures, timed positions, a synchronizing thread.
#include <random>
#include <thread>

#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class StressTest : public EngineTest {
 protected:
  // Integers below 2^24 are exact, so every order of additions gives one result.
  static void Produce(int seed, int steps, const std::vector<Array>& shared, bool may_fail) {
    std::mt19937 rng(static_cast<uint32_t>(seed));
    auto pick = [&](int n) { return static_cast<int>(rng() % static_cast<uint32_t>(n)); };
    struct Item {
      Array array;
      float value;
      bool known = true;  // false once a failure may have changed it
    };
    std::vector<Item> items;
    auto fresh = [&] {
      float v = static_cast<float>(pick(5));
      std::vector<float> data(static_cast<size_t>(Numel(shared[0].sizes)), v);
      auto value = Upload(data.data(), TensorType::Of(DType::kF32, shared[0].sizes), 0);
      if (!value.ok()) return;
      items.push_back({Array(*value, DType::kF32, shared[0].sizes), v});
    };
    while (items.size() < 4) fresh();
    for (int i = 0; i < steps; ++i) {
      Item& item = items[static_cast<size_t>(pick(static_cast<int>(items.size())))];
      int k = pick(static_cast<int>(shared.size()));
      float shared_value = static_cast<float>(k + 1);
      bool large = item.value > 1e6f || !item.known;
      switch (large ? 5 : pick(8)) {
        case 0:
        case 1: {
          auto sum = TryAdd(item.array, shared[static_cast<size_t>(k)]);
          if (sum.ok()) item.array = *sum, item.value += shared_value;
          break;
        }
        case 2:
        case 3:
          if (TryAddInPlace(item.array, shared[static_cast<size_t>(k)]).ok()) item.value += shared_value;
          break;
        case 4: {  // a second cell with the same value, written while the first is read
          Item copy{item.array.Shared(), item.value};
          if (TryAddInPlace(copy.array, shared[static_cast<size_t>(k)]).ok()) copy.value += shared_value;
          items.push_back(copy);
          if (items.size() > 8) items.erase(items.begin());
          break;
        }
        case 5: {
          auto read = ReadFilled(item.array);
          if (read.ok()) {
            EXPECT_EQ(*read, item.value);
          } else {
            EXPECT_TRUE(may_fail) << read.status().message();
          }
          if (large || !read.ok()) {
            items.erase(items.begin() + (&item - items.data()));
            while (items.size() < 4) fresh();
          }
          break;
        }
        case 6:  // through a view: half and half is the whole
          if (TryAddInPlace(item.array.Narrow(0, 2), shared[static_cast<size_t>(k)].Narrow(2, 2)).ok() &&
              TryAddInPlace(item.array.Narrow(2, 2), shared[static_cast<size_t>(k)].Narrow(0, 2)).ok())
            item.value += shared_value;
          else
            item.known = false;
          break;
        case 7:
          RegisterTimedPosition(QueuePosition());
          break;
      }
      if (!may_fail && testing::Test::HasFailure()) return;
    }
    for (const Item& item : items) {
      auto read = ReadFilled(item.array);
      if (read.ok()) {
        if (item.known) {
          EXPECT_EQ(*read, item.value);
        }
      } else {
        EXPECT_TRUE(may_fail) << read.status().message();
      }
    }
  }

  static void Run(int steps, bool may_fail, const std::function<void(int)>& disturb) {
    std::vector<Array> shared;
    for (int k = 0; k < 3; ++k) shared.push_back(Filled({4, 2}, static_cast<float>(k + 1)));
    std::atomic<bool> stop{false};
    std::thread disturber([&] {
      for (int i = 0; !stop; ++i) disturb(i);
    });
    std::vector<std::thread> producers;
    for (int t = 0; t < 4; ++t) producers.emplace_back([&, t] { Produce(t, steps, shared, may_fail); });
    for (std::thread& t : producers) t.join();
    stop = true;
    disturber.join();
    for (int k = 0; k < 3; ++k) EXPECT_FILLED(shared[static_cast<size_t>(k)], k + 1);
  }
};
class FakeStressTest : public StressTest {
 protected:
  void SetUp() override {
    if (!OnFake()) GTEST_SKIP() << "about the fake plugin";
    StressTest::SetUp();
  }
  void TearDown() override {
    if (OnFake()) StressTest::TearDown();
  }
};

TEST_F(StressTest, ProducersReadersAndSynchronizers) {
  Run(1500, false, [](int i) {
    if (i % 2) EXPECT_OK(Synchronize());
    (void)QueueReached(QueuePosition());
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  });
}

TEST_F(FakeStressTest, WithEvictions) {
  ScopedSetting limit("max_executables", 16);
  Run(1500, false, [](int i) {
    // Forty shapes beside those of the producers.
    Array x = Filled({800 + i % 40}, 1);
    EXPECT_FILLED(Add(x, x), 2);
  });
}

TEST_F(FakeStressTest, WithFailures) {
  for (int delay : {-1, 0}) {
    Fake().set_async(delay);
    Run(1500, true, [](int i) {
      Fake().fail_call(1 + i * 7 % 40, i % 2 ? 13 : 8);
      if (i % 5 == 0) Fake().fail_async(1, 13);
      (void)Synchronize();
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    });
    Fake().reset();
    Settle();
  }
}

TEST_F(FakeStressTest, WithChecksInFlight) {
  Fake().set_async(0);
  Array x = Filled({4, 2}, 1), good = Indices({0, 1}), bad = Indices({0, 9});
  Run(800, false, [&](int) {
    Array right = IndexSelect(x, good), wrong = IndexSelect(x, bad), sum = Add(wrong, right);
    EXPECT_FALSE(Read(sum).ok());
    EXPECT_FILLED(right, 1);
  });
}

}  // namespace
}  // namespace tpu::engine
