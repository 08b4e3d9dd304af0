// SPDX-License-Identifier: Apache-2.0
// Program: a cache entry. Everything a call needs on a hit. Stable address, never freed; eviction drops its executable.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "graph/op_record.h"
#include "lower/lowering.h"
#include "pjrt/executable.h"

namespace tpu::engine {

// How one functional result of the record reaches the caller.
struct ProgramResult {
  graph::RecordResult tensor;  // geometry of the result tensor
  bool contiguous = true;      // its strides are the default ones
  int16_t output = -1;         // program output that carries it; -1: undefined tensor
  int16_t target = -1;         // index of the record's target that it is written to; -1: a fresh tensor
};

struct Program {
  Fingerprint fingerprint;
  std::vector<uint64_t> key;       // the full canonical key; also what the program is lowered again from
  std::string name;                // operator names, for errors
  // Set when no program can serve this signature: the operator goes to the fallback, and this says why.
  bool unsupported = false;
  std::string why;

  // ---- read by callers on a hit
  std::vector<ProgramResult> results;
  std::vector<TensorType> outputs;           // types of the values made, traps excluded
  std::vector<int16_t> output_target;        // for each output: record target that it replaces, or -1
  std::vector<uint16_t> arguments;           // argument numbers of the graph that the program takes
  std::vector<lower::HostField> host_fields;
  int host_words = 0;
  int64_t random_count = 0;
  int64_t reserve_bytes = 0;                 // outputs and temporaries of one launch
  int64_t temp_bytes = 0;

  // ---- used by the consumer of the queue only (and by the builder, before the program is published)
  pjrt::LoadedExecutable executable;         // empty after eviction
  std::vector<lower::Lowered::Alias> aliases;
  std::vector<lower::TrapInfo> traps;
  uint64_t last_used = 0;                    // queue position
};

}  // namespace tpu::engine
