// SPDX-License-Identifier: Apache-2.0
// Client: a running engine with its devices.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/tensor_type.h"
#include "pjrt/buffer.h"
#include "pjrt/compile_options.h"
#include "pjrt/engine_profile.h"
#include "pjrt/executable.h"
#include "pjrt/plugin.h"

namespace tpu::pjrt {

struct Device {
  PJRT_Device* device = nullptr;  // owned by the client
  int id = 0;                     // the plugin's global id: what device assignments name
  std::string kind;               // "cpu", "TPU v5 lite", ...
  std::string debug_string;
};

struct ClientOptions {
  int device_count = 1;  // CPU engines only; others have the devices they have
  std::string platform;  // hint for ProfileFor; "" to guess
  // Whether the plugin runs programs on its own threads. Unset: as the profile says.
  std::optional<bool> asynchronous;
};

// What a plugin says of its allocator; -1 where it says nothing.
struct DeviceMemoryStats {
  int64_t bytes_in_use = -1;
  int64_t peak_bytes_in_use = -1;
  int64_t bytes_limit = -1;
  int64_t largest_free_block_bytes = -1;
};

// How long the host memory given to BufferFromHost stays as it is.
enum class HostBufferSemantics {
  kImmutableOnlyDuringCall = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,  // copied before the call returns
  kImmutableUntilTransferCompletes = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
  kImmutableZeroCopy = PJRT_HostBufferSemantics_kImmutableZeroCopy,  // used in place where the plugin can (64-byte aligned)
  kMutableZeroCopy = PJRT_HostBufferSemantics_kMutableZeroCopy,      // also written by donation
};

// Never destroyed: buffers must not outlive it, and its threads run until exit. Thread rule: everything but profile()
// is thread-safe.
class Client {
 public:
  static Result<Client*> Create(const Plugin* plugin, const ClientOptions& options);

  const Plugin& plugin() const { return *plugin_; }
  const PJRT_Api* api() const { return plugin_->api(); }
  PJRT_Client* get() const { return client_; }
  const std::vector<Device>& devices() const { return devices_; }
  const std::string& platform_name() const { return platform_name_; }
  const std::string& platform_version() const { return platform_version_; }
  const EngineProfile& profile() const { return profile_; }
  // For ProbeOptions, before the client is shared between threads.
  EngineProfile* mutable_profile() { return &profile_; }

  // Options for a one-device program on this engine, with the profile's overrides. Portable where there are several devices:
  // naming the device at each launch costs 0.1 to 1.5 us.
  CompileOptions DefaultCompileOptions() const;
  // The device to name when such a program is launched on devices()[device].
  PJRT_Device* LaunchDevice(int device) const { return devices_.size() > 1 ? devices_[device].device : nullptr; }
  Result<LoadedExecutable> Compile(std::string_view stablehlo_text, const CompileOptions& options) const;
  // The same with options already serialised.
  Result<LoadedExecutable> Compile(std::string_view stablehlo_text, const std::string& serialized_options) const;
  // Requires: `serialized` was made by the same plugin file on a machine with the same CPU features or TPU.
  Result<LoadedExecutable> Load(std::string_view serialized) const;

  // Makes a buffer of `type` on devices()[device] from row-major `data`, or by `byte_strides` (type.rank of them).
  // `data` may be null for an empty array. bool elements must be 0 or 1. Unless the semantics are
  // kImmutableOnlyDuringCall, `*done` tells when the plugin no longer needs `data` (for zero copy: when the buffer is
  // gone); null when the caller knows otherwise.
  Result<Buffer> BufferFromHost(const void* data, const TensorType& type, int device, HostBufferSemantics semantics,
                                const int64_t* byte_strides = nullptr, Event* done = nullptr) const;
  // Always a copy, also onto the same device. Does not wait.
  Result<Buffer> CopyToDevice(const Buffer& buffer, int device) const;
  // NotImplemented on CPU engines.
  Result<DeviceMemoryStats> MemoryStatsOf(int device) const;

 private:
  Client() = default;
  Status CreateClient(const ClientOptions& options);
  Status ReadNames();
  Status ReadDevices();

  const Plugin* plugin_ = nullptr;
  PJRT_Client* client_ = nullptr;
  EngineProfile profile_;
  std::string platform_name_, platform_version_;
  std::vector<Device> devices_;
};

}  // namespace tpu::pjrt
