// SPDX-License-Identifier: Apache-2.0
// The rule table: how ATen operators become StableHLO. One row an operator, by the name of its functional overload;
// in-place, out= and foreach forms are derived from the schema. Each family file ends in its rows.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tpu::lower {

class Lowering;

// How padding of a bounded dimension is kept out of the result (design section 5).
enum class Pad : uint8_t { kRefuse, kPass, kInit, kZero };

// The structural class of a run-time scalar: 0 means "a run-time value"; any other number is part of the key and the
// value itself is not (the class implies it). `argument` is the position in the functional schema.
using Classify = uint8_t (*)(int argument, double value, bool is_integer);

struct Rule {
  const char* name;             // functional overload without "aten::": "add.Tensor"; other namespaces in full
  void (*lower)(Lowering&);
  const char* hlo = nullptr;    // families: the StableHLO or CHLO operator of this row
  // Comma-separated argument names. Scalars are run-time host values unless listed here:
  const char* structural_scalars = nullptr;
  // float (not Scalar) arguments that are run-time host values:
  const char* runtime_floats = nullptr;
  // Arguments named "alpha" and "beta" always have class 1 for the value 1; this replaces or extends it.
  Classify classify = nullptr;
  Pad pad = Pad::kRefuse;
  bool random = false;          // draws from the device generator (Lowering::Random)
  // Factories whose result size follows from run-time scalars (arange): that size, part of the key as one more argument;
  // negative when Meta shall refuse the call. `scalars` in the schema's order.
  int64_t (*size_of_scalars)(const double* scalars, int count) = nullptr;
  // Arguments that the operator changes without saying so in its schema, comma-separated, while its bool argument
  // `updates_if` is true: their new values are further results, after those of the schema.
  const char* updates = nullptr;
  const char* updates_if = nullptr;
  bool precision = false;       // the matmul precision setting is part of its key
  // The dtype in which it computes, where the call names none, is that of its `out=`.
  bool dtype_of_out = false;
  // Result 0 is channels_last when a tensor argument is: Meta does not say so, every other backend does it.
  bool keeps_channels_last = false;
};

// All rows of all families, in registration order. Duplicate names abort at first use.
const std::vector<const Rule*>& AllRules();
// "aten::add.Tensor"; names that have a namespace of their own keep it.
std::string QualifiedName(const Rule& rule);
// Null when there is no rule. `op` is HashName of the qualified name.
const Rule* FindRule(uint64_t op);

// Each family file defines one of these; rule.cc lists them.
std::span<const Rule> PointwiseRules();
std::span<const Rule> CompareRules();
std::span<const Rule> ReduceRules();
std::span<const Rule> ShapeRules();
std::span<const Rule> IndexRules();
std::span<const Rule> MatmulRules();
std::span<const Rule> AmpRules();
std::span<const Rule> AttentionRules();
std::span<const Rule> ConvolutionRules();
std::span<const Rule> PoolingRules();
std::span<const Rule> NormalizeRules();
std::span<const Rule> LossRules();
std::span<const Rule> CreateRules();
std::span<const Rule> RandomRules();
std::span<const Rule> SortRules();
std::span<const Rule> CopyRules();
std::span<const Rule> NonzeroRules();

}  // namespace tpu::lower
