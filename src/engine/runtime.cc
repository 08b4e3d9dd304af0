// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/cpu.h"
#include "base/log.h"
#include "base/settings.h"
#include "engine/capture.h"
#include "engine/counters.h"
#include "engine/host_heap.h"
#include "engine/launch.h"
#include "engine/memory.h"
#include "engine/queue.h"
#include "engine/trace.h"
#include "engine/traps.h"
#include "pjrt/buffer.h"
#include "pjrt/search.h"

namespace tpu::engine {
namespace {

std::atomic<Runtime*> g_runtime{nullptr};
std::atomic<bool> g_bad_fork{false};
WaitHook g_hook{nullptr, nullptr, nullptr};

std::vector<std::string>& SearchPath() {
  static auto* path = new std::vector<std::string>;
  return *path;
}

pjrt::SearchRequest Request() {
  const Settings& s = GetSettings();
  return {*s.engine.load(), *s.plugin_path.load(), *s.cpu_plugin.load(), SearchPath()};
}

// One long wait: the hook around it, its check between rounds.
class HostWait {
 public:
  HostWait() {
    Count(g_counters.host_waits);
    if (g_hook.begin) token_ = g_hook.begin();
  }
  ~HostWait() {
    if (g_hook.end) g_hook.end(token_);
  }
  // False: the user interrupted.
  bool Continue() { return !g_hook.check || g_hook.check(); }

