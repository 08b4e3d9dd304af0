// SPDX-License-Identifier: Apache-2.0
// What the tests of src/pjrt share. The plugin under test is the file named by TORCH_TPU_TEST_PLUGIN, else the
// one that the build found (TPU_XLA_CPU_PJRT_PATH).
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "cpp/test_plugin.h"
#include "pjrt/client.h"

namespace tpu::pjrt {

// What the fake plugin lacks on purpose is skipped there; every other plugin must have it.
inline bool TestPluginIsFake() { return TestPluginPath().ends_with("/libfake_pjrt.so"); }

#define TPU_ASSERT_OK(expr)                                         \
  do {                                                              \
    const auto& ok_status_ = (expr);                                \
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

// "module { func.func @main(<args>) -> <results> { <body> } }". Operations are in MLIR's generic form, as src/hlo writes
// them: the fake plugin reads nothing else.
inline std::string Module(const std::string& args, const std::string& results, const std::string& body) {
  return "module @test { func.func @main(" + args + ") -> " + results + " { " + body + " } }";
}

// `%<name> = "stablehlo.<op>"(<operands>) : <signature>`; without `name` no result.
inline std::string Op(const std::string& name, const std::string& op, const std::string& operands,
                      const std::string& signature) {
  return (name.empty() ? "" : "%" + name + " = ") + "\"stablehlo." + op + "\"(" + operands + ") : " + signature + " ";
}

// Two operands and a result of type `t`.
inline std::string Binary(const std::string& name, const std::string& op, const std::string& operands, const std::string& t) {
  return Op(name, op, operands, "(" + t + ", " + t + ") -> " + t);
}

// `value` is what stands in dense<>.
inline std::string Constant(const std::string& name, const std::string& value, const std::string& t) {
  return "%" + name + " = \"stablehlo.constant\"() <{value = dense<" + value + "> : " + t + "}> : () -> " + t + " ";
}

// x + y on f32[n]; `donate`: the result takes x's memory.
inline std::string AddModule(int64_t n, bool donate = false) {
  const std::string t = "tensor<" + std::to_string(n) + "xf32>";
  return Module("%x: " + t + (donate ? " {tf.aliasing_output = 0 : i32}" : "") + ", %y: " + t, t,
                Binary("0", "add", "%x, %y", t) + "return %0 : " + t);
}

// A program on f32[n] that runs for a long time. Multiplications, since plugins count only flops when they decide what
// is cheap enough for the launching thread.
inline std::string SlowModule(int64_t n, int64_t iterations) {
  const std::string t = "tensor<" + std::to_string(n) + "xf32>", i32 = "tensor<i32>", both = "(" + i32 + ", " + t + ")";
  const std::string condition =
      "%c = \"stablehlo.compare\"(%i, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}> "
      ": (tensor<i32>, tensor<i32>) -> tensor<i1> " +
      Op("", "return", "%c", "(tensor<i1>) -> ()");
  const std::string step =
      Binary("j", "add", "%k, %one", i32) + Binary("w", "multiply", "%v, %v", t) + Op("", "return", "%j, %w", both + " -> ()");
  std::string body = Constant("zero", "0", i32) + Constant("one", "1", i32) + Constant("n", std::to_string(iterations), i32);
  body += "%r:2 = \"stablehlo.while\"(%zero, %x) ({ ^bb0(%i: " + i32 + ", %u: " + t + "): " + condition;
  body += "}, { ^bb0(%k: " + i32 + ", %v: " + t + "): " + step + "}) : " + both + " -> " + both + " return %r#1 : " + t;
  return Module("%x: " + t, t, body);
}

struct LoadedPlugin {
  const Plugin* plugin = nullptr;
  std::string printed;  // what loading, making a client and compiling wrote to stdout and stderr
};
inline const LoadedPlugin& TestPlugin() {
  static const LoadedPlugin* loaded = [] {
    auto* result = new LoadedPlugin;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Result<const Plugin*> plugin = Plugin::Load(TestPluginPath());
    Status status = plugin.ok() ? Status() : plugin.status();
    if (plugin.ok()) {
      result->plugin = *plugin;
      Result<Client*> client = Client::Create(*plugin, {});
      status = client.ok() ? (*client)->Compile(AddModule(4), (*client)->DefaultCompileOptions()).status() : client.status();
    }
    result->printed = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) std::abort();
    return result;
  }();
  return *loaded;
}

// One client for each count and mode; with asynchronous launches the plugin runs programs on its own threads.
inline Client& TestClient(int device_count = 1, bool asynchronous = false) {
  static auto* clients = new std::map<std::pair<int, bool>, Client*>;
  Client*& client = (*clients)[{device_count, asynchronous}];
  if (!client) {
    ClientOptions options;
    options.device_count = device_count;
    if (asynchronous) options.asynchronous = true;
    client = Take(Client::Create(TestPlugin().plugin, options));
  }
  return *client;
}

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

}  // namespace tpu::pjrt
