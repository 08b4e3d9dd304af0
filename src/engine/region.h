// SPDX-License-Identifier: Apache-2.0
// Regions: sequences of records that have been sealed together, by their relative form, and the programs made of them.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "engine/program.h"

namespace tpu::engine {

struct Region {
  std::vector<uint64_t> key;
  std::atomic<uint64_t> seen{0};  // times it has been sealed
  bool refused = false;    // no program can be made of it: the records run one by one
  std::mutex mu;           // of what follows
  // One program for each set of live values that no earlier one served. Never freed.
  std::vector<Program*> programs;
};

// The region of this key, made when new. Thread safe; the entry itself belongs to who holds the trace.
Region& RegionOf(const Fingerprint& fingerprint, const std::vector<uint64_t>& key);

// The region's program that has all of `composition.live` among its outputs, built and compiled when there is none.
// Thread safe.
Result<Program*> ProgramOf(Region& region, Composition composition);

// ---- where learned regions end. A rolling fingerprint is that of the first records of a trace.
// True where a learned region ends and no longer one goes on.
bool EndsAt(const Fingerprint& rolling);
// `rolling` after each record of the region, in order.
void LearnEnding(const std::vector<Fingerprint>& rolling);

}  // namespace tpu::engine
