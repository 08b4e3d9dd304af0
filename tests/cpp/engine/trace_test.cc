// SPDX-License-Identifier: Apache-2.0
// Traces: what is sealed together, what leaves the program, what happens when it cannot be compiled.
#include "engine/trace.h"

#include <thread>

#include "base/settings.h"
#include "engine/capture.h"
#include "engine_fixture.h"

namespace tpu::engine {
namespace {

class TraceTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    EXPECT_OK(SetSetting("eager_mode", "fused"));
  }
  void TearDown() override {
    SealTraces();
    EXPECT_OK(SetSetting("eager_mode", "strict"));
    EngineTest::TearDown();
  }
};

// y = (x + x) + x over `n` elements; only y is kept.
Array Chain(const Array& x) {
  Array twice = Add(x, x);
  return Add(twice, x);
}

TEST_F(TraceTest, NothingRunsBeforeTheRead) {
  Array x = Filled({11}, 2);
  CounterDelta count;
  Array y = Chain(x);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  EXPECT_EQ(count["launches"], 0);
  EXPECT_EQ(count["compiles"], 0);
  EXPECT_FILLED(y, 6);
  EXPECT_EQ(count["launches"], 2);
}

TEST_F(TraceTest, OneProgramFromTheSecondTimeOn) {
  Array x = Filled({12}, 2);
  EXPECT_FILLED(Chain(x), 6);
  for (int i = 0; i < 3; ++i) {
    CounterDelta count;
    EXPECT_FILLED(Chain(x), 6);
    EXPECT_EQ(count["launches"], 1);
    EXPECT_EQ(count["composed"], 1);
    EXPECT_EQ(count["compiles"], i == 0);
  }
}

TEST_F(TraceTest, AValueThatIsKeptLeavesTheProgram) {
  Array x = Filled({13}, 2);
  EXPECT_FILLED(Chain(x), 6);
  EXPECT_FILLED(Chain(x), 6);  // compiled for one live value
  CounterDelta count;
  Array twice = Add(x, x), y = Add(twice, x);
  EXPECT_FILLED(y, 6);
  EXPECT_FILLED(twice, 4);
  EXPECT_EQ(count["compiles"], 1);
  EXPECT_EQ(count["launches"], 1);
  EXPECT_FILLED(Chain(x), 6);  // served by the larger program
  EXPECT_EQ(count["compiles"], 1);
}

TEST_F(TraceTest, InPlaceChainsKeepTheBuffer) {
  Array x = Filled({64}, 1), one = Filled({64}, 1);
  AddInPlace(x, one);
  EXPECT_FILLED(x, 2);
  for (int i = 0; i < 2; ++i) {
    AddInPlace(x, one);
    AddInPlace(x, one);
    EXPECT_FILLED(x, 2 * i + 4);
  }
  CounterDelta count;
  AddInPlace(x, one);
  AddInPlace(x, one);
  EXPECT_FILLED(x, 8);
  EXPECT_EQ(count["launches"], 1);
  EXPECT_EQ(count["donated"], 1);
  EXPECT_EQ(count["vetoed"], 0);
}

TEST_F(TraceTest, ViewsAreReadAndWrittenInside) {
  for (int i = 0; i < 3; ++i) {
    Array x = Filled({4, 5}, 1), row = Filled({1, 5}, 2);
    AddInPlace(x.Narrow(i, 1), row);
    Array sum = Add(x, x);
    auto all = Read(sum);
    ASSERT_TRUE(all.ok());
    for (int64_t k = 0; k < 20; ++k) EXPECT_EQ((*all)[static_cast<size_t>(k)], k / 5 == i ? 6 : 2);
  }
}

TEST_F(TraceTest, TheLimitSeals) {
  EXPECT_OK(SetSetting("fused_records", "3"));
  Array x = Filled({14}, 1);
  CounterDelta count;
  Array y = Add(x, x);
  for (int i = 0; i < 3; ++i) y = Add(y, x);
  EXPECT_EQ(count["records"], 4);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  EXPECT_EQ(count["launches"], 3);
  EXPECT_FILLED(y, 5);
  EXPECT_OK(SetSetting("fused_records", "4096"));
}

TEST_F(TraceTest, ALoopThatNeverReadsIsLearned) {
  EXPECT_OK(SetSetting("fused_records", "32"));
  Array x = Filled({15}, 1), one = Filled({15}, 1);
  auto step = [&] {
    Array t = Add(x, one);
    AddInPlace(x, one);
    AddInPlace(x, one);
    Array u = Add(t, one);
  };
  for (int i = 0; i < 40; ++i) step();
  EXPECT_OK(Synchronize());
  CounterDelta count;
  for (int i = 0; i < 10; ++i) step();
  EXPECT_OK(Synchronize());
  EXPECT_EQ(count["compiles"], 0);
  EXPECT_EQ(count["launches"], 10);
  EXPECT_FILLED(x, 101);
  EXPECT_OK(SetSetting("fused_records", "4096"));
}

TEST_F(TraceTest, AStrictRecordSealsWhatItReads) {
  Array x = Filled({16}, 1), y = Add(x, x);
  EXPECT_OK(SetSetting("eager_mode", "strict"));
  EXPECT_FILLED(Add(y, y), 4);
}

TEST_F(TraceTest, AnotherThreadReadsWhatThisOneRecorded) {
  Array x = Filled({17}, 1), y = Chain(x);
  std::thread([&] { EXPECT_FILLED(y, 3); }).join();
}

TEST_F(TraceTest, AScopedTraceIsOneProgramAtOnce) {
  EXPECT_OK(SetSetting("eager_mode", "strict"));
  Array x = Filled({18}, 1), y, z;
  CounterDelta count;
  {
    ScopedTrace scope;
    y = Add(x, x);
    z = Add(y, y);
  }
  EXPECT_FILLED(z, 4);
  EXPECT_FILLED(y, 2);
  EXPECT_EQ(count["launches"], 1);
  EXPECT_EQ(count["compiles"], 1);
}

TEST_F(TraceTest, ACallableRunsWithoutRecording) {
  Array x = Filled({19}, 1);
  std::unique_ptr<Callable> callable;
  {
    Capture capture;
    Array in(capture.AddInput(TensorType(DType::kF32, {19}), 0), DType::kF32, {19});
    Array y = Chain(in);
    ValueRef out(y.cell->Load());
    EXPECT_TRUE(capture.Makes(out.get()));
    Value* values[] = {out.get()};
    auto made = capture.Finish(values);
    ASSERT_TRUE(made.ok()) << made.status().message();
    callable = std::move(*made);
    EXPECT_FALSE(Read(y).ok()) << "nothing has been computed";
    EXPECT_NE(capture.broken(), "");
  }
  CounterDelta count;
  Value* inputs[] = {x.cell->Load()};
  Cell* cells[] = {nullptr};
  std::vector<Value*> made;
  EXPECT_OK(callable->Run({inputs, cells, 0, nullptr, nullptr}, &made));
  ASSERT_EQ(made.size(), 1u);
  EXPECT_FILLED(Array(made[0], DType::kF32, {19}), 3);
  EXPECT_EQ(count["records"], 0);
  EXPECT_EQ(count["launches"], 1);
}

}  // namespace
}  // namespace tpu::engine
