// SPDX-License-Identifier: Apache-2.0
// The running engine under test: on the fake plugin, or on the file that TORCH_TPU_TEST_PLUGIN names.
#pragma once
#include "array.h"
#include "base/cpu.h"
#include "base/settings.h"
#include "engine/counters.h"
#include "engine/executables.h"
#include "engine/launch.h"
#include "engine/memory.h"
#include "engine/traps.h"
#include "fake_control.h"

namespace tpu::engine {

#define EXPECT_FILLED(array, expected)                   \
  do {                                                   \
    auto read_ = ReadFilled(array);                      \
    EXPECT_TRUE(read_.ok()) << read_.status().message(); \
    if (read_.ok()) {                                    \
      EXPECT_EQ(*read_, static_cast<float>(expected));   \
    }                                                    \
  } while (0)

#define EXPECT_OK(expr)                     \
  do {                                      \
    Status ok_ = (expr);                    \
    EXPECT_TRUE(ok_.ok()) << ok_.message(); \
  } while (0)

// The error of a status or result says `what`.
template <class T>
void ExpectSays(const Result<T>& r, const std::string& what) {
  EXPECT_FALSE(r.ok()) << "no error, expected: " << what;
  EXPECT_NE(r.status().message().find(what), std::string::npos) << r.status().message();
}
inline void ExpectSays(const Status& s, const std::string& what) {
  EXPECT_FALSE(s.ok()) << "no error, expected: " << what;
  EXPECT_NE(s.message().find(what), std::string::npos) << s.message();
}

inline std::string TestPlugin() {
  std::string path = ForeignEnv("TORCH_TPU_TEST_PLUGIN");
  return path.empty() ? TPU_FAKE_PJRT_PATH : path;
}
inline bool OnFake() { return TestPlugin() == TPU_FAKE_PJRT_PATH; }

// Keeps every consumer away: what is recorded meanwhile stays in the queue.
class HeldQueue {
 public:
  HeldQueue() {
    while (!TryLockQueue()) CpuPause();
  }
  ~HeldQueue() { Release(); }
  void Release() {
    if (held_) UnlockQueue();
    held_ = false;
  }

 private:
  bool held_ = true;
};

class ScopedSetting {
 public:
  ScopedSetting(const std::string& name, int64_t value) : name_(name) {
    for (const SettingInfo& s : ListSettings())
      if (s.name == name) before_ = s.value;
    EXPECT_OK(SetSetting(name, std::to_string(value)));
  }
  ~ScopedSetting() { (void)SetSetting(name_, before_); }

 private:
  std::string name_, before_;
};

// What counters have counted since it was made.
class CounterDelta {
 public:
  CounterDelta() : before_(ReadCounters()) {}
  int64_t operator[](const std::string& name) const { return static_cast<int64_t>(ReadCounters().at(name) - before_.at(name)); }

 private:
  std::map<std::string, uint64_t> before_;
};

// Works on any plugin. Every test ends with an idle queue, no failure to report, and no memory more than before.
class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Runtime::IsStarted()) {
      ASSERT_TRUE(SetSetting("plugin_path", TestPlugin()).ok());
    }
    auto runtime = Runtime::Get();
    ASSERT_TRUE(runtime.ok()) << runtime.status().message();
    if (OnFake()) Fake().reset();
    Settle();
    before_ = GetMemoryStats(0);
    if (OnFake()) live_buffers_ = Fake().live_buffers();
  }
  void TearDown() override {
    if (OnFake()) Fake().reset();
    Status left = Synchronize();
    EXPECT_TRUE(left.ok()) << "nobody has raised: " << left.message();
    Settle();
    MemoryStats after = GetMemoryStats(0);
    EXPECT_EQ(after.allocated, before_.allocated);
    EXPECT_EQ(after.active_allocations, before_.active_allocations);
    EXPECT_EQ(after.reserved, before_.reserved);
    if (!OnFake()) return;
    EXPECT_EQ(Fake().live_buffers(), live_buffers_) << "buffers leak";
    EXPECT_EQ(Fake().live_events(), 0) << "events leak";
    EXPECT_EQ(Fake().live_errors(), 0) << "errors leak";
  }
  // Nothing runs, nothing is kept.
  static void Settle() {
    while (!Synchronize().ok()) {
    }
    DropCaches();
  }

 private:
  MemoryStats before_;
  int64_t live_buffers_ = 0;
};

// Needs the fake's control surface.
class FakeEngineTest : public EngineTest {
 protected:
  void SetUp() override {
    if (!OnFake()) GTEST_SKIP() << "about the fake plugin";
    EngineTest::SetUp();
  }
  void TearDown() override {
    if (OnFake()) EngineTest::TearDown();
  }
};

}  // namespace tpu::engine
