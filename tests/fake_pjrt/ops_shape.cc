// SPDX-License-Identifier: Apache-2.0
// Constants and movement of data by static index arithmetic.
#include <algorithm>
#include <cstring>

#include "interpreter.h"
#include "op_table.h"
#include "strided.h"

namespace fake_pjrt {
namespace {

using Kind = Attr::Kind;

std::string CheckPermutation(const std::vector<int64_t>& p, size_t rank) {
  std::vector<bool> seen(rank);
  if (p.size() != rank) return "the permutation has " + std::to_string(p.size()) + " entries for rank " + std::to_string(rank);
  for (int64_t d : p) {
    if (d < 0 || d >= static_cast<int64_t>(rank) || seen[d]) return "not a permutation";
    seen[d] = true;
  }
  return "";
}

// ---- constant, iota

std::string VerifyConstant(const Op& op) { return WrongResult(op, op.attr("value").dense.type); }

Error EvalConstant(Interpreter& interpreter, const Op& op, const std::vector<Tensor>&, std::vector<Tensor>* out) {
  const Tensor& value = op.attr("value").dense;
  Type type = interpreter.ResultType(op);
  out->push_back(type == value.type ? value : CopyStrided(value, type, Dims(type.rank(), 0)));
  return {};
}

std::string VerifyIota(const Op& op) {
  const Type& r = op.result_types[0];
  int64_t dim = op.number("iota_dimension");
  if (dim < 0 || dim >= static_cast<int64_t>(r.rank())) return "iota_dimension is out of range";
  return r.dtype == DType::kBool ? "not defined for i1" : "";
}

Error EvalIota(Interpreter&, const Op& op, const std::vector<Tensor>&, std::vector<Tensor>* out) {
  const Type& type = op.result_types[0];
  int64_t dim = op.number("iota_dimension"), size = type.dims[dim];
  Tensor line = Tensor::Empty({tpu::OpMathType(type.dtype), {size}});
  VisitCompute(type.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>)
      for (int64_t i = 0; i < size; ++i) line.As<T>()[i] = static_cast<T>(i);
  });
  Dims strides(type.rank(), 0);
  strides[dim] = 1;
  out->push_back(CopyStrided(Narrowed(line, type.dtype), type, strides));
  return {};
}

// ---- broadcast_in_dim, reshape, transpose, reverse

std::string VerifyBroadcast(const Op& op) {
  const Type &a = op.operand_types[0], &r = op.result_types[0];
  auto dims = op.ints("broadcast_dimensions");
  if (a.dtype != r.dtype) return "changes the element type";
  if (dims.size() != a.rank())
    return "broadcast_dimensions has " + std::to_string(dims.size()) + " entries for rank " + std::to_string(a.rank());
  std::vector<bool> seen(r.rank());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= static_cast<int64_t>(r.rank()) || seen[dims[i]])
      return "broadcast_dimensions is out of range or repeats";
    seen[dims[i]] = true;
    if (a.dims[i] != 1 && a.dims[i] != r.dims[dims[i]])
      return "dimension " + std::to_string(i) + " of the operand does not fit " + r.ToString();
  }
  return "";
}

Error EvalBroadcast(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  auto dims = op.ints("broadcast_dimensions");
  const Type& type = op.result_types[0];
  Dims from = RowMajorStrides(in[0].type.dims), strides(type.rank(), 0);
  for (size_t i = 0; i < dims.size(); ++i)
    if (in[0].type.dims[i] != 1) strides[dims[i]] = from[i];
  out->push_back(CopyStrided(in[0], type, strides));
  return {};
}

std::string VerifyReshape(const Op& op) {
  const Type &a = op.operand_types[0], &r = op.result_types[0];
  if (a.dtype != r.dtype) return "changes the element type";
  return a.numel() == r.numel() ? "" : a.ToString() + " and " + r.ToString() + " have different numbers of elements";
}

Error EvalReshape(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  out->push_back(in[0].Reshaped(op.result_types[0].dims));
  return {};
}

std::string VerifyTranspose(const Op& op) {
  auto permutation = op.ints("permutation");
  const Type& a = op.operand_types[0];
  if (std::string wrong = CheckPermutation(permutation, a.rank()); !wrong.empty()) return wrong;
  Dims dims;
  for (int64_t p : permutation) dims.push_back(a.dims[p]);
  return WrongResult(op, a.With(dims));
}

Error EvalTranspose(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  out->push_back(TransposedTo(in[0], op.ints("permutation")));
  return {};
}

std::string VerifyReverse(const Op& op) {
  const Type& a = op.operand_types[0];
  std::vector<bool> seen(a.rank());
  for (int64_t d : op.ints("dimensions")) {
    if (d < 0 || d >= static_cast<int64_t>(a.rank()) || seen[d]) return "dimensions is out of range or repeats";
    seen[d] = true;
  }
  return WrongResult(op, a);
}

