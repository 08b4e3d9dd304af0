// SPDX-License-Identifier: Apache-2.0
// Trace: records that wait to be sealed together (fused eager, foreach operators). A record in a trace has its results
// as values in the state kTraced, and has swapped them into its cells: to its caller it has happened. Sealing makes one
// program of all records, when the engine has seen the same records together before, else one of each; either way they
// then run in the order in which they were recorded.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "engine/cell.h"
#include "engine/corridor.h"
#include "engine/program.h"
#include "engine/queue.h"
#include "engine/value.h"

namespace tpu::engine {

// What the corridor hands to a trace in place of the queue. References of outputs and values as in Submission.
struct TracedRecord {
  Program* program;
  const Record* record;
  Value* const* outputs;  // one for each of program->outputs
  Cell* const* cells;     // cells[i] <- values[i]
  Value* const* values;
  int num_cells;
};

class Trace {
 public:
  enum Kind {
    kFused,   // learns: a program of all from the second time on
    kScoped,  // one program at once
    kCapture,  // never sealed: engine/capture.h makes a callable of it
  };
  struct RandomDraw {
    size_t raw;  // where the seed and the first counter stand among the raw host values
    int64_t count;
  };
  explicit Trace(Kind kind);
  ~Trace();

  // May seal what is there first. Never fails: what goes wrong in sealing poisons the results.
  void Append(const TracedRecord& r);
  void Seal();
  size_t size() const { return parts_.size(); }
  // An argument of `r` that another trace holds, or null.
  Value* Foreign(const TracedRecord& r);
  bool capturing() const { return kind_ == kCapture; }

  // ---- for captures
  // The number of an argument, which it becomes if it is new.
  int32_t NumberOf(Value* value);
  // Whether it is an argument or, with a negative number, made here.
  bool Holds(const Value* value, int32_t* number) const;
  // The program of all records whose outputs contain the values made of these numbers.
  Result<Program*> ProgramFor(std::vector<int32_t> made);
  Value* argument(size_t number) const { return arguments_[number]; }
  const std::vector<uint64_t>& raw() const { return raw_; }
  const std::vector<RandomDraw>& draws() const { return draws_; }
  // Whether the cell belongs to no input and to nothing made here.
  bool IsOutside(Cell* cell) const;
  const std::string& broken() const { return broken_; }
  Status Break(std::string why);

 private:
  struct Slot {
    const Value* value = nullptr;
    uint32_t epoch = 0;
    int32_t number = 0;
  };

  Slot& Find(const Value* value);
  void Insert(const Value* value, int32_t number);
  void Grow();
  void SealBefore(const TracedRecord& r);
  // The part whose raw host values `r` repeats, or -1: known of the tensors of one foreach operator only.
  int32_t RepeatedRaws(const TracedRecord& r);
  Program* ComposedProgram();
  std::vector<int32_t> LiveValues() const;
  void RunComposed(Program* program);
  void RunParts();
  void Hand(const Submission& s);
  void Clear();
  // What is still held when a capture ends will never be computed.
  void PoisonLeaked();

  const Kind kind_;
  int device_ = 0;
  uint64_t last_thread_ = 0;
  Hasher hasher_;
  std::vector<uint64_t> key_;
  std::vector<const Program*> parts_;
  std::vector<int32_t> operands_;
  std::vector<Value*> arguments_, made_;  // a reference each
  std::vector<uint64_t> raw_;
  std::vector<size_t> first_raw_;         // of each part
  std::vector<int32_t> same_raws_;        // of each part: Composition::same_raws
  uint64_t last_loop_ = 0;                // ScopedTrace that the last part was recorded in
  std::vector<RandomDraw> draws_;         // of a capture, which does not draw
  std::string broken_;
  std::vector<Fingerprint> rolling_;      // of the first records, after each record
  size_t seal_at_ = 0;                    // not 0: the period that the records seem to have
  int sealed_at_ = 0;
  std::vector<Slot> slots_;
  uint32_t epoch_ = 1;
};

// The trace that takes this thread's records, or null: strict eager, each record is sealed at once.
Trace* CurrentTrace();
// Appends to it; the fused trace belongs to all threads, and is locked.
Status AppendTo(Trace* trace, const TracedRecord& r);
// Seals the fused trace, and this thread's scoped one.
void SealTraces();
// Makes `trace` the one that takes this thread's records; the one before.
Trace* ExchangeScopedTrace(Trace* trace);
// True when some trace of the process may hold records.
bool AnyTraced();
// Waits until a value is no longer kTraced: seals, or lets the thread that holds it come to its seal.
Status WaitUntilSealed(Value* value);

// Records of this thread between its construction and its end become one program (a few when there are many). In another
// trace they only become known as the records of one loop over tensors.
class ScopedTrace {
 public:
  ScopedTrace();
  ~ScopedTrace();
  ScopedTrace(const ScopedTrace&) = delete;

 private:
  Trace trace_{Trace::kScoped};
  Trace* outer_ = nullptr;
  bool active_ = false;
  uint64_t outer_loop_ = 0;
};

}  // namespace tpu::engine