 private:
  void* token_ = nullptr;
};

Status Interrupted() { return RuntimeError("interrupted"); }

// The process is ending. Python cannot end a daemon thread inside C++ (it would unwind through destructors, and abort), so
// threads that come by after the shutdown rest here, without the GIL, until the process is gone. Not for ever: who only
// called Shutdown gets an answer.
void RestUnlessMain() {
  if (syscall(SYS_gettid) == getpid() || InBadFork()) return;
  HostWait wait;
  std::this_thread::sleep_for(std::chrono::seconds(10));
}

Status Raise(const std::shared_ptr<Failure>& failure) {
  failure->reported = true;
  return failure->status;
}

// Spins through `rounds` of draining before a blocking wait begins; fewer when there is much to run.
template <class Done>
bool Spin(Done done, Value* until, int rounds) {
  int64_t end = 0;
  for (int i = 0; i < rounds; ++i) {
    if (done()) return true;
    if (!Drain(until)) {
      CpuPause();
      continue;
    }
    int64_t now = NowNanos();
    if (!end) end = now + 20'000'000;
    if (now >= end) break;
  }
  return done();
}

}  // namespace

Result<Runtime*> Runtime::Get() {
  if (Runtime* r = g_runtime.load(std::memory_order_acquire); __builtin_expect(r != nullptr, 1)) {
    if (__builtin_expect(!InBadFork(), 1)) return r;
    return RuntimeError(
        "the tpu device cannot be used in a forked child process. Start the process with the \"spawn\" method instead");
  }
  static std::once_flag once;
  static Status* outcome = new Status;
  std::call_once(once, [] {
    auto* runtime = new Runtime;
    *outcome = runtime->Start();
    if (outcome->ok())
      g_runtime.store(runtime, std::memory_order_release);
    else
      delete runtime;
  });
  if (!outcome->ok()) return *outcome;
  return g_runtime.load(std::memory_order_acquire);
}

Runtime& Runtime::Started() { return *g_runtime.load(std::memory_order_relaxed); }
bool Runtime::IsStarted() { return g_runtime.load(std::memory_order_acquire) != nullptr; }

bool Runtime::EngineConfigured() {
  if (IsStarted()) return true;
  pjrt::SearchRequest request = Request();
  if (request.engine == "off") return false;
  static std::mutex mu;
  static std::string* asked = new std::string;
  static bool found = false;
  std::lock_guard<std::mutex> lock(mu);
  std::string question = request.engine + "|" + request.plugin_path + "|" + request.cpu_plugin;
  for (const std::string& folder : request.folders) question += "|" + folder;
  if (question != *asked) {
    *asked = question;
    found = pjrt::FindPlugin(request).ok();
  }
  return found;
}

int Runtime::DeviceCount() {
  if (IsStarted()) return static_cast<int>(Started().client().devices().size());
  if (!EngineConfigured()) return 0;
  return static_cast<int>(std::max<int64_t>(1, GetSettings().device_count.load()));
}

void Runtime::SetPluginSearchPath(std::vector<std::string> folders) { SearchPath() = std::move(folders); }

Status Runtime::Start() {
  Settings& s = GetSettings();
  auto choice = pjrt::FindPlugin(Request());
  if (!choice.ok()) return choice.status();
  auto plugin = pjrt::Plugin::Load(choice->path);
  if (!plugin.ok()) return plugin.status();
  plugin_ = *plugin;
  pjrt::ClientOptions options;
  options.device_count = static_cast<int>(std::max<int64_t>(1, s.device_count.load()));
  auto client = pjrt::Client::Create(plugin_, options);
  if (!client.ok()) return client.status();
  client_ = *client;
  if (!client_->profile().tested) TPU_RETURN_IF_ERROR(pjrt::ProbeOptions(*client_, client_->mutable_profile()));
  profile_ = client_->profile();
  pthread_atfork(nullptr, nullptr, [] {
    g_bad_fork.store(true);
    pjrt::g_leak_plugin_objects.store(true);
  });
  if (profile_.host_addressable && s.keep_freed_memory.load()) KeepFreedMemory();
  StartQueue();
  // Said once, so that nobody mistakes the CPU for a TPU. Who has chosen the engine by name knows.
  bool chosen = *s.engine.load() != "auto" || !s.plugin_path.load()->empty();
  Log(profile_.kind == pjrt::EngineKind::kTpu || chosen ? LogLevel::kInfo : LogLevel::kWarning,
      "the engine that answers to \"tpu\": " + choice->reason + " (" + profile_.name + ")");
  return {};
}

bool InBadFork() { return g_bad_fork.load(std::memory_order_relaxed); }

void SetWaitHook(WaitHook hook) { g_hook = hook; }

namespace {

Status WaitForBuffer(Value* value) {
  auto context = [&](Status s) { return std::move(s).WithContext(value->maker ? value->maker->name : "copy"); };
  pjrt::Buffer buffer(Runtime::Started().client().api(), value->buffer);
  auto event = buffer.ReadyEvent();
  buffer.release();
  if (!event.ok()) return context(event.status());
  if (!event->IsReady()) {
    HostWait wait;
    do {
      auto outcome = event->WaitFor(std::chrono::milliseconds(50));
      // The waiting itself may fail, not only what is waited for.
      if (!outcome.ok() && !event->IsReady()) return context(outcome.status());
      if (!outcome.ok() || *outcome == pjrt::WaitOutcome::kReady) break;
      if (!wait.Continue()) return Interrupted();
    } while (true);
  }
  Status error = event->error();
  if (error.ok()) return {};
  if (uint32_t made_at = value->made_at.load(std::memory_order_relaxed)) {
    // Once its launch has retired, the root of the failure is known.
    TPU_RETURN_IF_ERROR(WaitForQueue(PositionBehind(made_at, QueuePosition())));
    if (auto failure = FailureOfLaunch(made_at)) return Raise(failure);
  }
  return context(std::move(error));
}

}  // namespace

Status RefuseAfterShutdown() {
  RestUnlessMain();
  return RuntimeError("the tpu device has been shut down");
}

Status WaitUntilSealed(Value* value) {
  auto traced = [&] { return value->state.load(std::memory_order_acquire) == ValueState::kTraced; };
  if (!traced()) return {};
  if (Capturing()) return BreakCapture("a value is needed on the host");
  SealTraces();
  if (!traced()) return {};
  HostWait wait;  // for another thread's foreach
  for (int round = 0; traced(); ++round) {
    Backoff(200 + round);
    if (round % 256 == 255 && !wait.Continue()) return Interrupted();
  }
  return {};
}

Status Wait(Value* value) {
  if (__builtin_expect(QueueStopped(), 0)) RestUnlessMain();
  if (__builtin_expect(AnyTraced(), 0)) TPU_RETURN_IF_ERROR(WaitUntilSealed(value));
  auto pending = [&] { return value->state.load(std::memory_order_acquire) == ValueState::kPending; };
  if (pending()) {
    if (InBadFork()) return Runtime::Get().status();
    if (!Spin([&] { return !pending(); }, value, 2000)) {
      HostWait wait;
      uint64_t position = PositionBehind(value->made_at.load(std::memory_order_relaxed), QueuePosition());
      for (int64_t checked = NowNanos(); pending();) {
        if (!Drain(value)) AwaitConsumer(position);
        if (NowNanos() - checked < 50'000'000) continue;
        checked = NowNanos();
        if (!wait.Continue()) return Interrupted();
      }
    }
  }
  ValueState state = value->state.load(std::memory_order_acquire);
  if (state == ValueState::kPoisoned) return Raise(value->failure);
  if (state == ValueState::kUndefined || !value->buffer) return {};
  if (value->known_ready && !value->traps) return {};
  if (InBadFork()) return Runtime::Get().status();
  if (!value->known_ready) TPU_RETURN_IF_ERROR(WaitForBuffer(value));
  if (auto failure = ResolveTraps(value)) return Raise(failure);
  return {};
}

Status FinishHostCopy(pjrt::Event* event) {
  Status failed;
  for (;;) {
    auto outcome = event->WaitFor(std::chrono::milliseconds(50));
    // The plugin still writes to the host's memory: it cannot be left behind, so an interrupt waits for the copy, and so
    // does a wait that failed.
    if (!outcome.ok()) failed = outcome.status();
    if (outcome.ok() ? *outcome == pjrt::WaitOutcome::kReady : event->IsReady()) return failed;
    if (!outcome.ok()) sched_yield();
  }
}

Status WaitForRoom() {
  if (!QueueHasRoom()) CountRelaxed(g_counters.queue_full);
  if (Spin([] { return QueueHasRoom(); }, nullptr, 200)) return {};
  HostWait wait;
  for (int64_t checked = NowNanos(); !QueueHasRoom();) {
    if (!Drain(nullptr)) AwaitConsumer(RoomyPosition());
    if (NowNanos() - checked < 50'000'000) continue;
    checked = NowNanos();
    if (!wait.Continue()) return Interrupted();
  }
  return {};
}

const void* HostPointer(Value* value) {
  if (!value->buffer || !Runtime::Started().profile().host_addressable) return nullptr;
  pjrt::Buffer buffer(Runtime::Started().client().api(), value->buffer);
  auto pointer = buffer.HostPointer();
  buffer.release();
  return pointer.ok() ? *pointer : nullptr;
}

Status ReadToHost(Value* value, void* dst) {
  TPU_RETURN_IF_ERROR(Wait(value));
  Count(g_counters.reads);
  size_t bytes = value->bytes();
  if (!value->buffer) {
    std::memset(dst, 0, bytes);
    return {};
  }
  if (const void* host = HostPointer(value)) {
    std::memcpy(dst, host, bytes);
    return {};
  }
  pjrt::Buffer buffer(Runtime::Started().client().api(), value->buffer);
  auto event = buffer.CopyToHost(dst, bytes);
  buffer.release();
  HostWait wait;
  Status copied = event.ok() ? FinishHostCopy(&*event) : event.status();
  if (copied.ok()) return {};
  return std::move(copied).WithContext(std::string("copy to the host of a result of ") +
                                       (value->maker ? value->maker->name : "copy"));
}

Result<Value*> Upload(const void* data, const TensorType& type, int device, const int64_t* byte_strides) {
  auto runtime = Runtime::Get();
  if (!runtime.ok()) return runtime.status();
  TPU_RETURN_IF_ERROR(Reserve(device, static_cast<int64_t>(type.bytes())));
  // Copied: memory that the user may still write is never taken zero-copy.
  auto buffer = (*runtime)->client().BufferFromHost(data, type, device, pjrt::HostBufferSemantics::kImmutableOnlyDuringCall,
                                                    byte_strides);
  if (!buffer.ok()) return std::move(buffer).status().WithContext("copy to the device");
  Count(g_counters.uploads);
  Value* value = NewValue(type, device, ValueState::kReady);
  Status error;
  value->known_ready = buffer->IsReady(&error) && error.ok();
  value->buffer = buffer->release();
  return value;
}

Result<Value*> CopyToDevice(Value* value, int device) {
  TPU_RETURN_IF_ERROR(Wait(value));
  if (!value->buffer) return NewValue(value->type, device, ValueState::kUndefined);
  TPU_RETURN_IF_ERROR(Reserve(device, static_cast<int64_t>(value->bytes())));
  pjrt::Buffer source(Runtime::Started().client().api(), value->buffer);
  auto copy = Runtime::Started().client().CopyToDevice(source, device);
  source.release();
  if (!copy.ok()) return std::move(copy).status().WithContext("copy between devices");
  Value* result = NewValue(value->type, device, ValueState::kReady);
  result->buffer = copy->release();
  return result;
}

Status WaitForQueue(uint64_t position) {
  if (__builtin_expect(QueueStopped(), 0)) RestUnlessMain();
  if (InBadFork()) return Runtime::Get().status();
  auto reached = [&] { return QueueReached(position); };
  if (Spin(reached, nullptr, 200)) return {};
  HostWait wait;
  for (int64_t checked = NowNanos(); !reached();) {
    if (!WaitOldestLaunch()) AwaitConsumer(position);
    if (NowNanos() - checked < 50'000'000) continue;
    checked = NowNanos();
    if (!wait.Continue()) return Interrupted();
  }
  return {};
}

Status Synchronize() {
  if (!Runtime::IsStarted()) return {};
  SealTraces();
  TPU_RETURN_IF_ERROR(WaitForQueue(QueuePosition()));
  ResolveAllTraps();
  if (auto failure = TakeFailure()) return Raise(failure);
  return {};
}

void Shutdown() {
  if (!Runtime::IsStarted() || InBadFork()) return;
  SealTraces();
  StopQueue(static_cast<int>(GetSettings().exit_timeout_ms.load()));
  // Other threads that are on their way out of here shall come by once more, and rest.
  if (ThreadsWithValues() > 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // The client stays: its threads and buffers may be in use until the process is gone.
  pjrt::g_leak_plugin_objects.store(true);
}

}  // namespace tpu::engine
