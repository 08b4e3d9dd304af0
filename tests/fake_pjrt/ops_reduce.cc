// SPDX-License-Identifier: Apache-2.0
// reduce, reduce_window, select_and_scatter, map: operators that apply a scalar region.
#include <algorithm>
#include <cstring>

#include "interpreter.h"
#include "op_table.h"
#include "scalar_region.h"
#include "strided.h"

namespace fake_pjrt {
namespace {

using Kind = Attr::Kind;

// `count` inputs of equal dimensions, then as many scalars of their element types.
std::string CheckInputsAndInits(const Op& op, size_t count) {
  if (op.operand_types.size() != 2 * count || count == 0) return "as many initial values as inputs are needed";
  for (size_t i = 0; i < count; ++i) {
    if (std::string wrong = NeedSameDims(op, i, op.operand_types[0].dims); !wrong.empty()) return wrong;
    const Type& init = op.operand_types[count + i];
    if (!(init == Type{op.operand_types[i].dtype, {}})) return "initial value " + std::to_string(i) + " is " + init.ToString();
  }
  if (op.result_types.size() != count) return "as many results as inputs are needed";
  std::vector<DType> types = ElementTypes(op, 0, count);
  return CheckScalarRegion(op, Twice(types), types);
}

Tensor Flat(const Tensor& t) { return t.Reshaped(Dims{t.type.numel()}); }

Tensor SplatTo(const Tensor& scalar, const Dims& dims) {
  return CopyStrided(scalar, scalar.type.With(dims), Dims(dims.size(), 0));
}

// ---- reduce

std::string VerifyReduce(const Op& op) {
  size_t count = op.operand_types.size() / 2;
  if (std::string wrong = CheckInputsAndInits(op, count); !wrong.empty()) return wrong;
  const Type& a = op.operand_types[0];
  std::vector<bool> reduced(a.rank());
  for (int64_t d : op.ints("dimensions")) {
    if (d < 0 || d >= static_cast<int64_t>(a.rank()) || reduced[d]) return "dimensions is out of range or repeats";
    reduced[d] = true;
  }
  Dims dims;
  for (size_t d = 0; d < a.rank(); ++d)
    if (!reduced[d]) dims.push_back(a.dims[d]);
  for (size_t i = 0; i < count; ++i)
    if (std::string wrong = WrongResult(op, {op.operand_types[i].dtype, dims}, i); !wrong.empty()) return wrong;
  return "";
}

Error EvalReduce(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  size_t count = in.size() / 2;
  auto reduced = op.ints("dimensions");
  std::vector<int64_t> order = reduced;
  int64_t rows = 1;
  for (int64_t d : reduced) rows *= in[0].type.dims[d];
  for (size_t d = 0; d < in[0].type.rank(); ++d)
    if (!std::count(reduced.begin(), reduced.end(), static_cast<int64_t>(d))) order.push_back(static_cast<int64_t>(d));
  int64_t columns = op.result_types[0].numel();
  std::vector<Tensor> values;  // each [rows, columns], flat
  for (size_t i = 0; i < count; ++i) values.push_back(Flat(TransposedTo(in[i], order)));
  // A tree that joins neighbours: it keeps the order of the elements, so first-wins regions give the first.
  while (rows > 1 && columns > 0) {
    int64_t pairs = rows / 2;
    std::vector<Tensor> args;
    for (int side = 0; side < 2; ++side)
      for (const Tensor& v : values)
        args.push_back(Flat(CopyStrided(v, v.type.With(Dims{pairs, columns}), {2 * columns, 1}, side * columns)));
    std::vector<Tensor> joined;
    if (Error e = interpreter.RunScalarRegion(op.regions[0], args, &joined); !e.ok()) return e;
    if (rows % 2) {
      for (size_t i = 0; i < count; ++i) {
        size_t item = tpu::ItemSize(values[i].type.dtype), bytes = columns * item;
        Tensor longer = Tensor::Empty(values[i].type.With(Dims{(pairs + 1) * columns}));
        std::memcpy(longer.bytes(), joined[i].bytes(), pairs * bytes);
        std::memcpy(longer.bytes() + pairs * bytes, values[i].bytes() + 2 * pairs * bytes, bytes);
        joined[i] = longer;
      }
    }
    values = std::move(joined);
    rows = pairs + rows % 2;
  }
  std::vector<Tensor> args, results;
  for (size_t i = 0; i < count; ++i) args.push_back(SplatTo(in[count + i], Dims{columns}));
  if (rows == 0 || columns == 0) {
    results = args;
  } else {
    args.insert(args.end(), values.begin(), values.end());
    if (Error e = interpreter.RunScalarRegion(op.regions[0], args, &results); !e.ok()) return e;
  }
  for (size_t i = 0; i < count; ++i) out->push_back(results[i].Reshaped(op.result_types[i].dims));
  return {};
}

// ---- windows

struct Window {
  Dims size, stride, base_dilation, dilation, low, high;

