// SPDX-License-Identifier: Apache-2.0
// The queue: order, room, who runs entries, programs on hit and miss.
#include <thread>

#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class QueueTest : public EngineTest {};

TEST_F(QueueTest, ReadsSeeWhatWasThereWhenTheyWereRecorded) {
  Array x = Filled({8}, 1), one = Filled({8}, 1);
  HeldQueue held;
  Array a = Add(x, x);
  AddInPlace(x, one);
  Array b = Add(x, x);
  AddInPlace(x, one);
  held.Release();
  EXPECT_FILLED(a, 2);
  EXPECT_FILLED(b, 4);
  EXPECT_FILLED(x, 3);
}

TEST_F(QueueTest, FourThreadsKeepTheirOrder) {
  Array shared = Filled({16}, 2);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Array x = Filled({16}, static_cast<float>(t));
      float expected = static_cast<float>(t);
      for (int i = 1; i <= 3000; ++i) {
        if (i % 3 == 0) {
          x = Add(x, shared);
        } else {
          AddInPlace(x, shared);
        }
        expected += 2;
        if (i % 500 == 0) {
          auto read = ReadFilled(x);
          wrong += !read.ok() || *read != expected;
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(QueueTest, ValuesGoFromThreadToThread) {
  // Each thread adds to what the one before has made, without waiting for it.
  Array x = Filled({16}, 0), one = Filled({16}, 1);
  for (int round = 0; round < 100; ++round) {
    Array next;
    std::thread([&] { next = Add(x, one); }).join();
    x = next;
  }
  EXPECT_FILLED(x, 100);
}

TEST_F(QueueTest, AFullQueueIsDrainedByTheCaller) {
  ScopedSetting room("max_in_flight", 4);
  Array x = Filled({16}, 0), one = Filled({16}, 1);
  for (int i = 0; i < 500; ++i) AddInPlace(x, one);
  EXPECT_FILLED(x, 500);
}

TEST_F(QueueTest, WithoutRoomTheCallerWaitsForTheConsumer) {
  ScopedSetting room("max_in_flight", 4);
  Array x = Filled({16}, 0), one = Filled({16}, 1);
  AddInPlace(x, one);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  HeldQueue held;
  std::atomic<int> recorded{0};
  std::thread producer([&] {
    for (int i = 0; i < 8; ++i) {
      AddInPlace(x, one);
      ++recorded;
    }
  });
  while (recorded < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(recorded, 4);
  EXPECT_FALSE(QueueHasRoom());
  held.Release();
  producer.join();
  EXPECT_FILLED(x, 9);
}

TEST_F(QueueTest, RecordsTooLargeForASlot) {
  // 40 view starts do not fit into the slot's own room for host words.
  constexpr int kParts = 40;
  Array x = Floats(std::vector<float>(kParts * 2, 1), {kParts, 2});
  for (int round = 0; round < 3; ++round) {
    Recording cat("aten::cat", 2, 0);
    cat.record().key.ListHeader(graph::Tag::kTensorList, kParts);
    for (int i = 0; i < kParts; ++i) cat.Operand(x.Narrow((i + round) % kParts, 1));
    cat.Int(0);
    Array result;
    EXPECT_OK(cat.Run(DType::kF32, {kParts, 2}, &result));
    EXPECT_FILLED(result, 1);
  }
}

TEST_F(QueueTest, OneProgramForAllOffsetsAndNoSecondInference) {
  Array x = Floats({0, 0, 1, 1, 2, 2, 3, 3}, {4, 2}), one = Filled({1, 2}, 1);
  EXPECT_FILLED(Add(x.Narrow(0, 1), one), 1);
  CounterDelta count;
  for (int i = 1; i < 4; ++i) EXPECT_FILLED(Add(x.Narrow(i, 1), one), i + 1);
  EXPECT_EQ(count["misses"], 0);
  EXPECT_EQ(count["compiles"], 0);
  EXPECT_EQ(count["records"], 3);
}

TEST_F(QueueTest, ThreadsThatMissTogetherCompileOnce) {
  CounterDelta count;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      Array x = Filled({3, 5, 7}, 2);
      EXPECT_FILLED(Add(x, x), 4);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(count["compiles"], 1);
}

TEST_F(QueueTest, ErrorsOfTheCallEnqueueNothing) {
  Array x = Filled({11}, 1);
  uint64_t position = QueuePosition();
  RecordHooks refuses;
  refuses.infer_error = Status(ErrorKind::kValue, "no such shapes");
  Array result;
  Recording add("aten::add.Tensor", 3, 1);
  add.Operand(x).Operand(x).Alpha().Into(x, 0);
  ExpectSays(add.Run(DType::kF32, {11}, nullptr, &refuses), "no such shapes");
  EXPECT_EQ(QueuePosition(), position);
  EXPECT_FILLED(x, 1);
  // The failure is not kept.
  AddInPlace(x, x);
  EXPECT_FILLED(x, 2);
}

TEST_F(QueueTest, OperatorsWithoutARuleAreUnsupported) {
  Array x = Filled({4}, 1), result;
  ExpectSays(Recording("aten::no_such_operator", 1, 0).Operand(x).Run(DType::kF32, {4}, &result), "unsupported");
}

TEST_F(QueueTest, UndefinedValuesReadAsZeros) {
  Array x(nullptr, DType::kF32, {6});
  x.cell->Swap(NewValue(TensorType(DType::kF32, {6}), 0, ValueState::kUndefined));
  EXPECT_FILLED(x, 0);
  EXPECT_FILLED(Add(x, Filled({6}, 3)), 3);
  EXPECT_EQ(x.cell->Load()->state, ValueState::kUndefined) << "reading must not allocate";
  x.cell->Load()->DecRef(), x.cell->Load()->DecRef();
}

TEST_F(QueueTest, ResultsOfAnySizeAreReadWhenTheyAreThere) {
  // Which programs run inside Execute is the plugin's secret; a small one that computes much may not.
  for (int n : {2, 8}) {
    Array x = Filled({n, n}, 1);
    for (int i = 0; i < 1500; ++i) {
      Array product;
      EXPECT_OK(Recording("aten::mm", 2, 0).Operand(x).Operand(x).Run(DType::kF32, {n, n}, &product));
      auto read = ReadFilled(product);
      ASSERT_TRUE(read.ok());
      ASSERT_EQ(*read, static_cast<float>(n)) << "round " << i;
    }
  }
}

}  // namespace
}  // namespace tpu::engine
