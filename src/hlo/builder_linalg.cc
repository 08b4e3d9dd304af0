// SPDX-License-Identifier: Apache-2.0
// Gather, products, factorisations, Fourier transforms.
#include <algorithm>

#include "hlo/builder.h"
#include "hlo/literal.h"

namespace tpu::hlo {
namespace {

bool Contains(const Ints& list, int64_t v) { return std::find(list.begin(), list.end(), v) != list.end(); }

std::string PrecisionConfig(Precision precision) {
  static constexpr const char* kNames[] = {"HIGHEST", "HIGH", "DEFAULT"};
  std::string one = std::string("#stablehlo<precision ") + kNames[static_cast<int>(precision)] + ">";
  return "precision_config = [" + one + ", " + one + "]";
}

std::string Order(const Ints& spatial, std::initializer_list<std::pair<int64_t, char>> named) {
  std::vector<std::string> s(spatial.size() + 2);
  for (auto [position, name] : named) s[static_cast<size_t>(position)] = std::string(1, name);
  for (size_t i = 0; i < spatial.size(); ++i) s[static_cast<size_t>(spatial[i])] = std::to_string(i);
  std::string out = "[";
  for (size_t i = 0; i < s.size(); ++i) out += (i ? ", " : "") + s[i];
  return out + "]";
}

}  // namespace

Value Builder::Gather(Value operand, Value indices, const GatherDims& dims, const Ints& slice_sizes, bool indices_are_sorted) {
  if (!Usable({operand, indices})) return {};
  const TensorType from = type(operand), index = type(indices);
  bool fits = slice_sizes.size() == from.rank && IsInteger(index.dtype) && dims.index_vector_dim <= index.rank;
  for (size_t i = 0; fits && i < slice_sizes.size(); ++i) {
    fits = slice_sizes[i] >= 0 && slice_sizes[i] <= from.dims[i].size();
  }
  Ints window, batch;
  for (size_t i = 0; i < slice_sizes.size(); ++i) {
    auto d = static_cast<int64_t>(i);
    if (!Contains(dims.collapsed_slice_dims, d) && !Contains(dims.operand_batching_dims, d)) {
      window.push_back(slice_sizes[i]);
    }
  }
  for (int i = 0; i < index.rank; ++i) {
    if (i != dims.index_vector_dim) batch.push_back(index.dims[i].size());
  }
  fits = fits && window.size() == dims.offset_dims.size() && window.size() + batch.size() <= kMaxRank;
  if (!fits) return Internal("gather of " + from.ToHlo() + " by " + index.ToHlo() + ", sizes " + Bracketed(slice_sizes));
  TensorType to = TensorType::Scalar(from.dtype);
  size_t w = 0, b = 0;
  for (size_t i = 0; i < window.size() + batch.size(); ++i) {
    bool is_window = Contains(dims.offset_dims, static_cast<int64_t>(i));
    if (is_window ? w >= window.size() : b >= batch.size()) return Internal("gather: offset_dims");
    to.Append(is_window ? window[w++] : batch[b++]);
  }
  std::string text = "dimension_numbers = #stablehlo.gather<offset_dims = " + Bracketed(dims.offset_dims) +
                     ", collapsed_slice_dims = " + Bracketed(dims.collapsed_slice_dims);
  if (!dims.operand_batching_dims.empty()) {
    text += ", operand_batching_dims = " + Bracketed(dims.operand_batching_dims) +
            ", start_indices_batching_dims = " + Bracketed(dims.start_indices_batching_dims);
  }
  text += ", start_index_map = " + Bracketed(dims.start_index_map) +
          ", index_vector_dim = " + std::to_string(dims.index_vector_dim) + ">, slice_sizes = " + I64Array(slice_sizes) +
          (indices_are_sorted ? ", indices_are_sorted = true" : ", indices_are_sorted = false");
  return Emit("gather", {operand, indices}, to, text);
}

bool Builder::FoldTranspose(Value* x, Ints* batch, Ints* contract) const {
  auto it = transposed_.find(x->id);
  if (it == transposed_.end()) return false;
  const auto& [source, permutation] = it->second;
  int64_t last = -1;  // the free dimensions have to keep their order: it is the result's
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (Contains(*batch, static_cast<int64_t>(i)) || Contains(*contract, static_cast<int64_t>(i))) continue;
    if (permutation[i] < last) return false;
    last = permutation[i];
  }
  for (Ints* dims : {batch, contract})
    for (int64_t& d : *dims) d = permutation[static_cast<size_t>(d)];
  *x = source;
  return true;
}

void Builder::FoldTransposes(Value* lhs, Value* rhs, DotDims* dims) const {
  while (FoldTranspose(lhs, &dims->lhs_batch, &dims->lhs_contract)) {
  }
  while (FoldTranspose(rhs, &dims->rhs_batch, &dims->rhs_contract)) {
  }
}