  Window(const Op& op, size_t rank) {
    Dims ones(rank, 1);
    auto or_ones = [&](const char* name) { return op.attr(name) ? op.ints(name) : ones; };
    size = op.ints("window_dimensions");
    if (size.empty()) size = ones;
    stride = or_ones("window_strides");
    base_dilation = or_ones("base_dilations");
    dilation = or_ones("window_dilations");
    low = high = Dims(rank, 0);
    auto padding = op.ints("padding");
    if (padding.size() == 2 * rank)
      for (size_t d = 0; d < rank; ++d) low[d] = padding[2 * d], high[d] = padding[2 * d + 1];
  }
  // "" and the dimensions of the result.
  std::string Slide(const Op& op, const Dims& dims, Dims* result) const {
    size_t rank = dims.size();
    for (const Dims* list : {&size, &stride, &base_dilation, &dilation}) {
      if (list->size() != rank) return "one window entry a dimension is needed";
      for (int64_t x : *list)
        if (x < 1) return "window entries must be positive";
    }
    if (const Attr& p = op.attr("padding"))
      if (p.dense.type.dims != Dims{static_cast<int64_t>(rank), 2} || p.dense.type.dtype != DType::kI64)
        return "padding should be " + std::to_string(rank) + "x2xi64";
    result->clear();
    for (size_t d = 0; d < rank; ++d) {
      int64_t base = dims[d] == 0 ? 0 : (dims[d] - 1) * base_dilation[d] + 1;
      int64_t padded = low[d] + base + high[d], window = (size[d] - 1) * dilation[d] + 1;
      result->push_back(padded < window || padded == 0 ? 0 : (padded - window) / stride[d] + 1);
    }
    return "";
  }
  // The flat position in an operand of `dims` under result index `r` and window index `w`; -1: padding.
  int64_t Position(const Dims& dims, const Dims& strides, const Dims& r, const Dims& w) const {
    int64_t position = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t at = r[d] * stride[d] + w[d] * dilation[d] - low[d];
      if (at < 0 || at % base_dilation[d] || at / base_dilation[d] >= dims[d]) return -1;
      position += at / base_dilation[d] * strides[d];
    }
    return position;
  }
};

std::string VerifyReduceWindow(const Op& op) {
  size_t count = op.operand_types.size() / 2;
  if (std::string wrong = CheckInputsAndInits(op, count); !wrong.empty()) return wrong;
  const Type& a = op.operand_types[0];
  Dims dims;
  if (std::string wrong = Window(op, a.rank()).Slide(op, a.dims, &dims); !wrong.empty()) return wrong;
  for (size_t i = 0; i < count; ++i)
    if (std::string wrong = WrongResult(op, {op.operand_types[i].dtype, dims}, i); !wrong.empty()) return wrong;
  return "";
}

Error EvalReduceWindow(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  size_t count = in.size() / 2;
  const Dims &from = in[0].type.dims, &to = op.result_types[0].dims;
  Window window(op, from.size());
  Dims strides = RowMajorStrides(from), w(from.size());
  int64_t n = NumElements(to);
  std::vector<Tensor> state;
  for (size_t i = 0; i < count; ++i) state.push_back(SplatTo(in[count + i], Dims{n}));
  if (n > 0) do {
      std::vector<Tensor> args = state;
      for (size_t i = 0; i < count; ++i) args.push_back(SplatTo(in[count + i], Dims{n}));
      Dims r(to.size());
      int64_t position = 0;
      do {
        int64_t source = window.Position(from, strides, r, w);
        for (size_t i = 0; i < count && source >= 0; ++i) {
          size_t item = tpu::ItemSize(in[i].type.dtype);
          std::memcpy(args[count + i].bytes() + position * item, in[i].bytes() + source * item, item);
        }
        ++position;
      } while (NextIndex(to, &r));
      if (Error e = interpreter.RunScalarRegion(op.regions[0], args, &state); !e.ok()) return e;
    } while (NextIndex(window.size, &w));
  for (size_t i = 0; i < count; ++i) out->push_back(state[i].Reshaped(to));
  return {};
}

// ---- select_and_scatter (operand, source, init; regions select, scatter)

std::string VerifySelectAndScatter(const Op& op) {
  const Type &a = op.operand_types[0], &source = op.operand_types[1], &init = op.operand_types[2];
  if (source.dtype != a.dtype || !(init == Type{a.dtype, {}})) return "operands of different element types";
  Dims dims;
  if (std::string wrong = Window(op, a.rank()).Slide(op, a.dims, &dims); !wrong.empty()) return wrong;
  if (std::string wrong = NeedSameDims(op, 1, dims); !wrong.empty()) return wrong;
  if (std::string wrong = CheckScalarRegion(op, {a.dtype, a.dtype}, {DType::kBool}, 0); !wrong.empty()) return wrong;
  if (std::string wrong = CheckScalarRegion(op, {a.dtype, a.dtype}, {a.dtype}, 1); !wrong.empty()) return wrong;
  return WrongResult(op, a);
}

Error EvalSelectAndScatter(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  const Dims &from = in[0].type.dims, &to = in[1].type.dims;
  Window window(op, from.size());
  Dims strides = RowMajorStrides(from), r(to.size());
  size_t item = tpu::ItemSize(in[0].type.dtype);
  Tensor result = SplatTo(in[2], from);
  int64_t n = NumElements(to), source = 0;
  auto element = [&](const Tensor& t, int64_t i) {
    Tensor e = Tensor::Empty(t.type.With(Dims{1}));
    std::memcpy(e.bytes(), t.bytes() + i * item, item);
    return e;
  };
  if (n > 0) do {
      int64_t best = -1;
      Dims w(from.size());
      do {
        int64_t at = window.Position(from, strides, r, w);
        if (at < 0) continue;
        std::vector<Tensor> keep;
        if (best >= 0)
          if (Error e = interpreter.RunScalarRegion(op.regions[0], {element(in[0], best), element(in[0], at)}, &keep); !e.ok())
            return e;
        if (best < 0 || !keep[0].As<bool>()[0]) best = at;
      } while (NextIndex(window.size, &w));
      if (best >= 0) {
        std::vector<Tensor> sum;
        if (Error e = interpreter.RunScalarRegion(op.regions[1], {element(result, best), element(in[1], source)}, &sum);
            !e.ok())
          return e;
        std::memcpy(result.bytes() + best * item, sum[0].bytes(), item);
      }
      ++source;
    } while (NextIndex(to, &r));
  out->push_back(result);
  return {};
}

// ---- map

std::string VerifyMap(const Op& op) {
  const Dims& dims = op.operand_types[0].dims;
  for (size_t i = 1; i < op.operand_types.size(); ++i)
    if (std::string wrong = NeedSameDims(op, i, dims); !wrong.empty()) return wrong;
  if (op.ints("dimensions").size() != dims.size()) return "dimensions must list all dimensions";
  if (std::string wrong = CheckScalarRegion(op, ElementTypes(op, 0, op.operand_types.size()), {op.result_types[0].dtype});
      !wrong.empty())
    return wrong;
  return WrongResult(op, op.result_types[0].With(dims));
}

Error EvalMap(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  std::vector<Tensor> args, results;
  for (const Tensor& t : in) args.push_back(Flat(t));
  if (Error e = interpreter.RunScalarRegion(op.regions[0], args, &results); !e.ok()) return e;
  out->push_back(results[0].Reshaped(op.result_types[0].dims));
  return {};
}

}  // namespace

const std::vector<OpDef>& ReduceOps() {
  static const auto* ops = new std::vector<OpDef>{
      {"stablehlo.map", 1, kAny, 1, 1, {{"dimensions", Kind::kArray, true, "i64"}}, VerifyMap, EvalMap},
      {"stablehlo.reduce", 2, kAny, kAny, 1, {{"dimensions", Kind::kArray, true, "i64"}}, VerifyReduce, EvalReduce},
      {"stablehlo.reduce_window",
       2,
       kAny,
       kAny,
       1,
       {{"window_dimensions", Kind::kArray, true, "i64"},
        {"window_strides", Kind::kArray, false, "i64"},
        {"base_dilations", Kind::kArray, false, "i64"},
        {"window_dilations", Kind::kArray, false, "i64"},
        {"padding", Kind::kDense}},
       VerifyReduceWindow,
       EvalReduceWindow},
      {"stablehlo.select_and_scatter",
       3,
       3,
       1,
       2,
       {{"window_dimensions", Kind::kArray, false, "i64"},
        {"window_strides", Kind::kArray, false, "i64"},
        {"padding", Kind::kDense}},
       VerifySelectAndScatter,
       EvalSelectAndScatter},
  };
  return *ops;
}

}  // namespace fake_pjrt