Error EvalReverse(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  const Type& type = in[0].type;
  Dims strides = RowMajorStrides(type.dims);
  int64_t offset = 0;
  for (int64_t d : op.ints("dimensions")) {
    offset += (type.dims[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  out->push_back(CopyStrided(in[0], type, strides, offset));
  return {};
}

// ---- concatenate, pad

std::string VerifyConcatenate(const Op& op) {
  int64_t dim = op.number("dimension");
  Type expected = op.operand_types[0];
  if (dim < 0 || dim >= static_cast<int64_t>(expected.rank())) return "dimension is out of range";
  for (size_t i = 1; i < op.operand_types.size(); ++i) {
    Type t = op.operand_types[i];
    if (t.rank() != expected.rank()) return "operands of different ranks";
    int64_t size = t.dims[dim];
    t.dims[dim] = expected.dims[dim];
    if (!(t == expected)) return "operand " + std::to_string(i) + " does not fit operand 0";
    expected.dims[dim] += size;
  }
  return WrongResult(op, expected);
}

Error EvalConcatenate(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  int64_t dim = op.number("dimension"), at = 0;
  Tensor r = Tensor::Empty(op.result_types[0]);
  Dims strides = RowMajorStrides(r.type.dims);
  for (const Tensor& t : in) {
    WriteStrided(t, strides, at * strides[dim], &r);
    at += t.type.dims[dim];
  }
  out->push_back(r);
  return {};
}

std::string VerifyPad(const Op& op) {
  const Type &a = op.operand_types[0], &value = op.operand_types[1];
  if (!(value == Type{a.dtype, {}})) return "the padding value is " + value.ToString();
  auto low = op.ints("edge_padding_low"), high = op.ints("edge_padding_high"), interior = op.ints("interior_padding");
  if (low.size() != a.rank() || high.size() != a.rank() || interior.size() != a.rank())
    return "one padding entry a dimension is needed";
  Dims dims;
  for (size_t d = 0; d < a.rank(); ++d) {
    if (interior[d] < 0) return "negative interior padding";
    dims.push_back(low[d] + high[d] + a.dims[d] + std::max<int64_t>(a.dims[d] - 1, 0) * interior[d]);
    if (dims.back() < 0) return "negative result dimension";
  }
  return WrongResult(op, a.With(dims));
}

Error EvalPad(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  auto low = op.ints("edge_padding_low"), interior = op.ints("interior_padding");
  const Type& type = op.result_types[0];
  Tensor r = CopyStrided(in[1], type, Dims(type.rank(), 0));
  Dims to = RowMajorStrides(type.dims), index(type.rank());
  size_t item = tpu::ItemSize(type.dtype);
  int64_t n = in[0].type.numel(), i = 0;
  if (n > 0) do {
      int64_t offset = 0;
      bool inside = true;
      for (size_t d = 0; d < type.rank(); ++d) {
        int64_t at = low[d] + index[d] * (interior[d] + 1);
        inside &= at >= 0 && at < type.dims[d];
        offset += at * to[d];
      }
      if (inside) std::memcpy(r.bytes() + offset * item, in[0].bytes() + i * item, item);
      ++i;
    } while (NextIndex(in[0].type.dims, &index));
  out->push_back(r);
  return {};
}

}  // namespace

const std::vector<OpDef>& ShapeOps() {
  static const auto* ops = new std::vector<OpDef>{
      {"stablehlo.broadcast_in_dim",
       1,
       1,
       1,
       0,
       {{"broadcast_dimensions", Kind::kArray, true, "i64"}},
       VerifyBroadcast,
       EvalBroadcast},
      {"stablehlo.concatenate", 1, kAny, 1, 0, {{"dimension", Kind::kInt, true, "i64"}}, VerifyConcatenate, EvalConcatenate},
      {"stablehlo.constant", 0, 0, 1, 0, {{"value", Kind::kDense, true}}, VerifyConstant, EvalConstant, true},
      {"stablehlo.iota", 0, 0, 1, 0, {{"iota_dimension", Kind::kInt, true, "i64"}}, VerifyIota, EvalIota},
      {"stablehlo.pad",
       2,
       2,
       1,
       0,
       {{"edge_padding_low", Kind::kArray, true, "i64"},
        {"edge_padding_high", Kind::kArray, true, "i64"},
        {"interior_padding", Kind::kArray, true, "i64"}},
       VerifyPad,
       EvalPad},
      {"stablehlo.reshape", 1, 1, 1, 0, {}, VerifyReshape, EvalReshape},
      {"stablehlo.reverse", 1, 1, 1, 0, {{"dimensions", Kind::kArray, true, "i64"}}, VerifyReverse, EvalReverse},
      {"stablehlo.transpose", 1, 1, 1, 0, {{"permutation", Kind::kArray, true, "i64"}}, VerifyTranspose, EvalTranspose},
  };
  return *ops;
}

}  // namespace fake_pjrt