Value Builder::DotGeneral(Value lhs, Value rhs, const DotDims& given, Precision precision, DType result) {
  if (!Usable({lhs, rhs})) return {};
  DotDims dims = given;
  FoldTransposes(&lhs, &rhs, &dims);
  const TensorType a = type(lhs), b = type(rhs);
  TensorType to = TensorType::Scalar(result == DType::kInvalid ? a.dtype : result);
  bool fits = dims.lhs_batch.size() == dims.rhs_batch.size() && dims.lhs_contract.size() == dims.rhs_contract.size() &&
              a.rank + b.rank - 2 * dims.lhs_contract.size() - dims.lhs_batch.size() <= kMaxRank;
  for (size_t i = 0; fits && i < dims.lhs_contract.size(); ++i) {
    fits = a.dims[dims.lhs_contract[i]] == b.dims[dims.rhs_contract[i]];
  }
  for (size_t i = 0; fits && i < dims.lhs_batch.size(); ++i) {
    fits = a.dims[dims.lhs_batch[i]] == b.dims[dims.rhs_batch[i]];
    if (fits) to.Append(a.dims[dims.lhs_batch[i]]);
  }
  if (!fits) return Internal("dot_general of " + a.ToHlo() + " and " + b.ToHlo());
  for (int i = 0; i < a.rank; ++i) {
    if (!Contains(dims.lhs_batch, i) && !Contains(dims.lhs_contract, i)) to.Append(a.dims[i]);
  }
  for (int i = 0; i < b.rank; ++i) {
    if (!Contains(dims.rhs_batch, i) && !Contains(dims.rhs_contract, i)) to.Append(b.dims[i]);
  }
  return Emit("dot_general", {lhs, rhs}, to,
              "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = " + Bracketed(dims.lhs_batch) +
                  ", rhs_batching_dimensions = " + Bracketed(dims.rhs_batch) +
                  ", lhs_contracting_dimensions = " + Bracketed(dims.lhs_contract) +
                  ", rhs_contracting_dimensions = " + Bracketed(dims.rhs_contract) + ">, " + PrecisionConfig(precision));
}

Value Builder::Convolution(Value lhs, Value rhs, const ConvolutionDims& dims, const Window& window, int64_t feature_groups,
                           int64_t batch_groups, Precision precision, DType result, const std::vector<bool>& reversal) {
  if (!Usable({lhs, rhs})) return {};
  const TensorType a = type(lhs), k = type(rhs);
  size_t n = dims.input_spatial.size();
  if (a.rank != n + 2 || k.rank != n + 2 || dims.kernel_spatial.size() != n || dims.output_spatial.size() != n) {
    return Internal("convolution of " + a.ToHlo() + " by " + k.ToHlo());
  }
  auto all = [&](const Ints& list, int64_t neutral) { return list.empty() ? Ints(n, neutral) : list; };
  Ints strides = all(window.strides, 1), base = all(window.base_dilations, 1), dilations = all(window.window_dilations, 1),
       low = all(window.low, 0), high = all(window.high, 0), out(n + 2);
  out[static_cast<size_t>(dims.output_batch)] = a.dims[dims.input_batch].size() / batch_groups;
  out[static_cast<size_t>(dims.output_feature)] = k.dims[dims.kernel_output_feature].size();
  std::string padding, reversed;
  for (size_t i = 0; i < n; ++i) {
    int64_t d = a.dims[dims.input_spatial[i]].size(), w = k.dims[dims.kernel_spatial[i]].size();
    int64_t padded = (d ? (d - 1) * base[i] + 1 : 0) + low[i] + high[i], span = w ? (w - 1) * dilations[i] + 1 : 0;
    out[static_cast<size_t>(dims.output_spatial[i])] = padded < span || padded <= 0 ? 0 : (padded - span) / strides[i] + 1;
    padding += (i ? ", " : "") + Bracketed({low[i], high[i]});
    reversed += std::string(i ? ", " : "") + (i < reversal.size() && reversal[i] ? "true" : "false");
  }
  std::string text = "batch_group_count = " + std::to_string(batch_groups) + " : i64, dimension_numbers = #stablehlo.conv<" +
                     Order(dims.input_spatial, {{dims.input_batch, 'b'}, {dims.input_feature, 'f'}}) + "x" +
                     Order(dims.kernel_spatial, {{dims.kernel_input_feature, 'i'}, {dims.kernel_output_feature, 'o'}}) + "->" +
                     Order(dims.output_spatial, {{dims.output_batch, 'b'}, {dims.output_feature, 'f'}}) +
                     ">, feature_group_count = " + std::to_string(feature_groups) + " : i64";
  if (n) {
    text += ", window_strides = " + I64Array(strides) + ", padding = dense<[" + padding + "]> : tensor<" + std::to_string(n) +
            "x2xi64>, lhs_dilation = " + I64Array(base) + ", rhs_dilation = " + I64Array(dilations) +
            ", window_reversal = array<i1: " + reversed + ">";
  }
  return Emit("convolution", {lhs, rhs}, TensorType::Of(result == DType::kInvalid ? a.dtype : result, out),
              text + ", " + PrecisionConfig(precision));
}

Value Builder::Cholesky(Value a, bool lower) {
  if (!Usable(a)) return {};
  return Emit("cholesky", {a}, type(a), lower ? "lower = true" : "lower = false");
}

Value Builder::TriangularSolve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal, std::string_view transpose) {
  if (!Usable({a, b})) return {};
  auto flag = [](bool v) { return v ? "true" : "false"; };
  return Emit("triangular_solve", {a, b}, type(b),
              std::string("left_side = ") + flag(left_side) + ", lower = " + flag(lower) + ", unit_diagonal = " +
                  flag(unit_diagonal) + ", transpose_a = #stablehlo<transpose " + std::string(transpose) + ">");
}

Value Builder::Fft(Value x, std::string_view kind, const Ints& lengths) {
  if (!Usable(x)) return {};
  TensorType to = type(x);
  bool fits = !lengths.empty() && lengths.size() <= to.rank;
  if (fits && kind == "RFFT") {
    to.dtype = to.dtype == DType::kF64 ? DType::kC128 : DType::kC64;
    to.dims[to.rank - 1] = lengths.back() / 2 + 1;
  } else if (fits && kind == "IRFFT") {
    to.dtype = RealType(to.dtype);
    to.dims[to.rank - 1] = lengths.back();
  }
  if (!fits) return Internal("fft of " + type(x).ToHlo());
  return Emit("fft", {x}, to, "fft_type = #stablehlo<fft_type " + std::string(kind) + ">, fft_length = " + I64Array(lengths));
}

}  // namespace tpu::hlo
