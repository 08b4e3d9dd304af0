// SPDX-License-Identifier: Apache-2.0
// What the tests of src/pjrt share. The plugin under test is the file named by TORCH_TPU_TEST_PLUGIN.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/settings.h"
#include "pjrt/client.h"

namespace tpu::pjrt {

inline std::string TestPluginPath() { return ForeignEnv("TORCH_TPU_TEST_PLUGIN"); }

#define TPU_ASSERT_OK(expr)                                   \
  do {                                                        \
    const auto& ok_status_ = (expr);                          \
    ASSERT_TRUE(ok_status_.ok()) << StatusOf(ok_status_).message(); \
  } while (0)

inline const Status& StatusOf(const Status& status) { return status; }
template <class T>
const Status& StatusOf(const Result<T>& result) {
  return result.status();
}

// The value of a result that must be there.
template <class T>
T Take(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.status().message();
    std::abort();
  }
  return std::move(*result);
}

struct LoadedPlugin {
  const Plugin* plugin = nullptr;
  std::string printed;  // what loading, making a client and compiling wrote to stdout and stderr
};
const LoadedPlugin& TestPlugin();
// One client for each count and mode; with asynchronous launches the plugin runs programs on its own threads.
Client& TestClient(int device_count = 1, bool asynchronous = false);

// Skips the test when no plugin is named.
class PluginTest : public testing::Test {
 protected:
  void SetUp() override {
    if (TestPluginPath().empty()) GTEST_SKIP() << "TORCH_TPU_TEST_PLUGIN is not set";
  }
};

inline TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }

template <class T>
Buffer Upload(Client& client, const std::vector<T>& data, const TensorType& type, int device = 0) {
  return Take(client.BufferFromHost(data.data(), type, device, HostBufferSemantics::kImmutableOnlyDuringCall));
}

inline Status WaitUntilReady(const Buffer& buffer) {
  Event event = Take(buffer.ReadyEvent());
  for (;;) {
    Result<WaitOutcome> outcome = event.WaitFor(std::chrono::seconds(1));
    if (!outcome.ok()) return outcome.status();
    if (*outcome == WaitOutcome::kReady) return {};
  }
}

template <class T>
std::vector<T> Download(const Buffer& buffer, size_t count) {
  std::vector<T> out(count);
  Event event = Take(buffer.CopyToHost(out.data(), count * sizeof(T)));
  while (Take(event.WaitFor(std::chrono::seconds(1))) == WaitOutcome::kTimedOut) {
  }
  return out;
}

// "module { func.func @main(<args>) -> <results> { <body> } }"
std::string Module(const std::string& args, const std::string& results, const std::string& body);
// x + y on f32[n]; `donate`: the result takes x's memory.
std::string AddModule(int64_t n, bool donate = false);
// A program on f32[n] that runs for a long time.
std::string SlowModule(int64_t n, int64_t iterations);

}  // namespace tpu::pjrt
