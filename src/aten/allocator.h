// SPDX-License-Identifier: Apache-2.0
// Limits of device memory, for storages whose value is undefined as yet.
#pragma once
#include <cstddef>

namespace tpu::aten {

// Throws OutOfMemoryError, with numbers, when `bytes` more would exceed the limit of the device, after waiting for the
// queue and one garbage collection. Reserves nothing.
void CheckRoom(size_t bytes, int device);

}  // namespace tpu::aten
