// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstdio>
#include <cstdlib>

namespace tpu {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "torch_tpu: internal error at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace tpu
