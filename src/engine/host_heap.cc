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
  // Threads other than the first have heaps of this size; half of it is the largest threshold that mallopt takes.
  constexpr int kHeap = 64 << 20;
  mallopt(M_MMAP_THRESHOLD, kHeap / 2);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  // A heap that became empty is unmapped whatever the threshold, unless it is smaller than the padding.
  mallopt(M_TOP_PAD, kHeap);
}

void TrimHeap() { malloc_trim(0); }

#else

void KeepFreedMemory() {}
void TrimHeap() {}

#endif

}  // namespace tpu::engine
