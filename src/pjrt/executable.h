// SPDX-License-Identifier: Apache-2.0
// LoadedExecutable: a compiled program that can be launched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/tensor_type.h"
#include "pjrt/handle.h"

namespace tpu::pjrt {

// Bytes a launch needs, per device. Zeros when the plugin does not say.
struct MemoryStats {
  int64_t argument_bytes = 0;
  int64_t output_bytes = 0;
  int64_t temp_bytes = 0;
  int64_t alias_bytes = 0;  // outputs that reuse donated arguments, when donation is not vetoed
  int64_t code_bytes = 0;
};

// One launch on all devices of the program, in the order of LoadedExecutable::devices().
struct ExecuteCall {
  PJRT_Buffer* const* const* argument_lists = nullptr;  // [num_devices][num_args]
  size_t num_devices = 1;
  size_t num_args = 0;
  const int64_t* non_donatable = nullptr;  // argument numbers that keep their buffer although the program donates them
  size_t num_non_donatable = 0;
  PJRT_Device* device = nullptr;           // where a portable program runs; null for other programs
  PJRT_Buffer** const* output_lists = nullptr;  // [num_devices][num_outputs], filled with owned buffers
};

// Owns a PJRT_LoadedExecutable. Thread rule: const members may be called from several threads at once.
class LoadedExecutable {
 public:
  LoadedExecutable() = default;
  // Takes ownership of `executable` and reads what it says about itself.
  static Result<LoadedExecutable> Wrap(const PJRT_Api* api, PJRT_LoadedExecutable* executable);

  PJRT_LoadedExecutable* get() const { return handle_.get(); }
  explicit operator bool() const { return static_cast<bool>(handle_); }

  // Launches; allocates nothing itself. The plugin checks the number of arguments and their sizes in bytes, neither
  // element types nor dimensions: the caller must. After an error no output has been made. A donated argument's buffer
  // must still be destroyed by its owner.
  Status Execute(const ExecuteCall& call) const;
  // The one-device form. `device` is null for programs that are not portable.
  Status Execute(PJRT_Buffer* const* args, size_t num_args, const int64_t* non_donatable, size_t num_non_donatable,
                 PJRT_Device* device, PJRT_Buffer** outs) const {
    ExecuteCall call;
    call.argument_lists = &args;
    call.num_args = num_args;
    call.non_donatable = non_donatable;
    call.num_non_donatable = num_non_donatable;
    call.device = device;
    call.output_lists = &outs;
    return Execute(call);
  }

  size_t num_outputs() const { return output_types_.size(); }
  // Per device. dtype is kInvalid where TensorType cannot hold the type.
  const std::vector<TensorType>& output_types() const { return output_types_; }
  const MemoryStats& memory_stats() const { return memory_stats_; }
  // The devices of a launch, in the order of ExecuteCall's lists. Empty for portable programs.
  const std::vector<PJRT_Device*>& devices() const { return devices_; }
  // For Client::Load of the same plugin file on the same kind of machine; plugins do not check that.
  Result<std::string> Serialize() const;

 private:
  Handle<PJRT_LoadedExecutable> handle_;
  std::vector<TensorType> output_types_;
  std::vector<PJRT_Device*> devices_;
  MemoryStats memory_stats_;
};

}  // namespace tpu::pjrt
