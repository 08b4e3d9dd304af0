// SPDX-License-Identifier: Apache-2.0
// Device indices.
#pragma once

namespace tpu::aten {

// More devices than c10::DeviceIndex can count are impossible.
inline constexpr int kMaxDevices = 128;

// `index` itself when such a device exists. Throws RuntimeError, naming the devices there are, when not. Starts nothing,
// unless there are TPUs to count.
int CheckedDevice(int index);
// The same, where a negative index means the current device.
int CheckedOrCurrentDevice(int index);

}  // namespace tpu::aten
