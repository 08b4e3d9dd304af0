// SPDX-License-Identifier: Apache-2.0
// The few fields of xla.CompileOptionsProto that the fake obeys, read from its wire format.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "error.h"

namespace fake_pjrt {

struct CompileOptions {
  int64_t num_replicas = 1, num_partitions = 1;
  bool portable = false;
  std::vector<int64_t> device_ids;  // replica-major: [replica][partition]; empty: default assignment
};

// Fails on damaged bytes, and on counts below one as XLA does.
Error ReadCompileOptions(std::string_view bytes, CompileOptions* options);

}  // namespace fake_pjrt
