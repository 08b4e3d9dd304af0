// SPDX-License-Identifier: Apache-2.0
// The device guard: what c10 asks of a kind of device, answered by device.h and stream.h.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "aten/device.h"
#include "aten/stream.h"
#include "aten/tensor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  static constexpr c10::DeviceType static_type = kDeviceType;

  c10::DeviceType type() const override { return kDeviceType; }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(engine::Runtime::DeviceCount());
  }

  c10::Device getDevice() const override { return {kDeviceType, static_cast<c10::DeviceIndex>(CurrentDevice())}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.type() == kDeviceType, "Expected a tpu device, but got: ", device);
    if (!device.has_index() || device.index() == CurrentDevice()) return;
    SetCurrentDevice(CheckedDevice(device.index()));
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) SetCurrentDevice(device.index());
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (int i = 0; i < c10::NumScalarTypes; ++i) {
      if (FromScalarType(static_cast<c10::ScalarType>(i)) != DType::kInvalid)
        capability.capability_data.capability_bits |= 1ull << i;
    }
    return capability;
  }

  c10::Stream getStream(c10::Device device) const override { return CurrentStream(IndexOf(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    auto index = static_cast<c10::DeviceIndex>(IndexOf(device));
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(kDeviceType, index));
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override { return PoolStream(IndexOf(device), priority); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return PoolStream(IndexOf(device), high_priority ? -1 : 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override { return ExchangeStream(stream); }
  // A label has no handle of its own; the id tells streams apart.
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(static_cast<intptr_t>(stream.id()));
  }
  bool queryStream(const c10::Stream&) const override { return QueueIdle(); }
  void synchronizeStream(const c10::Stream&) const override { SynchronizeQueue(); }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    CheckedOrCurrentDevice(index);
    SynchronizeQueue();
  }

  // Events are made here, by their first recording.
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex index, const c10::EventFlag flag) const override {
    TORCH_CHECK(index == -1 || index == stream.device_index(), "Event device index ", static_cast<int>(index),
                " does not match recording stream's device index ", static_cast<int>(stream.device_index()), ".");
    if (!*event) *event = new EventRecord;
    static_cast<EventRecord*>(*event)->Record(flag == c10::EventFlag::BACKEND_DEFAULT);
  }
  // Whatever the stream is given from now on comes later in the one queue than the event: it waits already.
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void* event) const override { return !event || static_cast<EventRecord*>(event)->Reached(); }
  void synchronizeEvent(void* event) const override {
    if (event) static_cast<EventRecord*>(event)->Wait();
  }
  double elapsedTime(void* begin, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(begin && end, "Both events must be recorded before calculating elapsed time.");
    auto *first = static_cast<EventRecord*>(begin), *second = static_cast<EventRecord*>(end);
    TORCH_CHECK(first->timed() && second->timed(), "Both events must be created with argument 'enable_timing=True'.");
    TORCH_CHECK(first->Reached() && second->Reached(), "Both events must be completed before calculating elapsed time.");
    return static_cast<double>(second->Time() - first->Time()) * 1e-6;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<EventRecord*>(event); }

 private:
  static int IndexOf(c10::Device device) { return CheckedOrCurrentDevice(device.index()); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace tpu::aten
