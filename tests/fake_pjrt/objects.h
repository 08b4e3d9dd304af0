// SPDX-License-Identifier: Apache-2.0
// The opaque objects of the PJRT C API as this plugin has them.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control_state.h"
#include "error.h"
#include "pjrt_c_api.h"
#include "program.h"
#include "tensor.h"

namespace fake_pjrt {

// Counts an object of the control surface.
class LiveCount {
 public:
  explicit LiveCount(std::atomic<int64_t>& counter) : counter_(counter) { ++counter_; }
  ~LiveCount() { --counter_; }
  LiveCount(const LiveCount&) = delete;
  LiveCount& operator=(const LiveCount&) = delete;

 private:
  std::atomic<int64_t>& counter_;
};

// A one-shot promise that PJRT_Event objects and buffers share. Thread safe.
class Promise {
 public:
  using Callback = std::function<void(const Error&)>;

  // Requires: called once. Runs the waiting callbacks on this thread.
  void Set(Error error);
  bool ready();
  // Blocks; the error, if any.
  Error Wait();
  // Now when ready, else from Set.
  void OnReady(Callback callback);

 private:
  std::mutex mutex_;
  std::condition_variable set_;
  bool ready_ = false;
  Error error_;
  std::vector<Callback> callbacks_;
};

std::shared_ptr<Promise> ReadyPromise(Error error = {});
// Null for success.
PJRT_Error* NewError(Error error);
PJRT_Event* NewEvent(std::shared_ptr<Promise> promise);

// PRED, S8, ... <-> DType; kInvalid / INVALID for types that the fake does not store.
DType FromPjrtType(PJRT_Buffer_Type type);
PJRT_Buffer_Type ToPjrtType(DType dtype);

// What PJRT_Executable and PJRT_LoadedExecutable share.
struct Program {
  std::string text, options;  // as given to compile
  std::unique_ptr<Module> module;
  int num_replicas = 1, num_partitions = 1;
  bool portable = false;
  std::vector<int> device_ids;  // empty: portable
  std::string fingerprint;
  std::string not_executed;  // an operator that Execute cannot run, "" when all can

  // Flattened for the accessors.
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;
  std::vector<size_t> output_ranks;
  std::vector<int> alias;  // argument -> output, -1: not donated
  int64_t argument_bytes = 0, output_bytes = 0, alias_bytes = 0, temp_bytes = 0;
};

// Parses text and options; checks that the devices exist.
Error BuildProgram(std::string text, std::string options, int num_devices, std::shared_ptr<const Program>* program);

}  // namespace fake_pjrt

struct PJRT_Error {
  fake_pjrt::Error error;
  fake_pjrt::LiveCount live{fake_pjrt::ControlState::Get().live_errors};
};

struct PJRT_Event {
  std::shared_ptr<fake_pjrt::Promise> promise;
  fake_pjrt::LiveCount live{fake_pjrt::ControlState::Get().live_events};
};

struct PJRT_DeviceDescription {
  int id = 0;
  std::string text;  // debug string and to_string
};

struct PJRT_Memory {
  int id = 0;
  std::string text;
  PJRT_Device* device = nullptr;
};

struct PJRT_Device {
  PJRT_DeviceDescription description;
  PJRT_Memory memory;
  PJRT_Memory* memory_list[1] = {&memory};
  PJRT_Client* client = nullptr;
};

struct PJRT_Client {
  std::vector<std::unique_ptr<PJRT_Device>> owned;
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_Memory*> memories;
  bool asynchronous = false;  // the create option: launches run on the worker even in synchronous mode
};

struct PJRT_Buffer {
  PJRT_Buffer(fake_pjrt::Type t, PJRT_Device* d, std::shared_ptr<fake_pjrt::Memory> m, std::shared_ptr<fake_pjrt::Promise> p)
      : type(std::move(t)), device(d), memory(std::move(m)), ready(std::move(p)) {}

  const fake_pjrt::Type type;
  PJRT_Device* const device;
  std::mutex mutex;
  std::shared_ptr<fake_pjrt::Memory> memory;  // guarded by mutex; null once deleted or donated
  const std::shared_ptr<fake_pjrt::Promise> ready;
  int external_references = 0;  // guarded by mutex
  std::vector<int64_t> minor_to_major;
  fake_pjrt::LiveCount live{fake_pjrt::ControlState::Get().live_buffers};
};

struct PJRT_Executable {
  std::shared_ptr<const fake_pjrt::Program> program;
};

struct PJRT_LoadedExecutable {
  std::shared_ptr<const fake_pjrt::Program> program;
  PJRT_Client* client = nullptr;
  std::vector<PJRT_Device*> devices;
  std::atomic<bool> deleted{false};
  fake_pjrt::LiveCount live{fake_pjrt::ControlState::Get().live_executables};
};

struct PJRT_SerializedExecutable {
  std::string bytes;
};

struct PJRT_ExecuteContext {};
