// SPDX-License-Identifier: Apache-2.0
// The C library's heap, from which CPU plugins take the memory of their buffers.
#pragma once

namespace tpu::engine {

// Lets freed memory stay with the process: given back to the system after every launch, it comes again page by page, each a
// fault and 4 KiB of zeroing (a fifth of the time of a MiniLM forward). Settings of malloc in the environment stand. Only
// glibc is known here.
void KeepFreedMemory();

// Gives what is free back to the system.
void TrimHeap();

}  // namespace tpu::engine
