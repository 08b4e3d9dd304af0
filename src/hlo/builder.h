// SPDX-License-Identifier: Apache-2.0
// Builder: writes one StableHLO function as text, in MLIR's generic form and with attributes that exist since
// StableHLO 1.0, so that one text parses on every plugin. Shapes are checked and inferred here; nothing else is.
//
// First-error model: a failing call keeps the first error (with the context it happened in) and returns an invalid
// Value; invalid operands give invalid results, silently. Only Finish needs a look at the outcome.
//
// Identity operations emit nothing and return their operand. Constants of equal type and value are shared. One thread.
#pragma once
#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/tensor_type.h"

namespace tpu::hlo {

struct Value {
  int id = -1;
  bool valid() const { return id >= 0; }
};

using Values = std::vector<Value>;
using Ints = std::vector<int64_t>;
// A region: receives its block arguments, returns what the region returns. Values from outside may be used in the
// regions of While, If and Case only; constants may be made anywhere.
using Body = std::function<Values(const Values&)>;

enum class Compare : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class Precision : uint8_t { kHighest, kHigh, kDefault };

struct GatherDims {
  Ints offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims, start_index_map;
  int64_t index_vector_dim = 0;
};
struct ScatterDims {
  Ints update_window_dims, inserted_window_dims, input_batching_dims, scatter_indices_batching_dims,
      scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
};
struct DotDims {
  Ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
};
// Empty lists stand for the neutral values (1, 1, 1, 0, 0).
struct Window {
  Ints dimensions, strides, base_dilations, window_dilations, low, high;
};
struct ConvolutionDims {
  int64_t input_batch, input_feature, kernel_input_feature, kernel_output_feature, output_batch, output_feature;
  Ints input_spatial, kernel_spatial, output_spatial;
};

class Builder {
 public:
  Builder();

  // ---- the function
  // The next program argument.
  Value Argument(const TensorType& type);
  // Declares that argument and output (index in Finish's list) share a buffer. Requires: equal types (checked).
  void Alias(Value argument, int output);
  // A value that is used before it is known how it is made. Between BeginPrologue and EndPrologue operations are placed
  // in front of all others; there, Define says what each declared value is. One prologue a function.
  Value Declare(const TensorType& type);
  void BeginPrologue();
  void Define(Value declared, Value value);
  void EndPrologue();
  // The module's text, or the first error.
  Result<std::string> Finish(const Values& results);

  // ---- errors
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  // Keeps `status` if it is the first error. Returns an invalid Value, so that rules can `return b.Fail(...)`.
  Value Fail(Status status);
  // An error of ours (kRuntime, "internal: ...").
  Value Internal(const std::string& what);
  // Put in front of errors: the operator being lowered.
  void SetContext(std::string context) { context_ = std::move(context); }

  // ---- types. Of an invalid Value: a type with dtype kInvalid and rank 0.
  const TensorType& type(Value v) const;
  DType dtype(Value v) const { return type(v).dtype; }
  int rank(Value v) const { return type(v).rank; }
  int64_t dim(Value v, int i) const { return type(v).dims[i].size(); }
  Ints dims(Value v) const;

  // ---- constants. Numbers are converted to the type exactly as static_cast would (double to narrow floats: rounded to
  // nearest even, once; int64_t to ui64: same bits). NaN and infinities are kept.
  template <class T>
    requires std::is_arithmetic_v<T>
  Value Constant(const TensorType& type, T v) {
    if constexpr (std::is_floating_point_v<T>)
      return FloatConstant(type, static_cast<double>(v));
    else
      return IntConstant(type, static_cast<int64_t>(v));
  }
  Value Constant(const TensorType& type, std::complex<double> v);
  // Rank 0.
  template <class T>
  Value Constant(DType dtype, T v) {
    return Constant(TensorType::Scalar(dtype), v);
  }
  // A constant of the type of `like`.
  template <class T>
  Value Like(Value like, T v) {
    return like.valid() ? Constant(type(like), v) : Value{};
  }
  Value ConstantList(const TensorType& type, const Ints& values);
  Value ConstantList(const TensorType& type, const std::vector<double>& values);
  // Counts along `dimension`. Integer, float or complex type.
  Value Iota(const TensorType& type, int dimension);

