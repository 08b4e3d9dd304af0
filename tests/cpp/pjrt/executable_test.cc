// SPDX-License-Identifier: Apache-2.0
#include "pjrt/executable.h"

#include "test_util.h"

namespace tpu::pjrt {
namespace {

using ExecutableTest = PluginTest;

constexpr int64_t kN = 4096;

struct Launch {
  Status status;
  Buffer out;
};

Launch RunAdd(Client& client, const LoadedExecutable& add, const Buffer& x, const Buffer& y, int device = 0,
              bool veto = false) {
  PJRT_Buffer* args[2] = {x.get(), y.get()};
  PJRT_Buffer* out = nullptr;
  const int64_t first = 0;
  Status status = add.Execute(args, 2, &first, veto ? 1 : 0, client.devices()[device].device, &out);
  return {std::move(status), Buffer(client.api(), out)};
}

TEST_F(ExecutableTest, Executes) {
  Client& client = TestClient();
  LoadedExecutable add = Take(client.Compile(AddModule(4), client.DefaultCompileOptions()));
  EXPECT_EQ(add.num_outputs(), 1u);
  EXPECT_EQ(add.output_types()[0], F32({4}));
  EXPECT_GE(add.memory_stats().argument_bytes, 32);
  EXPECT_GE(add.memory_stats().output_bytes, 16);
  Buffer x = Upload<float>(client, {1, 2, 3, 4}, F32({4})), y = Upload<float>(client, {10, 20, 30, 40}, F32({4}));
  Launch run = RunAdd(client, add, x, y);
  TPU_ASSERT_OK(run.status);
  EXPECT_EQ(Download<float>(run.out, 4), (std::vector<float>{11, 22, 33, 44}));
}

TEST_F(ExecutableTest, NoOutputsAndManyOutputs) {
  Client& client = TestClient();
  LoadedExecutable none = Take(client.Compile(Module("%x: tensor<f32>", "()", "return"), client.DefaultCompileOptions()));
  EXPECT_EQ(none.num_outputs(), 0u);
  Buffer x = Upload<float>(client, {5}, F32({}));
  PJRT_Buffer* arg = x.get();
  TPU_ASSERT_OK(none.Execute(&arg, 1, nullptr, 0, client.devices()[0].device, nullptr));

  LoadedExecutable two =
      Take(client.Compile(Module("", "(tensor<2xi64>, tensor<i1>)",
                                 Constant("a", "[3, 4]", "tensor<2xi64>") + Constant("b", "true", "tensor<i1>") +
                                     "return %a, %b : tensor<2xi64>, tensor<i1>"),
                          client.DefaultCompileOptions()));
  EXPECT_EQ(two.output_types(), (std::vector<TensorType>{TensorType(DType::kI64, {2}), TensorType(DType::kBool, {})}));
  PJRT_Buffer* outs[2] = {};
  TPU_ASSERT_OK(two.Execute(nullptr, 0, nullptr, 0, client.devices()[0].device, outs));
  Buffer a(client.api(), outs[0]), b(client.api(), outs[1]);
  EXPECT_EQ(Download<int64_t>(a, 2), (std::vector<int64_t>{3, 4}));
}

TEST_F(ExecutableTest, DonationReusesTheMemory) {
  Client& client = TestClient();
  LoadedExecutable add = Take(client.Compile(AddModule(kN, true), client.DefaultCompileOptions()));
  EXPECT_GE(add.memory_stats().alias_bytes, kN * 4);
  Buffer x = Upload(client, std::vector<float>(kN, 1), F32({kN})), y = Upload(client, std::vector<float>(kN, 2), F32({kN}));
  TPU_ASSERT_OK(WaitUntilReady(x));
  const void* memory = Take(x.HostPointer());
  Launch run = RunAdd(client, add, x, y);
  TPU_ASSERT_OK(run.status);
  TPU_ASSERT_OK(WaitUntilReady(run.out));
  EXPECT_EQ(Take(run.out.HostPointer()), memory);
  EXPECT_TRUE(x.IsDeleted());
  EXPECT_EQ(Download<float>(run.out, kN), std::vector<float>(kN, 3));

  Launch again = RunAdd(client, add, x, y);
  EXPECT_FALSE(again.status.ok());
  Status error;
  EXPECT_TRUE(x.IsReady(&error));
  EXPECT_FALSE(x.HostPointer().ok());
}

TEST_F(ExecutableTest, VetoCopies) {
  Client& client = TestClient();
  LoadedExecutable add = Take(client.Compile(AddModule(kN, true), client.DefaultCompileOptions()));
  Buffer x = Upload(client, std::vector<float>(kN, 1), F32({kN}));
  Launch run = RunAdd(client, add, x, x, 0, true);  // the same buffer twice, which donation would refuse
  TPU_ASSERT_OK(run.status);
  TPU_ASSERT_OK(WaitUntilReady(run.out));
  EXPECT_NE(Take(run.out.HostPointer()), Take(x.HostPointer()));
  EXPECT_FALSE(x.IsDeleted());
  EXPECT_EQ(Download<float>(x, kN), std::vector<float>(kN, 1));
  EXPECT_EQ(Download<float>(run.out, kN), std::vector<float>(kN, 2));

  Launch twice = RunAdd(client, add, x, x);
  EXPECT_FALSE(twice.status.ok());
}

TEST_F(ExecutableTest, WrongArgumentCountIsAnError) {
  Client& client = TestClient();
  LoadedExecutable add = Take(client.Compile(AddModule(4), client.DefaultCompileOptions()));
  Buffer x = Upload<float>(client, {1, 2, 3, 4}, F32({4}));
  PJRT_Buffer* arg = x.get();
  PJRT_Buffer* out = nullptr;
  EXPECT_FALSE(add.Execute(&arg, 1, nullptr, 0, client.devices()[0].device, &out).ok());
  EXPECT_EQ(out, nullptr);
}

TEST_F(ExecutableTest, PortableRunsOnAnyDevice) {
  Client& client = TestClient(4);
  LoadedExecutable add = Take(client.Compile(AddModule(kN, true), client.DefaultCompileOptions()));
  LoadedExecutable reloaded = Take(client.Load(Take(add.Serialize())));
  for (const LoadedExecutable* executable : {&add, &reloaded}) {
    for (int device : {2, 0, 3}) {
      Buffer x = Upload(client, std::vector<float>(kN, 1), F32({kN}), device);
      Buffer y = Upload(client, std::vector<float>(kN, 2), F32({kN}), device);
      TPU_ASSERT_OK(WaitUntilReady(x));
      const void* memory = Take(x.HostPointer());
      Launch run = RunAdd(client, *executable, x, y, device);
      TPU_ASSERT_OK(run.status);
      EXPECT_EQ(Download<float>(run.out, kN), std::vector<float>(kN, 3));
      EXPECT_EQ(Take(run.out.HostPointer()), memory);
    }
  }
  Buffer x = Upload(client, std::vector<float>(kN, 1), F32({kN}), 1);
  EXPECT_FALSE(RunAdd(client, add, x, x, 2, true).status.ok());
}

TEST_F(ExecutableTest, SerializeAndLoad) {
  Client& client = TestClient();
  LoadedExecutable add = Take(client.Compile(AddModule(4), client.DefaultCompileOptions()));
  const std::string bytes = Take(add.Serialize());
  LoadedExecutable loaded = Take(client.Load(bytes));
  EXPECT_EQ(loaded.output_types(), add.output_types());
  EXPECT_EQ(loaded.memory_stats().argument_bytes, add.memory_stats().argument_bytes);
  EXPECT_EQ(loaded.memory_stats().output_bytes, add.memory_stats().output_bytes);
  Buffer x = Upload<float>(client, {1, 2, 3, 4}, F32({4}));
  Launch run = RunAdd(client, loaded, x, x);
  TPU_ASSERT_OK(run.status);
  EXPECT_EQ(Download<float>(run.out, 4), (std::vector<float>{2, 4, 6, 8}));

  EXPECT_FALSE(client.Load(std::string_view(bytes).substr(0, bytes.size() / 2)).ok());
  EXPECT_FALSE(client.Load("nonsense").ok());
}

// Replica r is asked of device assignment[r]; lists go in the order of devices().
TEST_F(ExecutableTest, ReplicasMeetInOneLaunch) {
  if (TestPluginIsFake()) GTEST_SKIP() << "the fake plugin runs no collectives";
  Client& client = TestClient(4);
  const std::string module =
      "module @test attributes {mhlo.num_replicas = 2 : i32} { func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, "
      "tensor<ui32>) { %0 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({ "
      "^bb0(%a: tensor<f32>, %b: tensor<f32>): " +
      Binary("s", "add", "%a, %b", "tensor<f32>") + Op("", "return", "%s", "(tensor<f32>) -> ()") +
      "}) : (tensor<2xf32>) -> tensor<2xf32> " + Op("r", "replica_id", "", "() -> tensor<ui32>") +
      "return %0, %r : tensor<2xf32>, tensor<ui32> } }";
  CompileOptions options = client.DefaultCompileOptions();
  options.portable = false;
  options.num_replicas = 2;
  options.device_assignment = {3, 1};
  LoadedExecutable sum = Take(client.Compile(module, options));
  ASSERT_EQ(sum.devices().size(), 2u);
  EXPECT_EQ(sum.num_outputs(), 2u);
  std::vector<Buffer> xs;
  PJRT_Buffer* args[2];
  PJRT_Buffer* const* lists[2] = {&args[0], &args[1]};
  for (int i = 0; i < 2; ++i) {
    int index = 0;
    while (client.devices()[index].device != sum.devices()[i]) ++index;
    EXPECT_EQ(index, options.device_assignment[i]);
    xs.push_back(Upload<float>(client, {float(i + 1), float(10 * i)}, F32({2}), index));
    args[i] = xs[i].get();
  }
  PJRT_Buffer* outs[2][2] = {};
  PJRT_Buffer** out_lists[2] = {outs[0], outs[1]};
  ExecuteCall call;
  call.argument_lists = lists;
  call.num_devices = 2;
  call.num_args = 1;
  call.output_lists = out_lists;
  TPU_ASSERT_OK(sum.Execute(call));
  for (int i = 0; i < 2; ++i) {
    Buffer value(client.api(), outs[i][0]), replica(client.api(), outs[i][1]);
    EXPECT_EQ(Download<float>(value, 2), (std::vector<float>{3, 10}));
    EXPECT_EQ(Download<uint32_t>(replica, 1)[0], static_cast<uint32_t>(i));
  }
}

TEST_F(ExecutableTest, ShardyPartitions) {
  if (TestPluginIsFake()) GTEST_SKIP() << "the fake plugin has no partitioner";
  Client& client = TestClient(4);
  const std::string module =
      "module @test attributes {mhlo.num_partitions = 4 : i32} { sdy.mesh @m = <[\"x\"=4]> func.func @main(%a: tensor<8xf32> "
      "{sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>}) { " +
      Binary("0", "add", "%a, %a", "tensor<8xf32>") + "return %0 : tensor<8xf32> } }";
  CompileOptions options = client.DefaultCompileOptions();
  options.portable = false;
  options.num_partitions = 4;
  options.use_spmd_partitioning = true;
  options.use_shardy_partitioner = true;
  LoadedExecutable twice = Take(client.Compile(module, options));
  ASSERT_EQ(twice.devices().size(), 4u);
  std::vector<Buffer> shards;
  PJRT_Buffer *args[4], *outs[4] = {};
  PJRT_Buffer* const* lists[4];
  PJRT_Buffer** out_lists[4];
  for (int i = 0; i < 4; ++i) {
    shards.push_back(Upload<float>(client, {float(i), float(i)}, F32({2}), i));
    args[i] = shards[i].get();
    lists[i] = &args[i];
    out_lists[i] = &outs[i];
  }
  ExecuteCall call;
  call.argument_lists = lists;
  call.num_devices = 4;
  call.num_args = 1;
  call.output_lists = out_lists;
  TPU_ASSERT_OK(twice.Execute(call));
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(Download<float>(Buffer(client.api(), outs[i]), 2), (std::vector<float>{2.f * i, 2.f * i}));
}

}  // namespace
}  // namespace tpu::pjrt
