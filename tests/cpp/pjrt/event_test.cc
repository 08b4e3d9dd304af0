// SPDX-License-Identifier: Apache-2.0
#include "pjrt/event.h"

#include <atomic>
#include <thread>

#include "pjrt/errors.h"
#include "test_util.h"

namespace tpu::pjrt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using EventTest = PluginTest;

constexpr int64_t kN = 1 << 18;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int64_t kIterations = 100;  // only the fake plugin runs then, whose interpreter is slow, and slower with checks
#else
constexpr int64_t kIterations = 8000;
#endif

// A result that is not ready for a few tenths of a second.
Buffer StartSlowProgram(Client& client) {
  LoadedExecutable slow = Take(client.Compile(SlowModule(kN, kIterations), client.DefaultCompileOptions()));
  Buffer x = Upload(client, std::vector<float>(kN, 1), F32({kN}));
  PJRT_Buffer* arg = x.get();
  PJRT_Buffer* out = nullptr;
  Status status = slow.Execute(&arg, 1, nullptr, 0, client.devices()[0].device, &out);
  EXPECT_TRUE(status.ok()) << status.message();
  return Buffer(client.api(), out);
}

TEST_F(EventTest, WaitTimesOutThenEnds) {
  Client& client = TestClient(1, true);
  Buffer out = StartSlowProgram(client);
  Status error;
  EXPECT_FALSE(out.IsReady(&error));
  Event event = Take(out.ReadyEvent());
  EXPECT_FALSE(event.IsReady());
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Take(event.WaitFor(milliseconds(5))), WaitOutcome::kTimedOut);
  EXPECT_EQ(Take(event.WaitFor(milliseconds(0))), WaitOutcome::kTimedOut);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));
  EXPECT_EQ(Take(event.WaitFor(seconds(60))), WaitOutcome::kReady);
  EXPECT_EQ(Take(event.WaitFor(milliseconds(0))), WaitOutcome::kReady);
  TPU_ASSERT_OK(event.error());
  EXPECT_TRUE(out.IsReady(&error));
  TPU_ASSERT_OK(error);
}

TEST_F(EventTest, OnReadyOutlivesTheEvent) {
  Client& client = TestClient(1, true);
  Buffer out = StartSlowProgram(client);
  std::atomic<int> calls{0};
  std::atomic<bool> ok{false};
  {
    Event event = Take(out.ReadyEvent());
    TPU_ASSERT_OK(event.OnReady([&](Status status) {
      ok = status.ok();
      ++calls;
    }));
    EXPECT_EQ(Take(event.WaitFor(milliseconds(1))), WaitOutcome::kTimedOut);
  }
  TPU_ASSERT_OK(WaitUntilReady(out));
  for (int i = 0; i < 1000 && calls == 0; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(ok);

  int at_once = 0;
  TPU_ASSERT_OK(Take(out.ReadyEvent()).OnReady([&](Status) { ++at_once; }));
  EXPECT_EQ(at_once, 1);
}

TEST_F(EventTest, ReadBackOfAnUnfinishedResult) {
  Client& client = TestClient(1, true);
  Buffer out = StartSlowProgram(client);
  std::vector<float> host(kN, -1);
  Event copied = Take(out.CopyToHost(host.data(), kN * sizeof(float)));
  out.reset();  // the copy keeps what it needs
  EXPECT_EQ(Take(copied.WaitFor(seconds(60))), WaitOutcome::kReady);
  EXPECT_EQ(host[0], 1);
  EXPECT_EQ(host[kN - 1], 1);
}

TEST_F(EventTest, TooSmallReadBackIsAnError) {
  Client& client = TestClient();
  Buffer x = Upload<float>(client, {1, 2, 3, 4}, F32({4}));
  std::vector<float> host(4);
  Result<Event> copied = x.CopyToHost(host.data(), 8);
  EXPECT_FALSE(copied.ok() && copied->WaitFor(seconds(10)).ok());
}

// A promise buffer that is fulfilled with an error is what a failed asynchronous program leaves behind.
TEST_F(EventTest, PoisonedBuffer) {
  Client& client = TestClient();
  const PJRT_Api* api = client.api();
  if (!client.plugin().Has(&PJRT_Api::PJRT_Client_CreateAliasBuffer)) GTEST_SKIP() << "no alias buffers";
  Args<PJRT_Device_DefaultMemory_Args> memory;
  memory->device = client.devices()[0].device;
  TPU_ASSERT_OK(ToStatus(api, api->PJRT_Device_DefaultMemory(memory.get())));
  const int64_t dims[1] = {4};
  Args<PJRT_Client_CreateAliasBuffer_Args> create;
  create->client = client.get();
  create->memory = memory->memory;
  create->shape_dims = dims;
  create->shape_num_dims = 1;
  create->shape_element_type = PJRT_Buffer_Type_F32;
  const int64_t minor_to_major[1] = {0};
  Args<PJRT_Buffer_MemoryLayout> layout;
  layout->type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout->tiled.struct_size = sizeof(PJRT_Buffer_MemoryLayout_Tiled);
  layout->tiled.minor_to_major = minor_to_major;
  layout->tiled.minor_to_major_size = 1;
  create->shape_layout = layout.get();
  Status created = ToStatus(api, api->PJRT_Client_CreateAliasBuffer(create.get()));
  if (created.kind() == ErrorKind::kNotImplemented) GTEST_SKIP() << created.message();
  TPU_ASSERT_OK(created);
  Buffer promise(api, create->alias_buffer);
  Event event = Take(promise.ReadyEvent());
  EXPECT_EQ(Take(event.WaitFor(milliseconds(1))), WaitOutcome::kTimedOut);

  const std::string message = "the chip caught fire";
  Args<PJRT_Client_FulfillAliasBuffer_Args> fulfill;
  fulfill->client = client.get();
  fulfill->fulfill_alias_buffer_cb = create->fulfill_alias_buffer_cb;
  fulfill->status_code = PJRT_Error_Code_INTERNAL;
  fulfill->error_message = message.data();
  fulfill->error_message_size = message.size();
  // Some plugins hand the error back here, too.
  (void)ToStatus(api, api->PJRT_Client_FulfillAliasBuffer(fulfill.get()));
  for (int i = 0; i < 2; ++i) {
    Result<WaitOutcome> waited = event.WaitFor(seconds(10));
    ASSERT_FALSE(waited.ok());
    EXPECT_NE(waited.status().message().find(message), std::string::npos) << waited.status().message();
  }
  Status error;
  EXPECT_TRUE(promise.IsReady(&error));
  EXPECT_NE(error.message().find(message), std::string::npos) << error.message();
}

}  // namespace
}  // namespace tpu::pjrt
