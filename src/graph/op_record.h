// SPDX-License-Identifier: Apache-2.0
// OpRecord: one operation as lowering sees it, decoded from key words (graph/key.h). Everything in it is structural;
// run-time values appear as indices of raw host values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/access.h"

namespace tpu::graph {

// A tensor operand: a view of a value. Values are numbered: arguments of the graph first (by order of appearance of
// their cell), then the results of earlier records.
struct Operand {
  int value = -1;
  TensorType base;          // type of the value
  DType dtype = DType::kInvalid;  // of the view
  uint8_t rank = 0;
  Dim sizes[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};
  Access access;
  int first_start = -1;     // raw host value of the first start index
  bool conj = false, neg = false;

  TensorType type() const {
    TensorType t;
    t.dtype = dtype;
    t.rank = rank;
    for (int i = 0; i < rank; ++i) t.dims[i] = sizes[i];
    return t;
  }
};

enum class ArgKind : uint8_t {
  kNone,
  kTensor,
  kTensorList,   // elements may be undefined (index.Tensor)
  kHostTensor,   // 0-dim CPU tensor: dtype counts in promotion as its kind says, value is a raw host value
  kScalar,       // run-time Scalar (or float named by the rule): raw host value, or a structural class
  kInt,
  kDouble,
  kBool,
  kIntList,
  kDoubleList,
  kBoolList,
  kString,
  kDType,
};

struct Argument {
  ArgKind kind = ArgKind::kNone;
  std::vector<Operand> tensors;      // kTensor: one; kTensorList: all (value -1 where undefined)
  // kHostTensor, kScalar
  DType dtype = DType::kInvalid;     // kScalar: kI64, kF64, kBool or kC128 as the Python number was
  bool wrapped_number = false;       // kHostTensor
  uint8_t scalar_class = 0;          // kScalar; 0: the value is a run-time host value
  int raw = -1;                      // index of the raw host value (complex: two, real then imaginary)
  // structural attributes
  int64_t i = 0;                     // kInt, kBool
  double d = 0;                      // kDouble
  std::vector<int64_t> ints;         // kIntList, kBoolList
  std::vector<double> doubles;
  std::string text;
};

// What a record makes. Filled from Meta (functional results) before lowering.
struct RecordResult {
  bool defined = true;   // false: an undefined tensor (masked gradient)
  DType dtype = DType::kInvalid;
  uint8_t rank = 0;
  int64_t sizes[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};

  TensorType type() const {
    TensorType t;
    t.dtype = dtype;
    t.rank = rank;
    for (int i = 0; i < rank; ++i) t.dims[i] = sizes[i];
    return t;
  }
};

// Where result k is written instead of becoming a fresh value (in-place, out=).
struct Target {
  Operand operand;            // access to the old base; value -1 when the old value is not needed (full overwrite)
  bool overwrites = false;    // the target covers its storage: the new base is the dense result
  int8_t order[kMaxRank] = {};  // overwrites: memory order of the new base
};

struct OpRecord {
  uint64_t numerics = 0;             // what settings of numerics it was recorded under (lower::Numerics)
  uint64_t op = 0;                   // HashName of the functional operator's name, e.g. "aten::add.Tensor"
  std::vector<Argument> args;        // in the functional schema's order
  std::vector<Target> targets;       // of results first_target_result, + 1, ...
  int first_target_result = 0;       // 0, or the number of the schema's results when further ones update arguments
  std::vector<RecordResult> results;
  // The target of result k, or null.
  const Target* target(size_t k) const {
    size_t first = static_cast<size_t>(first_target_result);
    return k >= first && k - first < targets.size() ? &targets[k - first] : nullptr;
  }
  int num_raw = 0;                   // raw host values; a random operator's seed and first counter come behind them
  // The earlier record of the graph whose raw host values are known to be the same, or -1.
  int same_raws = -1;
};

// A sealed sequence of records with its argument types. Strict eager seals after each: a graph of one.
struct Graph {
  std::vector<TensorType> arguments;
  std::vector<OpRecord> records;
  // The results that leave the program, by their number among the results of all records, ascending. Else all do.
  std::optional<std::vector<int>> live;
};

// One line a record, for messages and `explain`.
std::string ToString(const Graph& graph);

}  // namespace tpu::graph
