// SPDX-License-Identifier: Apache-2.0
// Runtime: the one engine of the process: plugin, client, profile. Starts at first use, is never destroyed.
#pragma once
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/value.h"
#include "pjrt/client.h"
#include "pjrt/engine_profile.h"
#include "pjrt/plugin.h"

namespace tpu::engine {

// True in the child of a fork of a process whose engine had started. Recording and waiting raise there, destructors leak.
bool InBadFork();

class Runtime {
 public:
  // Starts the engine or returns why it cannot; the first outcome stands for the process. After a fork in the child:
  // an error that says so. Thread safe.
  static Result<Runtime*> Get();
  // Get() for the hot path: calls `fail` (which throws) when there is no engine.
  static void Require(void (*fail)(const Status&)) {
    if (__builtin_expect(IsStarted() && !InBadFork(), 1)) return;
    fail(Get().status());
  }
  // The started runtime. Requires: Get() succeeded before (every recorded value proves it).
  static Runtime& Started();
  static bool IsStarted();

  // Without starting anything: true when the setting allows an engine and its plugin file is found (asked once a choice).
  static bool EngineConfigured();
  static int DeviceCount();  // of the running client, else what the settings promise
  // Folders in which plugins are looked for (Python's sys.path). Before the start.
  static void SetPluginSearchPath(std::vector<std::string> folders);

  const pjrt::Plugin& plugin() const { return *plugin_; }
  pjrt::Client& client() const { return *client_; }
  const pjrt::EngineProfile& profile() const { return profile_; }

 private:
  const pjrt::Plugin* plugin_ = nullptr;
  pjrt::Client* client_ = nullptr;
  pjrt::EngineProfile profile_;
  Status Start();
};

// ---- host waits: every one goes through these
// Called every 50 ms of a long wait, without any lock held: releases the GIL around the wait and checks signals. A false
// return abandons the wait (the interrupt is then pending in Python). Set by bindings.
struct WaitHook {
  void* (*begin)();          // before the first blocking wait; its result goes to end
  void (*end)(void*);
  bool (*check)();
};
void SetWaitHook(WaitHook hook);

// Waits until `value` can be read. Returns its failure (marked reported), an interruption, or ok.
Status Wait(Value* value);
// Waits until the queue has room for one more entry (QueueHasRoom). Returns an interruption, or ok.
Status WaitForRoom();
// Waits for a copy to host memory, which must stay: also when the waiting fails.
Status FinishHostCopy(pjrt::Event* event);
// Bytes of a waited-for value on the host: the buffer's own memory on a host-addressable engine (valid while the value
// is referenced), null when there is none (undefined value, or not host addressable).
const void* HostPointer(Value* value);
// Copies a value's bytes, row-major; waits first. dst holds value->bytes().
Status ReadToHost(Value* value, void* dst);
// A ready value with a copy of `data` (row-major; byte_strides may be null).
Result<Value*> Upload(const void* data, const TensorType& type, int device, const int64_t* byte_strides = nullptr);
// Another device's copy, in queue order.
Result<Value*> CopyToDevice(Value* value, int device);

// ---- queue positions: streams and events
// The number of entries recorded so far.
uint64_t QueuePosition();
// True when all entries before `position` have run and their results are ready.
bool QueueReached(uint64_t position);
// Waits for it. Does not raise failures of entries.
Status WaitForQueue(uint64_t position);
// Time (nanoseconds, steady clock) at which entry `position - 1` retired; 0 when not retired or forgotten.
// Positions to be timed are registered before they retire.
void RegisterTimedPosition(uint64_t position);
int64_t RetirementTime(uint64_t position);
// Waits for everything recorded so far and raises the first unreported root failure.
Status Synchronize();
// At exit: stop intake, drain with the time limit of the settings. Other threads that record or wait after that rest until
// the process is gone.
void Shutdown();
// What a record after the shutdown gets.
Status RefuseAfterShutdown();

}  // namespace tpu::engine
