// SPDX-License-Identifier: Apache-2.0
// The C API and the control surface of the fake.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "control.h"
#include "plugin_for_test.h"

namespace fake_pjrt {
namespace {

const Plugin& Fake() {
  static const Plugin plugin(GetPjrtApi(), 2);
  return plugin;
}

// (x, y) -> x + y; x is aliased to the result.
const char* const kAddInPlace = R"(module @add {
func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>) -> tensor<4xf32> {
%0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
"func.return"(%0) : (tensor<4xf32>) -> ()
}
})";
const char* const kNegate = R"(module @negate {
func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
%0 = "stablehlo.negate"(%a) : (tensor<4xf32>) -> tensor<4xf32>
"func.return"(%0) : (tensor<4xf32>) -> ()
}
})";
using F = std::vector<float>;

class Api : public testing::Test {
 protected:
  void SetUp() override {
    Fake();
    fake_pjrt_reset();
    buffers_ = fake_pjrt_live_buffers();
    bytes_ = fake_pjrt_live_bytes();
    executables_ = fake_pjrt_live_executables();
    events_ = fake_pjrt_live_events();
    errors_ = fake_pjrt_live_errors();
  }
  void TearDown() override {
    fake_pjrt_reset();
    EXPECT_EQ(fake_pjrt_live_buffers(), buffers_);
    EXPECT_EQ(fake_pjrt_live_bytes(), bytes_);
    EXPECT_EQ(fake_pjrt_live_executables(), executables_);
    EXPECT_EQ(fake_pjrt_live_events(), events_);
    EXPECT_EQ(fake_pjrt_live_errors(), errors_);
  }
  PJRT_LoadedExecutable* MustCompile(const std::string& text, const std::string& options = Plugin::Options()) {
    PJRT_LoadedExecutable* e = nullptr;
    Failure f = Fake().Compile(text, &e, options);
    EXPECT_EQ(f.code, 0) << f.message;
    return e;
  }
  static PJRT_Buffer* Ones() { return Fake().Upload(HostArray::F32({4}, {1, 2, 3, 4})); }
  static F Read(PJRT_Buffer* b) {
    HostArray a;
    Failure f = Fake().Download(b, &a);
    EXPECT_EQ(f.code, 0) << f.message;
    return a.As<float>();
  }
  static void* Pointer(PJRT_Buffer* b) {
    TEST_ARGS(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, a);
    a.buffer = b;
    return Fake().Take(Fake().api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&a)).code ? nullptr : a.device_memory_ptr;
  }
  static bool IsDeleted(PJRT_Buffer* b) {
    TEST_ARGS(PJRT_Buffer_IsDeleted_Args, a);
    a.buffer = b;
    Fake().Must(Fake().api->PJRT_Buffer_IsDeleted(&a));
    return a.is_deleted;
  }
  static bool IsReady(PJRT_Event* e) {
    TEST_ARGS(PJRT_Event_IsReady_Args, a);
    a.event = e;
    Fake().Must(Fake().api->PJRT_Event_IsReady(&a));
    return a.is_ready;
  }

  int64_t buffers_ = 0, bytes_ = 0, executables_ = 0, events_ = 0, errors_ = 0;
};

TEST_F(Api, TableIsComplete) {
  const PJRT_Api* api = GetPjrtApi();
  EXPECT_EQ(api->struct_size, PJRT_Api_STRUCT_SIZE);
  auto slots = reinterpret_cast<void* const*>(&api->PJRT_Error_Destroy);
  for (size_t i = 0; i < (PJRT_Api_STRUCT_SIZE - offsetof(PJRT_Api, PJRT_Error_Destroy)) / sizeof(void*); ++i)
    EXPECT_NE(slots[i], nullptr) << "slot " << i;
}

TEST_F(Api, StructSizesAreChecked) {
  TEST_ARGS(PJRT_Client_PlatformName_Args, a);
  a.client = Fake().client;
  a.struct_size -= 8;
  Failure f = Fake().Take(Fake().api->PJRT_Client_PlatformName(&a));
  EXPECT_EQ(f.code, 3);
  EXPECT_NE(f.message.find("Unexpected PJRT_Client_PlatformName_Args size"), std::string::npos) << f.message;
  a.struct_size += 80;  // a newer caller
  Fake().Must(Fake().api->PJRT_Client_PlatformName(&a));
  EXPECT_EQ(std::string(a.platform_name, a.platform_name_size), "cpu");
}

