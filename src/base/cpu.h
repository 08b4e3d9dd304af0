// SPDX-License-Identifier: Apache-2.0
// The few machine-dependent words of spinning.
#pragma once
#include <cstdint>
#include <ctime>

namespace tpu {

inline void CpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// For loops that wait for another thread: spins at first, then sleeps for 20 us and, later, up to 200 us. A waiting thread
// that only yields takes a core from those that it waits for, and from the plugin's own threads.
inline void Backoff(int round) {
  if (round < 200) return CpuPause();
  long micros = 20 + (round - 200) / 4;
  timespec t{0, (micros < 200 ? micros : 200) * 1000};
  nanosleep(&t, nullptr);
}

// Nanoseconds of the steady clock.
inline int64_t NowNanos() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000ll + t.tv_nsec;
}

// CPUs this process may use at once: affinity and the cgroup's quota, at least 1.
int AvailableCpus();

}  // namespace tpu
