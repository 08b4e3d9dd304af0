// SPDX-License-Identifier: Apache-2.0
// The packed host argument: raw host values converted to the types that the program reads.
#pragma once
#include <cstdint>

#include "engine/program.h"

namespace tpu::engine {

// Writes program.host_words words. `raw` are the raw host values of its records in order, seeds and counters included.
void PackHostWords(const Program& program, const uint64_t* raw, uint32_t* words);

}  // namespace tpu::engine