TEST_F(Api, StridedUploads) {
  const float data[] = {1, 2, 3, 4, 5, 6};  // 2x3
  auto upload = [&](std::vector<int64_t> dims, std::vector<int64_t> strides, const float* start) {
    TEST_ARGS(PJRT_Client_BufferFromHostBuffer_Args, a);
    a.client = Fake().client;
    a.data = start;
    a.type = PJRT_Buffer_Type_F32;
    a.dims = dims.data();
    a.num_dims = dims.size();
    a.byte_strides = strides.data();
    a.num_byte_strides = strides.size();
    a.device = Fake().devices[0];
    Fake().Must(Fake().api->PJRT_Client_BufferFromHostBuffer(&a));
    Fake().Destroy(a.done_with_host_buffer);
    F values = Read(a.buffer);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Pointer(a.buffer)) % 64, 0u);
    Fake().Destroy(a.buffer);
    return values;
  };
  EXPECT_EQ(upload({3, 2}, {4, 12}, data), (F{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(upload({6}, {-4}, data + 5), (F{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(upload({3}, {0}, data), (F{1, 1, 1}));
  EXPECT_EQ(upload({0, 3}, {12, 4}, nullptr), F{});
}

TEST_F(Api, ZeroCopy) {
  alignas(64) float data[4] = {1, 2, 3, 4};
  TEST_ARGS(PJRT_Client_BufferFromHostBuffer_Args, a);
  int64_t dims[] = {4};
  a.client = Fake().client;
  a.data = data;
  a.type = PJRT_Buffer_Type_F32;
  a.dims = dims;
  a.num_dims = 1;
  a.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  Fake().Must(Fake().api->PJRT_Client_BufferFromHostBuffer(&a));
  EXPECT_EQ(Pointer(a.buffer), data);
  EXPECT_FALSE(IsReady(a.done_with_host_buffer));
  Fake().Destroy(a.buffer);
  EXPECT_TRUE(IsReady(a.done_with_host_buffer));
  Fake().Destroy(a.done_with_host_buffer);
}

TEST_F(Api, Donation) {
  PJRT_LoadedExecutable* add = MustCompile(kAddInPlace);
  PJRT_Buffer *x = Ones(), *y = Ones();
  std::vector<PJRT_Buffer*> out, again;
  void* pointer = Pointer(x);
  ASSERT_EQ(Fake().Execute(add, {x, y}, &out, {0}).code, 0);  // vetoed: a copy
  EXPECT_FALSE(IsDeleted(x));
  EXPECT_NE(Pointer(out[0]), pointer);
  Fake().Destroy(out[0]);
  int64_t bytes = fake_pjrt_live_bytes();
  ASSERT_EQ(Fake().Execute(add, {x, y}, &out).code, 0);
  EXPECT_EQ(fake_pjrt_live_bytes(), bytes);
  EXPECT_TRUE(IsDeleted(x));
  EXPECT_EQ(Pointer(x), nullptr);
  EXPECT_EQ(Pointer(out[0]), pointer);
  EXPECT_EQ(Read(out[0]), (F{2, 4, 6, 8}));
  Failure f = Fake().Execute(add, {x, y}, &again);
  EXPECT_EQ(f.code, 3);
  EXPECT_NE(f.message.find("deleted or donated"), std::string::npos) << f.message;
  f = Fake().Execute(add, {y, y}, &again);
  EXPECT_EQ(f.code, 3);
  EXPECT_NE(f.message.find("donate the same buffer twice"), std::string::npos) << f.message;
  EXPECT_FALSE(IsDeleted(y));
  ASSERT_EQ(Fake().Execute(add, {y, y}, &again, {0}).code, 0);
  Fake().Destroy(again[0]);
  // Held from outside: donated in name, the memory is fresh.
  TEST_ARGS(PJRT_Buffer_IncreaseExternalReferenceCount_Args, hold);
  hold.buffer = out[0];
  Fake().Must(Fake().api->PJRT_Buffer_IncreaseExternalReferenceCount(&hold));
  ASSERT_EQ(Fake().Execute(add, {out[0], y}, &again).code, 0);
  EXPECT_TRUE(IsDeleted(out[0]));
  EXPECT_NE(Pointer(again[0]), pointer);
  for (PJRT_Buffer* b : {x, y, out[0], again[0]}) Fake().Destroy(b);
  Fake().Destroy(add);
}

TEST_F(Api, SwappedDonationsKeepTheirValues) {
  PJRT_LoadedExecutable* swap = MustCompile(R"(module @swap {
func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 :
i32}) -> (tensor<4xf32>, tensor<4xf32>) {
"func.return"(%b, %a) : (tensor<4xf32>, tensor<4xf32>) -> ()
}
})");
  PJRT_Buffer *x = Ones(), *y = Fake().Upload(HostArray::F32({4}, {5, 6, 7, 8}));
  std::vector<PJRT_Buffer*> out;
  ASSERT_EQ(Fake().Execute(swap, {x, y}, &out).code, 0);
  EXPECT_EQ(Read(out[0]), (F{5, 6, 7, 8}));
  EXPECT_EQ(Read(out[1]), (F{1, 2, 3, 4}));
  for (PJRT_Buffer* b : {x, y, out[0], out[1]}) Fake().Destroy(b);
  Fake().Destroy(swap);
}

TEST_F(Api, ArgumentsAreChecked) {
  PJRT_LoadedExecutable* negate = MustCompile(kNegate);
  PJRT_Buffer* longer = Fake().Upload(HostArray::F32({5}, F(5)));
  PJRT_Buffer* integers = Fake().Upload(HostArray::Of<int32_t>(PJRT_Buffer_Type_S32, {4}, {1, 2, 3, 4}));
  PJRT_Buffer* elsewhere;
  Fake().Upload(HostArray::F32({4}, F(4)), &elsewhere, Fake().devices[1]);
  std::vector<PJRT_Buffer*> out;
  for (PJRT_Buffer* b : {longer, integers, elsewhere}) EXPECT_EQ(Fake().Execute(negate, {b}, &out).code, 3);
  EXPECT_EQ(Fake().Execute(negate, {}, &out).code, 3);
  EXPECT_EQ(Fake().Execute(negate, {longer, longer}, &out).code, 3);
  for (PJRT_Buffer* b : {longer, integers, elsewhere}) Fake().Destroy(b);
  Fake().Destroy(negate);
}

TEST_F(Api, PortableAndMultipleDevices) {
  PJRT_LoadedExecutable* portable = MustCompile(kNegate, Plugin::Options(1, true));
  PJRT_Buffer* there;
  Fake().Upload(HostArray::F32({4}, {1, 2, 3, 4}), &there, Fake().devices[1]);
  std::vector<PJRT_Buffer*> out;
  ASSERT_EQ(Fake().Execute(portable, {there}, &out, {}, Fake().devices[1]).code, 0);
  TEST_ARGS(PJRT_Buffer_Device_Args, device);
  device.buffer = out[0];
  Fake().Must(Fake().api->PJRT_Buffer_Device(&device));
  EXPECT_EQ(device.device, Fake().devices[1]);
  Fake().Destroy(out[0]);
  Fake().Destroy(portable);

  PJRT_LoadedExecutable* both = MustCompile(kNegate, Plugin::Options(2));
  PJRT_Buffer *here = Ones(), *result0 = nullptr, *result1 = nullptr;
  PJRT_Buffer *const args0[] = {here}, *const args1[] = {there};
  PJRT_Buffer* const* const args[] = {args0, args1};
  PJRT_Buffer** outputs[] = {&result0, &result1};
  PJRT_Event* events[2];
  TEST_ARGS(PJRT_ExecuteOptions, options);
  TEST_ARGS(PJRT_LoadedExecutable_Execute_Args, a);
  a.executable = both;
  a.options = &options;
  a.argument_lists = args;
  a.num_devices = 2;
  a.num_args = 1;
  a.output_lists = outputs;
  a.device_complete_events = events;
  Fake().Must(Fake().api->PJRT_LoadedExecutable_Execute(&a));
  for (PJRT_Event* e : events) EXPECT_EQ(Fake().Await(e).code, 0);
  EXPECT_EQ(Read(result1), (F{-1, -2, -3, -4}));
  for (PJRT_Buffer* b : {here, there, result0, result1}) Fake().Destroy(b);
  Fake().Destroy(both);
}

TEST_F(Api, SerializeAndLoad) {
  PJRT_LoadedExecutable* negate = MustCompile(kNegate);
  TEST_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
  get.loaded_executable = negate;
  Fake().Must(Fake().api->PJRT_LoadedExecutable_GetExecutable(&get));
  TEST_ARGS(PJRT_Executable_Serialize_Args, s);
  s.executable = get.executable;
  Fake().Must(Fake().api->PJRT_Executable_Serialize(&s));
  std::string bytes(s.serialized_bytes, s.serialized_bytes_size);
  s.serialized_executable_deleter(s.serialized_executable);
  TEST_ARGS(PJRT_Executable_Destroy_Args, d);
  d.executable = get.executable;
  Fake().Must(Fake().api->PJRT_Executable_Destroy(&d));
  Fake().Destroy(negate);
  auto load = [](const std::string& b, PJRT_LoadedExecutable** e) {
    TEST_ARGS(PJRT_Executable_DeserializeAndLoad_Args, a);
    a.client = Fake().client;
    a.serialized_executable = b.data();
    a.serialized_executable_size = b.size();
    Failure f = Fake().Take(Fake().api->PJRT_Executable_DeserializeAndLoad(&a));
    *e = a.loaded_executable;
    return f.code;
  };
  PJRT_LoadedExecutable* loaded;
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_EQ(load(bytes.substr(0, cut), &loaded), 3) << cut;
  ASSERT_EQ(load(bytes, &loaded), 0);
  PJRT_Buffer* x = Ones();
  std::vector<PJRT_Buffer*> out;
  ASSERT_EQ(Fake().Execute(loaded, {x}, &out).code, 0);
  EXPECT_EQ(Read(out[0]), (F{-1, -2, -3, -4}));
  Fake().Destroy(x);
  Fake().Destroy(out[0]);
  Fake().Destroy(loaded);
}

TEST_F(Api, ExecutableFacts) {
  PJRT_LoadedExecutable* add = MustCompile(kAddInPlace);
  TEST_ARGS(PJRT_LoadedExecutable_GetExecutable_Args, get);
  get.loaded_executable = add;
  Fake().Must(Fake().api->PJRT_LoadedExecutable_GetExecutable(&get));
  TEST_ARGS(PJRT_Executable_GetCompiledMemoryStats_Args, stats);
  stats.executable = get.executable;
  Fake().Must(Fake().api->PJRT_Executable_GetCompiledMemoryStats(&stats));
  EXPECT_EQ(stats.argument_size_in_bytes, 32);
  EXPECT_EQ(stats.output_size_in_bytes, 16);
  EXPECT_EQ(stats.alias_size_in_bytes, 16);
  EXPECT_EQ(stats.temp_size_in_bytes, 0);
  TEST_ARGS(PJRT_Executable_OutputDimensions_Args, dims);
  dims.executable = get.executable;
  Fake().Must(Fake().api->PJRT_Executable_OutputDimensions(&dims));
  EXPECT_EQ(dims.num_outputs, 1u);
  EXPECT_EQ(dims.dim_sizes[0], 1u);
  EXPECT_EQ(dims.dims[0], 4);
  TEST_ARGS(PJRT_Executable_Name_Args, name);
  name.executable = get.executable;
  Fake().Must(Fake().api->PJRT_Executable_Name(&name));
  EXPECT_EQ(std::string(name.executable_name, name.executable_name_size), "add");
  TEST_ARGS(PJRT_Executable_Destroy_Args, d);
  d.executable = get.executable;
  Fake().Must(Fake().api->PJRT_Executable_Destroy(&d));
  Fake().Destroy(add);
  char text[8];
  EXPECT_EQ(fake_pjrt_last_program(text, sizeof(text)), static_cast<int64_t>(std::strlen(kAddInPlace)));
  EXPECT_STREQ(text, "module ");
}

TEST_F(Api, CompileOptionsAreRead) {
  PJRT_LoadedExecutable* e;
  EXPECT_EQ(Fake().Compile(kNegate, &e, "").code, 3);                  // zero replicas
  EXPECT_EQ(Fake().Compile(kNegate, &e, Plugin::Options(3)).code, 3);  // two devices
  EXPECT_EQ(Fake().Compile(kNegate, &e, "\x1a\x7f").code, 3);          // damaged
  Fake().Destroy(MustCompile(kNegate, Plugin::ExactOptions()));
}

// ---- control surface

TEST_F(Api, CountsCalls) {
  Fake().Destroy(Ones());
  EXPECT_EQ(fake_pjrt_calls("PJRT_Client_BufferFromHostBuffer"), 1);
  EXPECT_EQ(fake_pjrt_calls("Buffer_Destroy"), 1);
  EXPECT_EQ(fake_pjrt_total_calls(), 3);  // and Event_Destroy
  EXPECT_EQ(fake_pjrt_fallible_calls(), 1);
  fake_pjrt_reset();
  EXPECT_EQ(fake_pjrt_total_calls(), 0);
}

TEST_F(Api, FailsTheNthCall) {
  std::vector<HostArray> results;
  std::vector<HostArray> inputs = {HostArray::F32({4}, {1, 2, 3, 4})};
  ASSERT_EQ(Fake().Run(kNegate, inputs, &results).code, 0);
  PJRT_Buffer* b;
  fake_pjrt_fail_call(2, 13);
  EXPECT_EQ(Fake().Upload(inputs[0], &b).code, 0);
  Fake().Destroy(b);
  Failure f = Fake().Upload(inputs[0], &b);
  EXPECT_EQ(f.code, 13);
  EXPECT_EQ(f.message, "injected failure at call 2 (PJRT_Client_BufferFromHostBuffer)");
  fake_pjrt_fail_call_named("Client_Compile", 2, 14);
  Fake().Destroy(MustCompile(kNegate));
  PJRT_LoadedExecutable* e;
  EXPECT_EQ(Fake().Compile(kNegate, &e).code, 14);
  Fake().Destroy(MustCompile(kNegate));
}

TEST_F(Api, MemoryLimit) {
  PJRT_Buffer* x = Ones();
  fake_pjrt_set_memory_limit(fake_pjrt_live_bytes() + 20);
  PJRT_Buffer* y;
  Failure f = Fake().Upload(HostArray::F32({8}, F(8)), &y);
  EXPECT_EQ(f.code, 8);
  EXPECT_EQ(f.message, "Out of memory allocating 32 bytes");
  TEST_ARGS(PJRT_Device_MemoryStats_Args, stats);
  stats.device = Fake().devices[0];
  Fake().Must(Fake().api->PJRT_Device_MemoryStats(&stats));
  EXPECT_EQ(stats.bytes_in_use, fake_pjrt_live_bytes());
  PJRT_LoadedExecutable *negate = MustCompile(kNegate), *add = MustCompile(kAddInPlace);
  std::vector<PJRT_Buffer*> out, again;
  ASSERT_EQ(Fake().Execute(negate, {x}, &out).code, 0);
  EXPECT_EQ(Fake().Execute(negate, {x}, &again).code, 8);
  EXPECT_EQ(Fake().Execute(add, {x, out[0]}, &again, {0}).code, 8);
  EXPECT_FALSE(IsDeleted(x));
  ASSERT_EQ(Fake().Execute(add, {x, out[0]}, &again).code, 0);  // in place: needs nothing
  for (PJRT_Buffer* b : {x, out[0], again[0]}) Fake().Destroy(b);
  Fake().Destroy(negate);
  Fake().Destroy(add);
}

TEST_F(Api, MoreThanTheMachineHas) {
  PJRT_LoadedExecutable* huge = MustCompile(R"(module {
func.func public @main(%a: tensor<f32>) -> tensor<70368744177664xf32> {
%0 = "stablehlo.broadcast_in_dim"(%a) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<70368744177664xf32>
"func.return"(%0) : (tensor<70368744177664xf32>) -> ()
}
})");
  PJRT_Buffer* x = Fake().Upload(HostArray::F32({}, {1}));
  std::vector<PJRT_Buffer*> out;
  EXPECT_EQ(Fake().Execute(huge, {x}, &out).code, 8);
  Fake().Destroy(x);
  Fake().Destroy(huge);
}

TEST_F(Api, Asynchronous) {
  PJRT_LoadedExecutable* negate = MustCompile(kNegate);
  PJRT_Buffer* x = Ones();
  fake_pjrt_set_async(20000);
  std::vector<PJRT_Buffer*> once, twice;
  ASSERT_EQ(Fake().Execute(negate, {x}, &once).code, 0);
  ASSERT_EQ(Fake().Execute(negate, once, &twice).code, 0);
  PJRT_Event* ready = Fake().ReadyEvent(twice[0]);
  EXPECT_FALSE(IsReady(ready));
  std::atomic<int> fired{0};
  TEST_ARGS(PJRT_Event_OnReady_Args, on);
  on.event = ready;
  on.user_arg = &fired;
  on.callback = [](PJRT_Error* error, void* arg) { *static_cast<std::atomic<int>*>(arg) = error ? -1 : 1; };
  Fake().Must(Fake().api->PJRT_Event_OnReady(&on));
  EXPECT_EQ(fired, 0);
  Fake().Destroy(once[0]);  // in flight
  Fake().Destroy(x);
  Fake().Destroy(negate);
  EXPECT_EQ(Fake().Await(ready).code, 0);
  EXPECT_EQ(Read(twice[0]), (F{1, 2, 3, 4}));
  EXPECT_EQ(fired, 1);
  Fake().Destroy(twice[0]);
}

TEST_F(Api, AsynchronousErrorsPoison) {
  for (int delay : {-1, 0}) {
    PJRT_LoadedExecutable* negate = MustCompile(kNegate);
    PJRT_Buffer* x = Ones();
    fake_pjrt_set_async(delay);
    fake_pjrt_fail_async(2, 13);
    std::vector<PJRT_Buffer*> good, bad, child;
    ASSERT_EQ(Fake().Execute(negate, {x}, &good).code, 0);
    ASSERT_EQ(Fake().Execute(negate, {x}, &bad).code, 0);
    ASSERT_EQ(Fake().Execute(negate, bad, &child).code, 0);
    EXPECT_EQ(Read(good[0]), (F{-1, -2, -3, -4}));
    EXPECT_EQ(Fake().Await(Fake().ReadyEvent(bad[0])).code, 13);
    Failure f = Fake().Await(Fake().ReadyEvent(child[0]));
    EXPECT_EQ(f.code, 13);
    EXPECT_EQ(f.message, "injected asynchronous failure");
    HostArray a;
    EXPECT_EQ(Fake().Download(child[0], &a).code, 13);
    for (PJRT_Buffer* b : {x, good[0], bad[0], child[0]}) Fake().Destroy(b);
    Fake().Destroy(negate);
  }
}

TEST_F(Api, ManyThreads) {
  PJRT_LoadedExecutable* add = MustCompile(kAddInPlace);
  fake_pjrt_set_async(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([add] {
      PJRT_Buffer *sum = Ones(), *y = Ones();
      for (int i = 0; i < 200; ++i) {
        std::vector<PJRT_Buffer*> out;
        ASSERT_EQ(Fake().Execute(add, {sum, y}, &out).code, 0);
        Fake().Destroy(sum);
        sum = out[0];
      }
      EXPECT_EQ(Read(sum), (F{201, 402, 603, 804}));
      Fake().Destroy(sum);
      Fake().Destroy(y);
    });
  for (std::thread& t : threads) t.join();
  Fake().Destroy(add);
}

}  // namespace
}  // namespace fake_pjrt
