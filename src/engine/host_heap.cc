// SPDX-License-Identifier: Apache-2.0
#include "engine/host_heap.h"

#include <climits>  // with it comes __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/settings.h"

namespace tpu::engine {

#ifdef __GLIBC__

void KeepFreedMemory() {
  for (const char* name : {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"})
    if (!ForeignEnv(name).empty()) return;
  // The largest that mallopt takes: half of the heap that a thread other than the first has.
  constexpr int kLargestHeapBlock = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

void TrimHeap() { malloc_trim(0); }

#else

void KeepFreedMemory() {}
void TrimHeap() {}

#endif

}  // namespace tpu::engine
