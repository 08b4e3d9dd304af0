// SPDX-License-Identifier: Apache-2.0
// Traps: value-dependent checks reach the reader, whenever the result of the check comes.
#include "engine_fixture.h"

namespace tpu::engine {
namespace {

constexpr char kMessage[] = "index out of range in self";

class TrapTest : public EngineTest {
 protected:
  static Array Good() { return Indices({0, 1}); }
  static Array Bad() { return Indices({0, 99}); }
};

TEST_F(TrapTest, RaisedAtTheReadWithTheKindOfTheRule) {
  Array x = Filled({4, 3}, 1);
  EXPECT_FILLED(IndexSelect(x, Good()), 1);
  Array bad = IndexSelect(x, Bad());
  for (int i = 0; i < 2; ++i) {
    auto read = Read(bad);
    ExpectSays(read, kMessage);
    EXPECT_EQ(read.status().kind(), ErrorKind::kIndex);
  }
  EXPECT_OK(Synchronize());
  EXPECT_FILLED(x, 1);
}

TEST_F(TrapTest, RaisedAtSynchronizeOnce) {
  Array x = Filled({4, 3}, 1);
  Array bad = IndexSelect(x, Bad());
  ExpectSays(Synchronize(), kMessage);
  EXPECT_OK(Synchronize());
}

TEST_F(TrapTest, DependentsRaiseToo) {
  Array x = Filled({4, 3}, 1), two = Filled({2, 3}, 1);
  Array bad = IndexSelect(x, Bad()), sum = Add(bad, two), target = Filled({2, 3}, 1);
  AddInPlace(target, sum);
  ExpectSays(Read(target), kMessage);
  ExpectSays(Read(sum), kMessage);
}

// ---- while the check is under way

class AsyncTrapTest : public FakeEngineTest {
 protected:
  void SetUp() override {
    FakeEngineTest::SetUp();
    if (IsSkipped()) return;
    x_ = Filled({4, 3}, 1);
    two_ = Filled({2, 3}, 1);
    good_ = Indices({0, 1});
    bad_ = Indices({0, 99});
    EXPECT_FILLED(IndexSelect(x_, good_), 1);
    EXPECT_FILLED(Add(two_, two_), 2);
    EXPECT_OK(WaitForQueue(QueuePosition()));
    Fake().set_async(2000);
  }
  void TearDown() override {
    x_ = two_ = good_ = bad_ = Array();
    FakeEngineTest::TearDown();
  }
  Array x_, two_, good_, bad_;
};

TEST_F(AsyncTrapTest, TheReadWaitsForTheCheck) {
  Array bad = IndexSelect(x_, bad_);
  ExpectSays(Read(bad), kMessage);
  EXPECT_OK(Synchronize());
}

TEST_F(AsyncTrapTest, DependentsCarryTheCheck) {
  Array bad = IndexSelect(x_, bad_), sum = Add(bad, two_), more = Add(sum, sum), target = Filled({2, 3}, 1);
  AddInPlace(target, more);
  Array other = Add(two_, two_);
  ExpectSays(Read(target), kMessage);
  ExpectSays(Read(more), kMessage);
  EXPECT_FILLED(other, 2);
  EXPECT_OK(Synchronize());
}

TEST_F(AsyncTrapTest, SynchronizeWaitsForAllChecks) {
  Array a = IndexSelect(x_, good_), bad = IndexSelect(x_, bad_), b = IndexSelect(x_, good_);
  ExpectSays(Synchronize(), kMessage);
  EXPECT_OK(Synchronize());
  EXPECT_FILLED(a, 1);
  EXPECT_FILLED(b, 1);
  ExpectSays(Read(bad), kMessage);
}

TEST_F(AsyncTrapTest, MoreChecksThanThereIsRoomFor) {
  Fake().set_async(100);
  std::vector<Array> results;
  for (int i = 0; i < 200; ++i) results.push_back(IndexSelect(x_, i % 67 == 40 ? bad_ : good_));
  for (int i = 0; i < 200; ++i) {
    if (i % 67 == 40) {
      ExpectSays(Read(results[static_cast<size_t>(i)]), kMessage);
    } else {
      EXPECT_FILLED(results[static_cast<size_t>(i)], 1);
    }
  }
}

TEST_F(AsyncTrapTest, OverwrittenResultsAreReportedAllTheSame) {
  Array bad = IndexSelect(x_, bad_);
  AddOut(two_, two_, bad);
  EXPECT_FILLED(bad, 2);
  ExpectSays(Synchronize(), kMessage);
}

TEST_F(AsyncTrapTest, AFailedLaunchIsItsOwnErrorOnce) {
  Fake().fail_async(1, 13);
  Array bad = IndexSelect(x_, good_), sum = Add(bad, two_);
  ExpectSays(Read(sum), "index_select: injected asynchronous failure");
  EXPECT_OK(Synchronize());
}

// A check that cannot be looked at has not passed.
TEST_F(AsyncTrapTest, ChecksNeverPassByAccident) {
  for (const char* call : {"PJRT_Buffer_ReadyEvent", "PJRT_Event_IsReady", "PJRT_Event_OnReady", "PJRT_Event_Error",
                           "PJRT_Buffer_OpaqueDeviceMemoryDataPointer", "PJRT_Buffer_ToHostBuffer"}) {
    for (int delay : {-1, 1000}) {
      for (int k = 1; k <= 5; ++k) {
        Fake().set_async(delay);
        Array bad = IndexSelect(x_, bad_), good = IndexSelect(x_, good_), sum = Add(bad, two_), fine = Add(good, two_);
        Fake().fail_call_named(call, k, 13);
        EXPECT_FALSE(Read(sum).ok()) << call << " " << k;
        auto read = ReadFilled(fine);
        if (read.ok()) {
          EXPECT_EQ(*read, 2) << call << " " << k;
        }
        Fake().fail_call_named(call, 0, 0);
        Settle();
        EXPECT_FALSE(Read(sum).ok()) << call << " " << k;
      }
    }
  }
}

}  // namespace
}  // namespace tpu::engine
