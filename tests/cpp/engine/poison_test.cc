// SPDX-License-Identifier: Apache-2.0
// Failures: who is poisoned, what cures, who raises, how often.
#include "engine_fixture.h"

namespace tpu::engine {
namespace {

constexpr char kInjected[] = "injected failure";
constexpr char kExecute[] = "PJRT_LoadedExecutable_Execute";

class PoisonTest : public FakeEngineTest {
 protected:
  void SetUp() override {
    FakeEngineTest::SetUp();
    if (IsSkipped()) return;
    x_ = Filled({4, 4}, 1);
    (void)Add(x_, x_);  // compiled before anything fails
    EXPECT_OK(WaitForQueue(QueuePosition()));
  }
  void TearDown() override {
    x_ = Array();
    FakeEngineTest::TearDown();
  }
  void FailNextExecute(int code = 13) { Fake().fail_call_named(kExecute, 1, code); }

  Array x_;
};

TEST_F(PoisonTest, AFailedRunPoisonsItsResultAndAllThatDependOnIt) {
  FailNextExecute();
  Array a = Add(x_, x_), b = Add(a, x_), c = Add(b, b), other = Add(x_, x_);
  for (const Array& bad : {c, b, a, c}) {
    ExpectSays(ReadFilled(bad), kInjected);
    ExpectSays(ReadFilled(bad), "add.Tensor");
  }
  EXPECT_FILLED(other, 2);
}

TEST_F(PoisonTest, SynchronizeRaisesEachRootOnce) {
  FailNextExecute();
  Array a = Add(x_, x_), b = Add(a, x_), c = Add(a, b);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  FailNextExecute();
  Array d = Add(x_, x_);
  ExpectSays(Synchronize(), kInjected);
  ExpectSays(Synchronize(), kInjected);
  EXPECT_OK(Synchronize());
  ExpectSays(ReadFilled(c), kInjected);
}

TEST_F(PoisonTest, WhatAReadHasRaisedIsNotRaisedAgain) {
  FailNextExecute();
  Array a = Add(x_, x_), b = Add(a, x_);
  ExpectSays(ReadFilled(b), kInjected);  // the dependent's error is the root's
  EXPECT_OK(Synchronize());
}

TEST_F(PoisonTest, AFullOverwriteCures) {
  FailNextExecute();
  Array a = Add(x_, x_);
  AddOut(x_, x_, a);
  EXPECT_FILLED(a, 2);
  ExpectSays(Synchronize(), kInjected);
}

TEST_F(PoisonTest, APartialWriteDoesNotCure) {
  FailNextExecute();
  Array a = Add(x_, x_);
  AddOut(x_.Narrow(0, 2), x_.Narrow(0, 2), a.Narrow(1, 2));
  ExpectSays(ReadFilled(a), kInjected);
}

TEST_F(PoisonTest, AFailedPartialWritePoisonsTheBase) {
  Array a = Filled({4, 4}, 1), row = Filled({1, 4}, 1);
  AddInPlace(a.Narrow(0, 1), row);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  FailNextExecute();
  AddInPlace(a.Narrow(2, 1), row);
  ExpectSays(ReadFilled(a), kInjected);
  ExpectSays(ReadFilled(Add(a.Narrow(0, 1), row)), kInjected);
  AddOut(x_, x_, a);
  EXPECT_FILLED(a, 2);
}

TEST_F(PoisonTest, ReadersBeforeTheFailureAreRight) {
  Array a = Filled({4, 4}, 1);
  HeldQueue held;
  Array before = Add(a, x_);
  AddInPlace(a, x_);
  Fake().fail_call_named(kExecute, 2, 13);
  held.Release();
  EXPECT_FILLED(before, 2);
  ExpectSays(ReadFilled(a), kInjected);
}

TEST_F(PoisonTest, OutOfMemoryOfThePluginKeepsItsKind) {
  FailNextExecute(8);
  Array a = Add(x_, x_);
  auto read = ReadFilled(a);
  ExpectSays(read, "add.Tensor");
  EXPECT_EQ(read.status().kind(), ErrorKind::kOutOfMemory);
}

TEST_F(PoisonTest, AFailedCompileIsRaisedAtTheCallAndForgotten) {
  Array y = Filled({5}, 1);
  Fake().fail_call_named("PJRT_Client_Compile", 1, 13);
  ExpectSays(TryAdd(y, y), "add.Tensor");
  EXPECT_FILLED(Add(y, y), 2);
}

TEST_F(PoisonTest, ManyFailuresAreForgottenOldestFirst) {
  for (int i = 0; i < 1200; ++i) {
    FailNextExecute();
    Array a = Add(x_, x_);
    EXPECT_OK(WaitForQueue(QueuePosition()));
  }
  int raised = 0;
  while (!Synchronize().ok()) ++raised;
  EXPECT_EQ(raised, 1024);
}

// ---- failures after Execute has returned

class AsyncPoisonTest : public PoisonTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    PoisonTest::SetUp();
    if (!IsSkipped()) Fake().set_async(GetParam());
  }
};

TEST_P(AsyncPoisonTest, SynchronizeRaisesTheRootOnce) {
  Fake().fail_async(1, 13);
  Array a = Add(x_, x_), b = Add(a, x_), c = Add(b, a), d = Add(c, c), e = Add(d, d), f = Add(e, a);
  Array other = Add(x_, x_);
  ExpectSays(Synchronize(), "injected asynchronous failure");
  EXPECT_OK(Synchronize());
  for (const Array& bad : {a, f, c}) ExpectSays(ReadFilled(bad), "add.Tensor: injected asynchronous failure");
  EXPECT_FILLED(other, 2);
  EXPECT_OK(Synchronize());
}

TEST_P(AsyncPoisonTest, AReadOfADependentRaisesForTheRoot) {
  Fake().fail_async(1, 13);
  Array a = Add(x_, x_), b = Add(a, x_), c = Add(b, a);
  ExpectSays(ReadFilled(c), "injected asynchronous failure");
  EXPECT_OK(Synchronize());
  ExpectSays(ReadFilled(a), "injected asynchronous failure");
  EXPECT_OK(Synchronize());
}

TEST_P(AsyncPoisonTest, TwoRootsOfOneTextAreTwo) {
  Fake().fail_async(1, 13);
  Array a = Add(x_, x_), b = Add(a, x_);
  EXPECT_OK(WaitForQueue(QueuePosition()));
  Fake().fail_async(1, 13);
  Array c = Add(x_, x_), d = Add(c, c);
  ExpectSays(ReadFilled(b), "injected asynchronous failure");
  ExpectSays(Synchronize(), "injected asynchronous failure");
  EXPECT_OK(Synchronize());
}

TEST_P(AsyncPoisonTest, AFullOverwriteCures) {
  Fake().fail_async(1, 13);
  Array a = Add(x_, x_);
  AddOut(x_, x_, a);
  EXPECT_FILLED(a, 2);
  ExpectSays(Synchronize(), "injected asynchronous failure");
}

INSTANTIATE_TEST_SUITE_P(Delay, AsyncPoisonTest, testing::Values(-1, 0, 2000));

}  // namespace
}  // namespace tpu::engine
