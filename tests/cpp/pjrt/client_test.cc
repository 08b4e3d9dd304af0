// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client.h"

#include <cstdint>
#include <limits>
#include <random>

#include "test_util.h"

namespace tpu::pjrt {
namespace {

using ClientTest = PluginTest;

TEST_F(ClientTest, Devices) {
  for (int count : {1, 4}) {
    Client& client = TestClient(count);
    ASSERT_EQ(client.devices().size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(client.devices()[i].id, i);
      EXPECT_NE(client.devices()[i].device, nullptr);
      EXPECT_FALSE(client.devices()[i].kind.empty());
      EXPECT_FALSE(client.devices()[i].debug_string.empty());
    }
    EXPECT_EQ(client.platform_name(), "cpu");
    EXPECT_EQ(client.profile().kind, EngineKind::kCpu);
  }
  Result<Client*> none = Client::Create(TestPlugin().plugin, {.device_count = 0, .platform = "", .asynchronous = {}});
  EXPECT_EQ(none.status().kind(), ErrorKind::kValue);
}

TEST_F(ClientTest, CompileErrorsCarryThePluginsWords) {
  Client& client = TestClient();
  Result<LoadedExecutable> bad = client.Compile("module { nonsense }", client.DefaultCompileOptions());
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().kind(), ErrorKind::kRuntime);
  EXPECT_FALSE(bad.status().message().empty());
}

TEST_F(ClientTest, EveryElementTypeRoundTrips) {
  Client& client = TestClient();
  std::mt19937 random(1);
  for (int d = 0; d < static_cast<int>(DType::kInvalid); ++d) {
    TensorType type(static_cast<DType>(d), {3, 5});
    SCOPED_TRACE(HloName(type.dtype));
    std::vector<uint8_t> data(type.bytes());
    for (uint8_t& byte : data) byte = type.dtype == DType::kBool ? random() & 1 : random();
    Buffer buffer = Upload(client, data, type);
    TPU_ASSERT_OK(buffer.CheckType(type));
    EXPECT_EQ(Take(buffer.Type()), type);
    TPU_ASSERT_OK(WaitUntilReady(buffer));
    EXPECT_EQ(std::memcmp(Take(buffer.HostPointer()), data.data(), data.size()), 0);
    EXPECT_EQ(Download<uint8_t>(buffer, data.size()), data);
    EXPECT_GE(Take(buffer.OnDeviceSize()), data.size());

    const std::string t = type.ToHlo();
    LoadedExecutable same =
        Take(client.Compile(Module("%x: " + t, t, Op("0", "reshape", "%x", "(" + t + ") -> " + t) + "return %0 : " + t),
                            client.DefaultCompileOptions()));
    ASSERT_EQ(same.output_types().size(), 1u);
    EXPECT_EQ(same.output_types()[0], type);
    PJRT_Buffer* arg = buffer.get();
    PJRT_Buffer* out = nullptr;
    TPU_ASSERT_OK(same.Execute(&arg, 1, nullptr, 0, client.devices()[0].device, &out));
    EXPECT_EQ(Download<uint8_t>(Buffer(client.api(), out), data.size()), data);
  }
}

TEST_F(ClientTest, CheckTypeNamesBothTypes) {
  Client& client = TestClient();
  Buffer buffer = Upload<float>(client, {1, 2, 3, 4}, F32({4}));
  EXPECT_NE(buffer.CheckType(F32({2, 2})).message().find("tensor<4xf32>, expected tensor<2x2xf32>"), std::string::npos);
  EXPECT_FALSE(buffer.CheckType(TensorType(DType::kI32, {4})).ok());
}

TEST_F(ClientTest, ScalarsAndEmptyArrays) {
  Client& client = TestClient();
  Buffer scalar = Upload<float>(client, {2.5f}, F32({}));
  EXPECT_EQ(Download<float>(scalar, 1)[0], 2.5f);
  float something = 0;
  for (const void* data : {static_cast<const void*>(nullptr), static_cast<const void*>(&something)}) {
    Buffer empty = Take(client.BufferFromHost(data, F32({0, 3}), 0, HostBufferSemantics::kImmutableOnlyDuringCall));
    TPU_ASSERT_OK(empty.CheckType(F32({0, 3})));
    TPU_ASSERT_OK(WaitUntilReady(empty));
    EXPECT_TRUE(Download<float>(empty, 0).empty());
    TPU_ASSERT_OK(empty.HostPointer());
  }
  const std::string body =
      Constant("z", "7.0", "tensor<f32>") + Binary("0", "add", "%x, %x", "tensor<0x3xf32>") +
      "%1 = \"stablehlo.reduce\"(%0, %z) <{dimensions = array<i64: 0>}> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): " +
      Binary("s", "add", "%a, %b", "tensor<f32>") + Op("", "return", "%s", "(tensor<f32>) -> ()") +
      "}) : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32> return %0, %1 : tensor<0x3xf32>, tensor<3xf32>";
  LoadedExecutable sum = Take(
      client.Compile(Module("%x: tensor<0x3xf32>", "(tensor<0x3xf32>, tensor<3xf32>)", body), client.DefaultCompileOptions()));
  Buffer empty = Take(client.BufferFromHost(nullptr, F32({0, 3}), 0, HostBufferSemantics::kImmutableOnlyDuringCall));
  PJRT_Buffer* arg = empty.get();
  PJRT_Buffer* outs[2] = {};
  TPU_ASSERT_OK(sum.Execute(&arg, 1, nullptr, 0, client.devices()[0].device, outs));
  Buffer first(client.api(), outs[0]), second(client.api(), outs[1]);
  EXPECT_EQ(Download<float>(second, 3), (std::vector<float>{7, 7, 7}));
}

TEST_F(ClientTest, StridedUpload) {
  Client& client = TestClient();
  std::vector<float> m = {0, 1, 2, 3, 4, 5};  // 2x3, read as its transpose
  int64_t strides[2] = {4, 12};
  Buffer t = Take(client.BufferFromHost(m.data(), F32({3, 2}), 0, HostBufferSemantics::kImmutableOnlyDuringCall, strides));
  EXPECT_EQ(Download<float>(t, 6), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  int64_t broadcast[2] = {0, 4};
  Buffer b = Take(client.BufferFromHost(m.data(), F32({2, 2}), 0, HostBufferSemantics::kImmutableOnlyDuringCall, broadcast));
  EXPECT_EQ(Download<float>(b, 4), (std::vector<float>{0, 1, 0, 1}));
}

TEST_F(ClientTest, ZeroCopyKeepsTheMemoryUntilTheBufferIsGone) {
  Client& client = TestClient();
  alignas(64) static float data[16] = {1, 2, 3};
  Event done;
  Buffer buffer = Take(client.BufferFromHost(data, F32({16}), 0, HostBufferSemantics::kImmutableZeroCopy, nullptr, &done));
  TPU_ASSERT_OK(WaitUntilReady(buffer));
  EXPECT_EQ(Take(buffer.HostPointer()), data);
  EXPECT_FALSE(done.IsReady());
  buffer.reset();
  EXPECT_EQ(Take(done.WaitFor(std::chrono::seconds(10))), WaitOutcome::kReady);
}

TEST_F(ClientTest, CopyToDevice) {
  Client& client = TestClient(4);
  Buffer here = Upload<float>(client, {1, 2, 3, 4}, F32({4}), 1);
  Buffer there = Take(client.CopyToDevice(here, 3));
  TPU_ASSERT_OK(WaitUntilReady(there));
  EXPECT_EQ(Download<float>(there, 4), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_NE(Take(here.HostPointer()), Take(there.HostPointer()));
  EXPECT_EQ(client.CopyToDevice(here, 4).status().kind(), ErrorKind::kValue);
  EXPECT_EQ(client.CopyToDevice(here, -1).status().kind(), ErrorKind::kValue);
}

TEST_F(ClientTest, MemoryStatsAreNotImplementedOnCpu) {
  EXPECT_EQ(TestClient().MemoryStatsOf(0).status().kind(), ErrorKind::kNotImplemented);
}

// 256 TiB: more than the address space, so that no overcommitting kernel grants it.
TEST_F(ClientTest, TooLargeResultIsOutOfMemory) {
  Client& client = TestClient();
  LoadedExecutable huge =
      Take(client.Compile(Module("%x: tensor<f32>", "tensor<70368744177664xf32>",
                                 "%0 = \"stablehlo.broadcast_in_dim\"(%x) <{broadcast_dimensions = array<i64>}> : "
                                 "(tensor<f32>) -> tensor<70368744177664xf32> "
                                 "return %0 : tensor<70368744177664xf32>"),
                          client.DefaultCompileOptions()));
  Buffer x = Upload<float>(client, {1}, F32({}));
  PJRT_Buffer* arg = x.get();
  PJRT_Buffer* out = nullptr;
  Status status = huge.Execute(&arg, 1, nullptr, 0, client.devices()[0].device, &out);
  if (status.ok()) status = WaitUntilReady(Buffer(client.api(), out));
  EXPECT_EQ(status.kind(), ErrorKind::kOutOfMemory) << status.message();
}

TEST_F(ClientTest, LeakedObjectsStayAlive) {
  Client& client = TestClient();
  PJRT_Buffer* raw;
  {
    Buffer buffer = Upload<float>(client, {1, 2}, F32({2}));
    raw = buffer.get();
    g_leak_plugin_objects = true;
  }
  g_leak_plugin_objects = false;
  Buffer again(client.api(), raw);
  EXPECT_EQ(Download<float>(again, 2), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace tpu::pjrt
