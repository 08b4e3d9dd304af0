// SPDX-License-Identifier: Apache-2.0
// Lowering: what a rule sees of its record, and the driver Graph -> StableHLO.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/op_record.h"
#include "hlo/builder.h"
#include "lower/rule.h"
#include "pjrt/engine_profile.h"

namespace tpu::lower {

// A word (or two, four) of the packed host argument: which raw host value, converted to which type.
struct HostField {
  int32_t raw = 0;               // index of the raw host value
  DType from = DType::kI64;      // how the raw bits are to be read: kI64, kU64, kF64, kC128 (two raws)
  DType to = DType::kI32;        // type in the program; decides the number of words
  int32_t word = 0;              // position in the ui32 argument
};

// What one s32 of the trap result means. 0 is no error; a bad value v is encoded as v + 1 when v >= 0, else v.
struct TrapInfo {
  ErrorKind kind;
  std::string message;  // "%v" is replaced by the bad value
};

// A lowered graph: text and everything the launcher must know.
struct Lowered {
  std::string text;
  std::vector<int> arguments;          // graph argument number of each program argument, the host argument excluded
  std::vector<HostField> host_fields;
  int host_words = 0;                  // 0: no host argument (else it is the last program argument, ui32[host_words])
  struct Output {
    TensorType type;                   // of the value
    int record = 0, result = 0;        // which result of which record
  };
  std::vector<Output> outputs;         // program outputs in order; a trap output, if any, comes last
  std::vector<TrapInfo> traps;         // not empty: the last output is s32[traps.size()]
  struct Alias {
    int argument, output;              // program argument -> program output
  };
  std::vector<Alias> aliases;
  int64_t random_count = 0;            // counters drawn from the generator, by all records
  std::string name;                    // operator names, for errors and profiles
};

// Lowers a whole graph. Errors are NotImplemented (the operators then run through the fallback) or Runtime (user errors
// that only lowering finds). Requires: every record's results are filled.
Result<Lowered> LowerGraph(const graph::Graph& graph, const pjrt::EngineProfile& profile);

// Numerics word of a graph (graph.numerics): decoded view.
struct Numerics {
  enum Precision : uint8_t { kHighest, kHigh, kDefault } matmul_precision = kHighest;
  bool deterministic = false;
  uint64_t Encode(uint32_t profile_id) const;
  static Numerics Decode(uint64_t word);
  hlo::Precision precision() const { return static_cast<hlo::Precision>(matmul_precision); }
};

class Lowering {
 public:
  hlo::Builder& b;
  const pjrt::EngineProfile& profile;
  Numerics numerics;

  const Rule& rule() const;
  const graph::OpRecord& record() const;

  // ---- arguments, by position in the functional schema
  int num_args() const;
  const graph::Argument& arg(int i) const;
  bool IsNone(int i) const;
  // The operand read through its view: its own dtype and sizes (host tensors and scalars: rank 0). conj and neg bits are
  // applied. The second form converts (ATen's rules for narrow floats and integers).
  hlo::Value Tensor(int i);
  hlo::Value Tensor(int i, DType dtype);
  std::vector<hlo::Value> TensorList(int i);  // undefined elements are invalid Values
  // ATen's conversion of any value (lower/cast.h).
  hlo::Value Cast(hlo::Value x, DType dtype);
  // dtype, and dims of operand i without reading it
  TensorType TypeOf(int i) const;
  int64_t Int(int i) const;
  int64_t IntOr(int i, int64_t if_none) const;
  bool Bool(int i) const;
  double Double(int i) const;
  const std::vector<int64_t>& IntList(int i) const;
  const std::string& Text(int i) const;
  uint8_t ScalarClass(int i) const;
  // Run-time scalar (Scalar argument, named float, or host tensor) as a rank-0 value of the type asked for.
  hlo::Value Scalar(int i, DType dtype);
  // A structural scalar (Rule::structural_scalars) as a number.
  double StructuralScalar(int i) const;

  // ---- results
  int num_results() const;
  bool ResultDefined(int k) const;
  const graph::RecordResult& result(int k) const;
  TensorType ResultType(int k) const;  // dims in the tensor's own (logical) order
  // Requires: value has ResultType(k). The driver handles memory order, targets and aliases.
  void SetResult(int k, hlo::Value value);

  // ---- promotion
  // ATen's result_type over the given arguments (dimensioned tensors > 0-dim tensors > wrapped numbers and Scalars).
  DType Promoted(std::initializer_list<int> args) const;

  // ---- run-time checks
  // `bad` is an s32 scalar: 0 when all is well, else the bad value encoded as TrapInfo says. See TrapIfOutOfRange.
  void Trap(hlo::Value bad, ErrorKind kind, std::string message);
  // Traps when an element of `index` (any integer tensor) is outside [low, high).
  void TrapIfOutOfRange(hlo::Value index, int64_t low, int64_t high, ErrorKind kind, std::string message);

  // ---- random numbers: Philox 4x32-10, element i uses counter offset + i, one call an element
  struct RandomWords {
    std::array<hlo::Value, 4> w;  // ui32, flat [count]
  };
  RandomWords Random(int64_t count);

  // Ends the lowering with NotImplemented: the operator goes to the fallback for this signature.
  void Unsupported(std::string why);

 private:
  friend class Driver;
  friend Result<Lowered> LowerGraph(const graph::Graph&, const pjrt::EngineProfile&);
  class Driver* driver_ = nullptr;
  const graph::OpRecord* record_ = nullptr;
  const Rule* rule_ = nullptr;
  std::vector<hlo::Value> results_;
  Lowering(hlo::Builder& builder, const pjrt::EngineProfile& p) : b(builder), profile(p) {}
};

}  // namespace tpu::lower
