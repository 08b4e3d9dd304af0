// SPDX-License-Identifier: Apache-2.0
// Capture: a trace with declared inputs, sealed into a Callable. torch.compile's way into the corridor: a graph is run
// once on placeholders through the same recorder as everything else.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/cell.h"
#include "engine/program.h"
#include "engine/trace.h"
#include "engine/value.h"

namespace tpu::engine {

// A program with what stays the same between its calls. Immutable; any thread.
class Callable {
 public:
  struct Call {
    std::span<Value* const> inputs;  // by number; their references pass to the call
    std::span<Cell* const> cells;    // for each value that leaves, the cell that it replaces, or null
    int device;
    void* context;                   // for draw, see CorridorHooks
    void (*draw)(void* context, int64_t count, uint64_t* seed, uint64_t* offset);
  };
  // Values that leave, by the positions that Capture::Finish was given; one reference each for the caller where no cell
  // takes it. On an error nothing has been enqueued.
  Status Run(const Call& call, std::vector<Value*>* made) const;

  ~Callable();

 private:
  friend class Capture;
  struct RandomDraw {
    size_t raw;  // where the seed goes, the first counter behind it
    int64_t count;
  };
  Program* program_ = nullptr;              // null: nothing is computed
  std::vector<Value*> constants_;           // values that the graph has made or found outside; a reference each
  std::vector<int32_t> sources_;            // of each program argument: an input, or ~constant
  std::vector<int32_t> outputs_;            // the program output of each value that leaves
  std::vector<uint64_t> raw_;
  std::vector<RandomDraw> draws_;
  std::vector<uint32_t> words_;             // packed, when no random numbers are drawn
};

// Between its construction and its end this thread's records go to it. Nothing runs.
class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;

  // A placeholder; inputs are numbered in order. Before the first record. One reference for the caller.
  Value* AddInput(const TensorType& type, int device);
  // The number of the input whose placeholder this is, or -1.
  int InputOf(const Value* value) const;
  // True for a value that the captured records make.
  bool Makes(const Value* value) const;
  // The callable that makes `values` (all of which Makes). Compiles.
  Result<std::unique_ptr<Callable>> Finish(std::span<Value* const> values);

  // Why the capture cannot go on, or "". Set by the first thing that needs a result before it exists.
  const std::string& broken() const { return trace_.broken(); }

 private:
  Trace trace_{Trace::kCapture};
  Trace* outer_;
  int num_inputs_ = 0;
};

// True while this thread captures.
bool Capturing();
// Breaks this thread's capture, if there is one, when the cell is neither an input's nor made in it. Before a cell is swapped.
Status CheckWrite(Cell* cell);
// Ends the capture of this thread in failure: `why` names what is not possible in one.
Status BreakCapture(std::string why);

}  // namespace tpu::engine
