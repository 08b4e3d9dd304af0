// SPDX-License-Identifier: Apache-2.0
// The packed host argument of a launch as a buffer, kept by content: a repeated one costs nothing. Consumer only.
#pragma once
#include <cstdint>

#include "base/status.h"

struct PJRT_Buffer;

namespace tpu::engine {

// A buffer of `n` words for the launch at `position`. It belongs to the table and is good until the next call.
Result<PJRT_Buffer*> HostArgumentBuffer(const uint32_t* words, int n, int device, uint64_t position);

// Drops all buffers.
void DropHostArguments();

}  // namespace tpu::engine
