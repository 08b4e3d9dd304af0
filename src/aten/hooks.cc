// SPDX-License-Identifier: Apache-2.0
// The hooks through which PyTorch's generic code reaches the device.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "aten/availability.h"
#include "aten/device.h"
#include "aten/errors.h"
#include "aten/generator.h"
#include "aten/host_allocator.h"
#include "aten/storage_ops.h"
#include "aten/tensor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return IsAvailable(); }
  void init() const override { ThrowIfError(engine::Runtime::Get().status()); }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    return index >= 0 && engine::Runtime::IsStarted() && index < engine::Runtime::DeviceCount();
  }

  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(engine::Runtime::DeviceCount()); }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(CurrentDevice()); }
  void setCurrentDevice(c10::DeviceIndex index) const override { SetCurrentDevice(CheckedDevice(index)); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex before = getCurrentDevice();
    setCurrentDevice(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? getCurrentDevice() : exchangeDevice(index);
  }
  at::Device getDeviceFromPtr(void* data) const override {
    engine::Cell* cell = engine::FindCell(data);
    TORCH_CHECK(cell, "the pointer does not belong to a tpu device");
    return {kDeviceType, static_cast<c10::DeviceIndex>(cell->device)};
  }

  bool isPinnedPtr(const void* data) const override { return IsPinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return DefaultGenerator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return NewGenerator(index); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override { ResizeStorage(storage, bytes); }
};

const bool g_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
}  // namespace tpu::aten
