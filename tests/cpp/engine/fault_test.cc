// SPDX-License-Identifier: Apache-2.0
// Every fallible call of a run fails once: an error that says where, never a wrong value, and a clean run after it.
#include "engine_fixture.h"

namespace tpu::engine {
namespace {

// Uploads, functional and in-place programs, views, a check, a reload, reads.
struct Outcome {
  std::vector<Status> errors;
  int values = 0;
};

class FaultTest : public FakeEngineTest, public testing::WithParamInterface<int> {
 protected:
  static void Expect(Result<float> read, float expected, Outcome* outcome, int64_t n) {
    if (read.ok()) {
      EXPECT_EQ(*read, expected) << "a wrong value when call " << n << " fails";
      ++outcome->values;
    } else {
      outcome->errors.push_back(read.status());
    }
  }

  static Result<Array> TryFloats(float x) {
    std::vector<float> data(12, x);
    auto value = Upload(data.data(), TensorType(DType::kF32, {4, 3}), 0);
    if (!value.ok()) return value.status();
    return Array(*value, DType::kF32, {4, 3});
  }

  // Stops at the first error of a call, as a program does; reads what it has by then.
  static void Run(Outcome* out, int64_t n) {
    auto note = [&](const Status& s) {
      if (!s.ok()) out->errors.push_back(s);
      return s.ok();
    };
    auto x = TryFloats(1), y = TryFloats(2);
    if (!note(x.status()) || !note(y.status())) return;
    auto a = TryAdd(*x, *y);
    if (!note(a.status())) return;
    auto b = TryAdd(*a, *a);
    if (!note(b.status())) return;
    Status in_place = TryAddInPlace(*y, *b);
    if (!note(in_place)) return;
    Status view = TryAddInPlace(x->Narrow(1, 2), a->Narrow(0, 2));
    if (!note(view)) return;
    int64_t indices[] = {0, 3};
    auto index_value = Upload(indices, TensorType(DType::kI64, {2}), 0);
    if (!note(index_value.status())) return;
    auto rows = TryIndexSelect(*a, Array(*index_value, DType::kI64, {2}));
    if (!note(rows.status())) return;
    Expect(ReadFilled(*rows), 3, out, n);
    Expect(ReadFilled(*b), 6, out, n);
    Expect(ReadFilled(*y), 8, out, n);
    auto all = Read(*x);
    if (note(all.status())) {
      for (size_t i = 0; i < 12; ++i) EXPECT_EQ((*all)[i], i / 3 == 1 || i / 3 == 2 ? 4 : 1) << "call " << n;
      ++out->values;
    }
    // As a read on an engine without host memory does it.
    ValueRef v(a->cell->Load());
    Status waited = Wait(v.get());
    if (note(waited)) {
      float copy[12] = {};
      pjrt::Buffer buffer(Runtime::Started().client().api(), v->buffer);
      auto event = buffer.CopyToHost(copy, sizeof copy);
      buffer.release();
      Status copied = event.ok() ? FinishHostCopy(&*event) : event.status();
      if (note(copied.ok() ? copied : std::move(copied).WithContext("copy"))) {
        for (float f : copy) EXPECT_EQ(f, 3) << "call " << n;
      }
    }
  }
};

TEST_P(FaultTest, EveryCallFailsOnce) {
  for (int code : {13, 8}) {
    for (bool compiled : {false, true}) {
      Fake().reset();
      Fake().set_async(GetParam());
      Outcome clean;
      if (!compiled) {
        // What is compiled stays so: the calls of compiling are those of FirstUse.
        Run(&clean, 0);
        EXPECT_OK(Synchronize());
        clean = Outcome();
      }
      // Who polls goes on after a failed poll, and how often it polls depends on time.
      const auto polls = [] { return Fake().calls("PJRT_Event_IsReady"); };
      int64_t before = Fake().fallible_calls(), polled = -polls();
      Run(&clean, 0);
      EXPECT_OK(Synchronize());
      EXPECT_TRUE(clean.errors.empty());
      int64_t calls = Fake().fallible_calls() - before;
      polled += polls();
      ASSERT_GT(calls, 20);
      int raised = 0;
      for (int64_t n = 1; n <= calls + 5; ++n) {
        Fake().fail_call(n, code);
        Outcome outcome;
        Run(&outcome, n);
        for (Status s = Synchronize(); !s.ok(); s = Synchronize()) outcome.errors.push_back(s);
        Fake().fail_call(0, 0);
        for (const Status& s : outcome.errors) {
          EXPECT_FALSE(s.message().empty());
          EXPECT_NE(s.message().find(':'), std::string::npos) << "no word about where: " << s.message();
        }
        raised += !outcome.errors.empty();
        Outcome again;
        Run(&again, n);
        EXPECT_OK(Synchronize());
        EXPECT_TRUE(again.errors.empty()) << "after call " << n << ": " << again.errors[0].message();
        EXPECT_EQ(again.values, 4);
        if (HasFailure()) return;
      }
      EXPECT_GT(raised, (calls - polled) / 3);
    }
  }
}

TEST_P(FaultTest, FirstUse) {
  // New programs each time: every call of a compile fails.
  Fake().set_async(GetParam());
  static int64_t size = 7000;
  auto use = [&]() -> Result<float> {
    Array x = Filled({++size}, 1);
    auto sum = TryAdd(x, x);
    if (!sum.ok()) return sum.status();
    return ReadFilled(*sum);
  };
  EXPECT_TRUE(use().ok());
  int64_t before = Fake().fallible_calls();
  EXPECT_TRUE(use().ok());
  int64_t calls = Fake().fallible_calls() - before;
  for (int64_t n = 2; n <= calls; ++n) {  // call 1 is the upload of the test itself
    ++size;
    Array x = Filled({size}, 1);
    Fake().fail_call(n - 1, 13);
    auto sum = TryAdd(x, x);
    Status error = sum.ok() ? Status() : sum.status();
    if (sum.ok()) {
      auto read = ReadFilled(*sum);
      if (read.ok()) {
        EXPECT_EQ(*read, 2);
      }
      error = read.status();
    }
    if (!error.ok()) ExpectSays(error, "add.Tensor");
    Fake().fail_call(0, 0);
    EXPECT_FILLED(Add(x, x), 2);  // a failed compile is tried again
    Settle();
  }
}

INSTANTIATE_TEST_SUITE_P(Delay, FaultTest, testing::Values(-1, 0, 300));

}  // namespace
}  // namespace tpu::engine
