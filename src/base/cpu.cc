// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tpu {
namespace {

// cgroup v2 "max 100000" or "150000 100000"; 0 when there is no limit.
double CgroupQuota() {
  std::FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r");
  if (!f) return 0;
  char quota[32];
  double period = 0;
  int n = std::fscanf(f, "%31s %lf", quota, &period);
  std::fclose(f);
  double value = 0;
  if (n != 2 || std::strcmp(quota, "max") == 0 || std::sscanf(quota, "%lf", &value) != 1 || period <= 0) return 0;
  return value / period;
}

}  // namespace

int AvailableCpus() {
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  if (double quota = CgroupQuota(); quota > 0) n = std::min(n, static_cast<int>(quota + 0.5));
  return std::max(n, 1);
}

}  // namespace tpu
