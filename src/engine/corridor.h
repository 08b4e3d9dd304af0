// SPDX-License-Identifier: Apache-2.0
// The corridor: record -> seal -> key -> lower -> compile -> run -> bind. The one path from an operation to a program.
#pragma once
#include <cstdint>

#include "base/inline_vector.h"
#include "base/status.h"
#include "engine/cell.h"
#include "engine/program.h"
#include "engine/value.h"
#include "graph/key.h"

namespace tpu::engine {

// A recorded operation, before it is sealed: its relative form and the run-time things that the form leaves out.
// Lives on the caller's stack.
struct Record {
  graph::KeyWriter key;
  InlineVector<Value*, 16> values;      // by argument number; one reference each
  InlineVector<Cell*, 16> cells;        // the cells they were loaded from (null for graph-internal values)
  InlineVector<uint64_t, 32> raw;       // raw host values: int64, double bits, or two doubles for a complex
  InlineVector<Cell*, 4> targets;       // cells that in-place and out= results replace
  int device = -1;

  Record() {}
  ~Record() {
    for (Value* v : values) v->DecRef();
  }
  // The argument number of a cell's value: loaded once however often the operation names it.
  int ArgumentOf(Cell* cell) {
    for (size_t i = 0; i < cells.size(); ++i)
      if (cells[i] == cell) return static_cast<int>(i);
    values.push_back(cell->Load());
    cells.push_back(cell);
    return static_cast<int>(values.size()) - 1;
  }
};

// What the caller of the corridor provides. Plain function pointers: a hit must not allocate.
struct CorridorHooks {
  void* context;
  // On a miss: fills record.results (Meta). NotImplemented: this signature goes to the fallback (`unsupported`).
  Status (*infer)(void* context, graph::OpRecord* record);
  // When the program draws random numbers: `count` counters from the generator.
  void (*draw)(void* context, int64_t count, uint64_t* seed, uint64_t* offset);
};

struct CorridorResult {
  Program* program = nullptr;           // program->unsupported: nothing was run
  InlineVector<Value*, 4> outputs;      // by program output; a reference for the caller, null where a target took it
};

// Runs one record. On an error nothing has been enqueued.
Status RunRecord(Record* record, const CorridorHooks& hooks, CorridorResult* result);

// Why the last miss of this thread missed: one line.
std::string ExplainLastMiss();
size_t CachedPrograms();

}  // namespace tpu::engine
