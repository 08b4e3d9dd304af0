// SPDX-License-Identifier: Apache-2.0
#include "aten/device.h"

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include "aten/availability.h"
#include "aten/tensor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

thread_local int t_device = 0;

[[noreturn, gnu::cold, gnu::noinline]] void ThrowNoSuchDevice(int index, int count) {
  TORCH_CHECK(count > 0, "there is no tpu device: `python -m torch_tpu doctor` says why");
  TORCH_CHECK(false, "tpu device index ", index, " is out of range: there ",
              count == 1 ? "is one device, tpu:0" : c10::str("are ", count, " devices, tpu:0 to tpu:", count - 1));
}

}  // namespace

int CurrentDevice() { return t_device; }
void SetCurrentDevice(int index) { t_device = index; }

int CheckedDevice(int index) {
  int count = engine::Runtime::DeviceCount();
  if (__builtin_expect(index >= 0 && index < count, 1)) return index;
  // Only the running engine knows how many TPUs there are.
  if (index >= 0 && TpuOnBus() && engine::Runtime::Get().ok()) count = engine::Runtime::DeviceCount();
  if (index < 0 || index >= count) ThrowNoSuchDevice(index, count);
  return index;
}

int CheckedOrCurrentDevice(int index) { return index < 0 ? t_device : CheckedDevice(index); }

int DeviceIndexOf(std::optional<at::Device> device) {
  if (!device) return t_device;
  TORCH_CHECK(device->type() == kDeviceType, "Expected a ", c10::DeviceTypeName(kDeviceType, true),
              " device, but got: ", *device);
  return CheckedOrCurrentDevice(device->index());
}

}  // namespace tpu::aten