  // ---- elementwise. `op` is StableHLO's name without prefix ("add"), or "chlo.erf". Operand types must be equal.
  // Result type: the operand's, except abs/real/imag of complex (real) and is_finite, chlo.is_inf ... (i1).
  Value Unary(std::string_view op, Value x);
  Value Binary(std::string_view op, Value x, Value y);
  // The second operand is a constant of x's type.
  template <class T>
    requires std::is_arithmetic_v<T>
  Value Binary(std::string_view op, Value x, T y) {
    return Binary(op, x, Like(x, y));
  }
  Value Add(Value x, Value y) { return Binary("add", x, y); }
  Value Sub(Value x, Value y) { return Binary("subtract", x, y); }
  Value Mul(Value x, Value y) { return Binary("multiply", x, y); }
  Value Div(Value x, Value y) { return Binary("divide", x, y); }
  Value Max(Value x, Value y) { return Binary("maximum", x, y); }
  Value Min(Value x, Value y) { return Binary("minimum", x, y); }
  Value And(Value x, Value y) { return Binary("and", x, y); }
  Value Or(Value x, Value y) { return Binary("or", x, y); }
  Value Xor(Value x, Value y) { return Binary("xor", x, y); }
  Value Not(Value x) { return Unary("not", x); }
  Value Neg(Value x) { return Unary("negate", x); }
  // i1. Floats compare by IEEE (NaN unordered) unless total_order.
  Value Cmp(Compare direction, Value x, Value y, bool total_order = false);
  template <class T>
    requires std::is_arithmetic_v<T>
  Value Cmp(Compare direction, Value x, T y) {
    return Cmp(direction, x, Like(x, y));
  }
  // x != x
  Value IsNan(Value x) { return Cmp(Compare::kNe, x, x); }
  // `pred` i1 of the operands' dims, or rank 0.
  Value Select(Value pred, Value on_true, Value on_false);
  // `low` and `high` of x's type, or rank 0.
  Value Clamp(Value low, Value x, Value high);
  // StableHLO's own conversion (Lowering::Cast has ATen's). To i1: x != 0. Complex to real: the real part.
  Value Convert(Value x, DType dtype);
  // Equal widths keep the dims; to a narrower type appends a dimension; to a wider one removes the last, which must have
  // the right size. Not for i1 and complex.
  Value BitcastConvert(Value x, DType dtype);
  Value ReducePrecision(Value x, int exponent_bits, int mantissa_bits);
  Value Complex(Value real, Value imag);
  Value Real(Value x) { return Unary("real", x); }
  Value Imag(Value x) { return Unary("imag", x); }
  // The compiler may not move or simplify across it.
  Value OptimizationBarrier(Value x);

  // ---- shape
  // Operand dimension i becomes result dimension broadcast_dimensions[i] (equal size, or 1).
  Value BroadcastInDim(Value x, const Ints& dims, const Ints& broadcast_dimensions);
  // NumPy's rule: trailing dimensions aligned; to the dims of `like` (its dtype does not matter), or to `dims`.
  Value Broadcast(Value x, const Ints& dims);
  Value BroadcastLike(Value x, Value like) { return Broadcast(x, dims(like)); }
  Value Reshape(Value x, const Ints& dims);
  Value Flatten(Value x) { return Reshape(x, {type(x).numel()}); }
  // Result dimension i is operand dimension permutation[i].
  Value Transpose(Value x, const Ints& permutation);
  Value Slice(Value x, const Ints& start, const Ints& limit, const Ints& strides = {});
  // One dimension only: [start, limit) with a step.
  Value SliceDim(Value x, int dimension, int64_t start, int64_t limit, int64_t stride = 1);
  // `starts`: one rank-0 integer for each dimension, all of one type. Clamped by the engine, silently.
  Value DynamicSlice(Value x, const Values& starts, const Ints& sizes);
  Value DynamicUpdateSlice(Value x, Value update, const Values& starts);
  Value Concatenate(const Values& xs, int dimension);
  // `value` rank 0. low and high may be negative. Empty interior: zeros.
  Value Pad(Value x, Value value, const Ints& low, const Ints& high, const Ints& interior = {});
  Value Reverse(Value x, const Ints& dimensions);

  // ---- reductions, windows, sort. Inits have rank 0. The body receives 2n rank-0 values: n accumulators, then n new
  // ones (of the inits' types) and returns n.
  Values Reduce(const Values& operands, const Values& inits, const Ints& dimensions, const Body& body);
  Value Reduce(Value operand, Value init, const Ints& dimensions, std::string_view op);
  Values ReduceWindow(const Values& operands, const Values& inits, const Window& window, const Body& body);
  Value ReduceWindow(Value operand, Value init, const Window& window, std::string_view op);
  // `select`: two values to i1; `scatter`: two values to their combination. Low/high padding and strides of the window.
  Value SelectAndScatter(Value operand, Value source, Value init, const Window& window, const Body& select,
                         const Body& scatter);
  // The comparator receives 2n rank-0 values (left and right of operand 0, of operand 1, ...) and returns one i1.
  Values Sort(const Values& operands, int dimension, bool stable, const Body& comparator);

