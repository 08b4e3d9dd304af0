// SPDX-License-Identifier: Apache-2.0
// Pinned host memory.
#pragma once
#include <c10/core/Allocator.h>

namespace tpu::aten {

// Page-aligned host memory. No engine of ours registers host memory, so "pinned" here means: allocated by this allocator.
c10::Allocator* PinnedAllocator();
// True for any address inside a live allocation of it. Thread safe.
bool IsPinned(const void* address);

}  // namespace tpu::aten
