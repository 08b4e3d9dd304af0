// SPDX-License-Identifier: Apache-2.0
// Program: a cache entry. Everything a call needs on a hit. Stable address, never freed; eviction drops its executable.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "graph/op_record.h"
#include "lower/lowering.h"
#include "pjrt/executable.h"

namespace tpu::engine {

struct Program;

// How one functional result of the record reaches the caller.
struct ProgramResult {
  graph::RecordResult tensor;  // geometry of the result tensor
  bool contiguous = true;      // its strides are the default ones
  int16_t output = -1;         // program output that carries it; -1: undefined tensor
  int16_t target = -1;         // index of the record's target that it is written to; -1: a fresh tensor
};

// What a program of several records was put together from: the programs of the single records, and which value each of
// their arguments is.
struct Composition {
  std::vector<const Program*> parts;
  // For each argument of each part in order: the number of an argument of the whole, or ~number of a value made: those are
  // the outputs of the parts in order.
  std::vector<int32_t> operands;
  std::vector<int32_t> live;  // the values made that leave the program, ascending
  int num_arguments = 0;
  std::vector<int32_t> same_raws;  // for each part graph::OpRecord::same_raws
};

struct Program {
  Fingerprint fingerprint;
  std::vector<uint64_t> key;       // of one record: the full canonical key; also what the program is lowered again from
  std::unique_ptr<const Composition> composition;  // of several records: in place of the key
  std::string name;                // operator names, for errors
  // Set when no program can serve this signature: the operator goes to the fallback, and this says why.
  bool unsupported = false;
  std::string why;

  // ---- read by callers on a hit
  std::vector<ProgramResult> results;        // of one record
  std::vector<TensorType> outputs;           // types of the values made, traps excluded
  std::vector<int16_t> output_target;        // of one record: for each output the target that it replaces, or -1
  std::vector<uint16_t> arguments;           // argument numbers of the graph that the program takes
  std::vector<lower::HostField> host_fields;
  int host_words = 0;
  // For each output, whether a check of the program (Lowered::traps) was made on the way to it. Empty: for all.
  std::vector<bool> checked;
  bool random = false;                       // of one record: two raw host values more, the seed and the first counter
  int64_t random_count = 0;
  // True once the program has been compiled, which is what the two numbers below wait for (EnsureLoaded).
  std::atomic<bool> loaded{false};
  int64_t reserve_bytes = 0;                 // outputs and temporaries of one launch
  int64_t temp_bytes = 0;

  // ---- used by the consumer of the queue only (and by who loads the program first, before `loaded` is set)
  std::string text;                          // StableHLO, until it is compiled
  pjrt::LoadedExecutable executable;         // empty after eviction
  std::vector<lower::Lowered::Alias> aliases;
  std::vector<lower::TrapInfo> traps;
  uint64_t last_used = 0;                    // queue position
};

// Whether a failed check of the program spoils this output.
inline bool IsChecked(const Program& p, size_t output) { return p.checked.empty() || p.checked[output]; }

}  // namespace tpu::engine
