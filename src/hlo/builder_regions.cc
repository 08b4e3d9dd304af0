// SPDX-License-Identifier: Apache-2.0
// Operations with regions: reductions, windows, sort, scatter, control flow.
#include <algorithm>

#include "hlo/builder.h"
#include "hlo/literal.h"

namespace tpu::hlo {
namespace {

Ints OrAll(const Ints& values, size_t rank, int64_t neutral) { return values.empty() ? Ints(rank, neutral) : values; }

std::string Padding(const Ints& low, const Ints& high) {
  std::string s = "padding = dense<[";
  for (size_t i = 0; i < low.size(); ++i) {
    if (i) s += ", ";
    s += Bracketed({low[i], high[i]});
  }
  s += "]> : tensor<";
  AppendInt(&s, static_cast<int64_t>(low.size()));
  return s + "x2xi64>";
}

std::string Flag(const char* name, bool value) { return std::string(name) + (value ? " = true" : " = false"); }

}  // namespace

Values Builder::Reduce(const Values& operands, const Values& inits, const Ints& dimensions, const Body& body) {
  Values failed(operands.size());
  if (!Usable(operands) || !Usable(inits)) return failed;
  size_t n = operands.size();
  if (n == 0 || inits.size() != n) return Internal("reduce: operands and initial values differ in number"), failed;
  const TensorType first = type(operands[0]);
  unsigned reduced = 0;
  for (int64_t d : dimensions) {
    if (d < 0 || d >= first.rank || reduced >> d & 1) return Internal("reduce over " + Bracketed(dimensions)), failed;
    reduced |= 1u << d;
  }
  std::vector<TensorType> results, scalars;
  for (size_t i = 0; i < n; ++i) {
    if (!first.SameDims(type(operands[i])) || !(type(inits[i]) == TensorType::Scalar(dtype(operands[i])))) {
      return Internal("reduce of " + type(operands[i]).ToHlo() + " from " + type(inits[i]).ToHlo()), failed;
    }
    TensorType t = TensorType::Scalar(dtype(operands[i]));
    scalars.push_back(t);
    for (int d = 0; d < first.rank; ++d) {
      if (!(reduced >> d & 1)) t.Append(first.dims[d]);
    }
    results.push_back(t);
  }
  Ints sorted = dimensions;
  std::sort(sorted.begin(), sorted.end());
  Values all = operands;
  all.insert(all.end(), inits.begin(), inits.end());
  std::vector<TensorType> arguments = scalars;
  arguments.insert(arguments.end(), scalars.begin(), scalars.end());
  int number = Start("reduce", all, n);
  Attributes("dimensions = " + I64Array(sorted));
  Region(arguments, body, true, true, true);
  return End(number, all, results);
}

Value Builder::Reduce(Value operand, Value init, const Ints& dimensions, std::string_view op) {
  return Reduce(Values{operand}, Values{init}, dimensions, [&](const Values& v) { return Values{Binary(op, v[0], v[1])}; })[0];
}

Values Builder::ReduceWindow(const Values& operands, const Values& inits, const Window& window, const Body& body) {
  Values failed(operands.size());
  if (!Usable(operands) || !Usable(inits)) return failed;
  size_t n = operands.size();
  if (n == 0 || inits.size() != n) return Internal("reduce_window: operands and initial values differ"), failed;
  const TensorType first = type(operands[0]);
  size_t r = first.rank;
  Ints size = OrAll(window.dimensions, r, 1), strides = OrAll(window.strides, r, 1), base = OrAll(window.base_dilations, r, 1),
       dilations = OrAll(window.window_dilations, r, 1), low = OrAll(window.low, r, 0), high = OrAll(window.high, r, 0);
  for (const Ints* list : {&size, &strides, &base, &dilations, &low, &high}) {
    if (list->size() != r) return Internal("reduce_window: window and operand differ in rank"), failed;
  }
  Ints out(r);
  for (size_t i = 0; i < r; ++i) {
    int64_t d = first.dims[i].size();
    int64_t padded = (d == 0 ? 0 : (d - 1) * base[i] + 1) + low[i] + high[i];
    int64_t span = size[i] == 0 ? 0 : (size[i] - 1) * dilations[i] + 1;
    out[i] = padded < span || padded <= 0 ? 0 : (padded - span) / strides[i] + 1;
  }
  std::vector<TensorType> results, arguments;
  for (size_t i = 0; i < n; ++i) {
    DType d = dtype(operands[i]);
    if (!first.SameDims(type(operands[i])) || !(type(inits[i]) == TensorType::Scalar(d))) {
      return Internal("reduce_window of " + type(operands[i]).ToHlo()), failed;
    }
    results.push_back(TensorType::Of(d, out));
    arguments.push_back(TensorType::Scalar(d));
  }
  for (size_t i = 0; i < n; ++i) arguments.push_back(arguments[i]);
  Values all = operands;
  all.insert(all.end(), inits.begin(), inits.end());
  int number = Start("reduce_window", all, n);
  Attributes("window_dimensions = " + I64Array(size) + ", window_strides = " + I64Array(strides) + ", base_dilations = " +
             I64Array(base) + ", window_dilations = " + I64Array(dilations) + (r ? ", " + Padding(low, high) : ""));
  Region(arguments, body, true, true, true);
  return End(number, all, results);
}

Value Builder::ReduceWindow(Value operand, Value init, const Window& window, std::string_view op) {
  return ReduceWindow(Values{operand}, Values{init}, window,
                      [&](const Values& v) { return Values{Binary(op, v[0], v[1])}; })[0];
}

Value Builder::SelectAndScatter(Value operand, Value source, Value init, const Window& window, const Body& select,
                                const Body& scatter) {
  if (!Usable({operand, source, init})) return {};
  size_t r = static_cast<size_t>(rank(operand));
  TensorType scalar = TensorType::Scalar(dtype(operand));
  Ints low = OrAll(window.low, r, 0), high = OrAll(window.high, r, 0);
  if (rank(source) != rank(operand) || !(type(init) == scalar)) return Internal("select_and_scatter: operand types");
  Values all = {operand, source, init};
  int number = Start("select_and_scatter", all, 1);
  Attributes("window_dimensions = " + I64Array(OrAll(window.dimensions, r, 1)) +
             ", window_strides = " + I64Array(OrAll(window.strides, r, 1)) + ", " + Padding(low, high));
  Region({scalar, scalar}, select, true, true, false);
  Region({scalar, scalar}, scatter, true, false, true);
  return End(number, all, {type(operand)})[0];
}

Values Builder::Sort(const Values& operands, int dimension, bool stable, const Body& comparator) {
  Values failed(operands.size());
  if (!Usable(operands)) return failed;
  if (operands.empty() || dimension < 0 || dimension >= rank(operands[0])) return Internal("sort: dimension"), failed;
  std::vector<TensorType> results, arguments;
  for (Value v : operands) {
    if (!type(v).SameDims(type(operands[0]))) return Internal("sort: operands of different dims"), failed;
    results.push_back(type(v));
    arguments.insert(arguments.end(), 2, TensorType::Scalar(dtype(v)));
  }
  int number = Start("sort", operands, operands.size());
  Attributes("dimension = " + std::to_string(dimension) + " : i64, " + Flag("is_stable", stable));
  Region(arguments, comparator, true, true, true);
  return End(number, operands, results);
}

Value Builder::Scatter(Value operand, Value indices, Value updates, const ScatterDims& dims, bool indices_are_sorted,
                       bool unique_indices, const Body& body) {
  if (!Usable({operand, indices, updates})) return {};
  if (dtype(operand) != dtype(updates) || !IsInteger(dtype(indices))) return Internal("scatter: operand types");
  std::string text = "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ";
  text += Bracketed(dims.update_window_dims) + ", inserted_window_dims = " + Bracketed(dims.inserted_window_dims);
  if (!dims.input_batching_dims.empty()) {
    text += ", input_batching_dims = " + Bracketed(dims.input_batching_dims) +
            ", scatter_indices_batching_dims = " + Bracketed(dims.scatter_indices_batching_dims);
  }
  text += ", scatter_dims_to_operand_dims = " + Bracketed(dims.scatter_dims_to_operand_dims) +
          ", index_vector_dim = " + std::to_string(dims.index_vector_dim) + ">, ";
  text += Flag("indices_are_sorted", indices_are_sorted) + ", " + Flag("unique_indices", unique_indices);
  TensorType scalar = TensorType::Scalar(dtype(operand));
  Values all = {operand, indices, updates};
  int number = Start("scatter", all, 1);
  Attributes(text);
  Region({scalar, scalar}, body, true, true, true);
  return End(number, all, {type(operand)})[0];
}

Value Builder::ScatterSet(Value operand, Value indices, Value updates, const ScatterDims& dims, bool indices_are_sorted,
                          bool unique_indices) {
  return Scatter(operand, indices, updates, dims, indices_are_sorted, unique_indices,
                 [](const Values& v) { return Values{v[1]}; });
}

Values Builder::While(const Values& inits, const Body& condition, const Body& body) {
  Values failed(inits.size());
  if (!Usable(inits)) return failed;
  std::vector<TensorType> types;
  for (Value v : inits) types.push_back(type(v));
  int number = Start("while", inits, inits.size());
  Values test = Region(types, condition, false, true, false);
  Values next = Region(types, body, false, false, true);
  if (!ok()) return failed;
  if (test.size() != 1 || !(type(test[0]) == TensorType::Scalar(DType::kBool))) {
    return Internal("while: the condition is not one i1"), failed;
  }
  bool same = next.size() == inits.size();
  for (size_t i = 0; same && i < next.size(); ++i) same = type(next[i]) == types[i];
  if (!same) return Internal("while: the body changes types"), failed;
  return End(number, inits, types);
}

Values Builder::If(Value pred, const Body& on_true, const Body& on_false) {
  // The number of results is known only after a region: the text in front of it is written last.
  if (!Usable(pred)) return {};
  if (!(type(pred) == TensorType::Scalar(DType::kBool))) return Internal("if: predicate " + type(pred).ToHlo()), Values{};
  return Branch("if", pred, {on_true, on_false});
}

Values Builder::Case(Value index, const std::vector<Body>& branches) {
  if (!Usable(index)) return {};
  if (branches.empty() || !(type(index) == TensorType::Scalar(DType::kI32))) return Internal("case: operands"), Values{};
  return Branch("case", index, branches);
}

Values Builder::Branch(std::string_view op, Value selector, const std::vector<Body>& branches) {
  std::string outer;
  outer.swap(body_);
  std::vector<TensorType> types;
  for (size_t i = 0; i < branches.size(); ++i) {
    Values r = Region({}, branches[i], false, i == 0, i + 1 == branches.size());
    std::vector<TensorType> t;
    for (Value v : r) t.push_back(type(v));
    if (i == 0) types = t;
    if (ok() && t != types) Internal(std::string(op) + ": branches of different types");
  }
  outer.swap(body_);
  if (!ok()) return Values(types.size());
  int number = Start(op, {selector}, types.size());
  body_ += outer;
  return End(number, {selector}, types);
}

}  // namespace tpu::hlo
