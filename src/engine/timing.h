// SPDX-License-Identifier: Apache-2.0
// Retirement times of queue positions that events asked for.
#pragma once
#include <cstdint>

namespace tpu::engine {

// The entry at `position` has finished. Consumer only; free when nobody asked for times.
void NoteRetired(uint64_t position);

}  // namespace tpu::engine