  // ---- indexing. Out-of-range indices: gather clamps, scatter drops.
  Value Gather(Value operand, Value indices, const GatherDims& dims, const Ints& slice_sizes, bool indices_are_sorted = false);
  // The body receives {old, update} of rank 0 and returns the new element.
  Value Scatter(Value operand, Value indices, Value updates, const ScatterDims& dims, bool indices_are_sorted,
                bool unique_indices, const Body& body);
  // Updates replace what they hit.
  Value ScatterSet(Value operand, Value indices, Value updates, const ScatterDims& dims, bool indices_are_sorted,
                   bool unique_indices);

  // ---- linear algebra
  // Folds the transposes that the operands of a dot_general come from into its dimension numbers:
  // XLA:CPU leaves some transposes in front of a dot (one row times a transposed matrix: 190 us in place of 13).
  void FoldTransposes(Value* lhs, Value* rhs, DotDims* dims) const;
  // Result dims: batch, free dims of lhs, free dims of rhs. `result` may be wider than the operands' dtype. Folds transposes.
  Value DotGeneral(Value lhs, Value rhs, const DotDims& dims, Precision precision, DType result = DType::kInvalid);
  // Window: strides, base_dilations (input), window_dilations (kernel), low, high. `reversal` empty: none.
  Value Convolution(Value lhs, Value rhs, const ConvolutionDims& dims, const Window& window, int64_t feature_groups,
                    int64_t batch_groups, Precision precision, DType result = DType::kInvalid,
                    const std::vector<bool>& reversal = {});
  Value Cholesky(Value a, bool lower);
  // Solves op(a) x = b (left side) or x op(a) = b. `transpose`: "NO_TRANSPOSE", "TRANSPOSE" or "ADJOINT".
  Value TriangularSolve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal, std::string_view transpose);
  // `kind`: "FFT", "IFFT", "RFFT", "IRFFT"; lengths of the last dimensions.
  Value Fft(Value x, std::string_view kind, const Ints& lengths);

  // ---- control flow. Bodies may capture outer values.
  Values While(const Values& inits, const Body& condition, const Body& body);
  // The bodies receive nothing; both return the same types.
  Values If(Value pred, const Body& on_true, const Body& on_false);
  // i32 index; out of range: the last branch.
  Values Case(Value index, const std::vector<Body>& branches);

  // ---- everything else
  // `attributes`: the inside of <{...}>, as text.
  Values CustomCall(std::string_view target, const Values& operands, const std::vector<TensorType>& results,
                    std::string_view attributes = "", bool has_side_effect = false);
  // Any operation with known result types. `body`, if given, is its only region with block arguments of these types.
  Values Op(std::string_view op, const Values& operands, const std::vector<TensorType>& results,
            std::string_view attributes = "", const Body* body = nullptr, const std::vector<TensorType>& body_arguments = {});

 private:
  struct Info {
    TensorType type;
    int number;      // name: %number, or %argnumber
    int16_t part;    // result of a multi-result operation, else -1
    bool argument;
    int scope;       // region that it belongs to
  };
  struct Scope {
    int id;
    bool isolated;   // may not capture
    std::unordered_map<std::string, Value> constants;
  };

  Value NewValue(const TensorType& type, int number, int part, bool argument);
  // Makes the operand of a dot the source of the transpose that it is. False: it is none, or cannot be folded.
  bool FoldTranspose(Value* x, Ints* batch, Ints* contract) const;
  bool Usable(const Values& values);
  bool Usable(Value v) { return Usable(Values{v}); }
  Value FloatConstant(const TensorType& type, double v);
  Value IntConstant(const TensorType& type, int64_t v);
  Value SharedConstant(const TensorType& type, const std::string& text);
  // Emission: Start writes `%n = "op"(operands)`, Attributes `<{..}>`, Region each region, End the types.
  int Start(std::string_view op, const Values& operands, size_t num_results);
  void Attributes(std::string_view text);
  Values Region(const std::vector<TensorType>& arguments, const Body& body, bool isolated, bool first, bool last);
  Values End(int number, const Values& operands, const std::vector<TensorType>& results);
  Values Branch(std::string_view op, Value selector, const std::vector<Body>& branches);
  Value Emit(std::string_view op, const Values& operands, const TensorType& result, std::string_view attributes = "");
  void AppendName(std::string* out, const Info& info) const;

  std::string body_, prologue_;
  bool in_prologue_ = false;
  std::vector<Info> values_;
  std::unordered_map<int, std::pair<Value, Ints>> transposed_;  // by value: what it is a transpose of, and its permutation
  std::vector<Scope> scopes_;
  std::vector<std::pair<int, int>> aliases_;  // argument number, output
  std::vector<int> arguments_;                // value ids
  int next_number_ = 0, next_scope_ = 0;
  Status status_;
  std::string context_;
};

// Attribute spellings, for Op and CustomCall: "array<i64: 1, 2>", "[1, 2]".
std::string I64Array(const Ints& values);
std::string Bracketed(const Ints& values);

}  // namespace tpu::hlo
