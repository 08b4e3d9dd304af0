// SPDX-License-Identifier: Apache-2.0
#include "test_util.h"

#include <map>
#include <utility>

namespace tpu::pjrt {

const LoadedPlugin& TestPlugin() {
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

Client& TestClient(int device_count, bool asynchronous) {
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

std::string Module(const std::string& args, const std::string& results, const std::string& body) {
  return "module @test { func.func @main(" + args + ") -> " + results + " { " + body + " } }";
}

std::string AddModule(int64_t n, bool donate) {
  const std::string t = "tensor<" + std::to_string(n) + "xf32>";
  return Module("%x: " + t + (donate ? " {tf.aliasing_output = 0 : i32}" : "") + ", %y: " + t, t,
                "%0 = stablehlo.add %x, %y : " + t + " return %0 : " + t);
}

// Multiplications, since plugins count only flops when they decide what is cheap enough for the launching thread.
std::string SlowModule(int64_t n, int64_t iterations) {
  const std::string t = "tensor<" + std::to_string(n) + "xf32>";
  return Module("%x: " + t, t,
                "%zero = stablehlo.constant dense<0> : tensor<i32> "
                "%n = stablehlo.constant dense<" + std::to_string(iterations) + "> : tensor<i32> "
                "%one = stablehlo.constant dense<1> : tensor<i32> "
                "%r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, " + t +
                " cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> "
                "stablehlo.return %c : tensor<i1> } do { %j = stablehlo.add %i, %one : tensor<i32> "
                "%w = stablehlo.multiply %v, %v : " + t + " stablehlo.return %j, %w : tensor<i32>, " + t + " } "
                "return %r#1 : " + t);
}

}  // namespace tpu::pjrt
