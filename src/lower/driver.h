// SPDX-License-Identifier: Apache-2.0
// Driver: one lowering of one graph. Owns the builder and what the program needs from outside: arguments, packed host
// values, traps, counters of random numbers. Rules see it through Lowering only.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "lower/lowering.h"

namespace tpu::lower {

class Driver {
 public:
  Driver(const graph::Graph& graph, const pjrt::EngineProfile& profile) : graph_(graph), profile_(profile) {}

  Result<Lowered> Run();

  hlo::Builder& builder() { return b_; }
  const std::string& context() const { return context_; }

  // The operand's elements, in its own dtype and sizes.
  hlo::Value Read(const graph::Operand& operand);
  // A host value as a rank-0 value of `field.to`; equal fields are one value.
  hlo::Value Host(HostField field);
  // A raw host value of the current record, by its number there. `from`, `to` as in HostField.
  hlo::Value HostRaw(int raw, DType from, DType to);

  void AddTrap(hlo::Value bad, ErrorKind kind, std::string message);
  // First counter of `count` fresh ones, as {low, high} ui32; and the key.
  std::pair<hlo::Value, hlo::Value> TakeCounters(int64_t count);
  std::pair<hlo::Value, hlo::Value> RandomKey();

 private:
  void LowerRecord(size_t index);
  void AddName(const char* name);
  hlo::Value ValueOf(int number);
  void WriteResult(size_t index, size_t k, hlo::Value value);
  hlo::Value WriteTarget(const graph::Target& target, hlo::Value value);
  void DefineHostValues();
  std::pair<hlo::Value, hlo::Value> Words(hlo::Value u64);

  const graph::Graph& graph_;
  const pjrt::EngineProfile& profile_;
  hlo::Builder b_;
  Lowered out_;
  std::string context_;
  const char* last_name_ = nullptr;       // the rule's, the last in out_.name
  std::vector<hlo::Value> arguments_;     // by graph argument number; invalid where unused
  std::vector<hlo::Value> made_;          // results of earlier records
  std::vector<int> origin_;               // parallel to made_: the argument that the result is a new value of, or -1
  std::vector<hlo::Value> outputs_, traps_;
  std::vector<hlo::Value> host_values_;   // parallel to out_.host_fields
  std::vector<std::pair<int, int>> alias_candidates_;  // graph argument, output
  std::vector<int> first_raw_;            // of each record so far: the number of its first raw host value in the graph
  int num_raws_ = 0;                      // of the records before the current one
  size_t record_ = 0;                     // the current record
  int64_t record_count_ = 0;              // random counters that the current record has taken
};

// The dimensions of a fresh result by falling stride: the memory order of its value. Row-major results (sizes of 1 do
// not count) keep their order, so that they need no transpose.
void MemoryOrder(const graph::RecordResult& result, int8_t* order);

}  // namespace tpu::lower
