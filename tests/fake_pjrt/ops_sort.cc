// SPDX-License-Identifier: Apache-2.0
// sort, top_k.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "elementwise.h"
#include "interpreter.h"
#include "op_table.h"
#include "scalar_region.h"
#include "strided.h"

namespace fake_pjrt {
namespace {

using Kind = Attr::Kind;

std::string VerifySort(const Op& op) {
  const Type& a = op.operand_types[0];
  std::vector<DType> args;
  if (op.result_types.size() != op.operand_types.size()) return "as many results as operands are needed";
  for (size_t i = 0; i < op.operand_types.size(); ++i) {
    if (std::string wrong = NeedSameDims(op, i, a.dims); !wrong.empty()) return wrong;
    if (std::string wrong = WrongResult(op, op.operand_types[i], i); !wrong.empty()) return wrong;
    args.insert(args.end(), 2, op.operand_types[i].dtype);
  }
  int64_t rank = static_cast<int64_t>(a.rank()), dim = op.number("dimension", -1);
  if (dim < -rank || dim >= rank) return "dimension is out of range";
  return CheckScalarRegion(op, args, {DType::kBool});
}

// Runs the comparator for pairs of flat positions: result[i] = comparator(first[i], second[i]).
Error ComparePairs(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& lines, const std::vector<int64_t>& first,
                   const std::vector<int64_t>& second, Tensor* result) {
  std::vector<Tensor> args, results;
  for (const Tensor& t : lines) {
    size_t item = tpu::ItemSize(t.type.dtype);
    for (const auto* side : {&first, &second}) {
      Tensor batch = Tensor::Empty(t.type.With(Dims{static_cast<int64_t>(side->size())}));
      for (size_t i = 0; i < side->size(); ++i) std::memcpy(batch.bytes() + i * item, t.bytes() + (*side)[i] * item, item);
      args.push_back(batch);
    }
  }
  Error e = interpreter.RunScalarRegion(op.regions[0], args, &results);
  if (e.ok()) *result = results[0];
  return e;
}

// Batcher's odd-even merge sort, so that a whole stage is one batch of comparisons; ties keep their order (the result
// is stable whether asked for or not).
Error EvalSort(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  const Dims& dims = in[0].type.dims;
  int64_t rank = static_cast<int64_t>(dims.size()), dim = op.number("dimension", -1);
  if (dim < 0) dim += rank;
  std::vector<int64_t> order(rank), back(rank);
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + dim, order.begin() + dim + 1, order.end());  // the sorted dimension goes last
  for (int64_t i = 0; i < rank; ++i) back[order[i]] = i;
  std::vector<Tensor> lines;
  for (const Tensor& t : in) lines.push_back(TransposedTo(t, order));
  int64_t n = dims[dim], total = in[0].type.numel(), count = n ? total / n : 0;
  std::vector<int64_t> at(total);  // the flat original position that now stands at each place
  std::iota(at.begin(), at.end(), 0);
  for (int64_t p = 1; p < n; p *= 2) {
    for (int64_t k = p; k >= 1; k /= 2) {
      std::vector<int64_t> low, high;  // places
      for (int64_t line = 0; line < count; ++line)
        for (int64_t j = k % p; j + k < n; j += 2 * k)
          for (int64_t i = 0; i < std::min(k, n - j - k); ++i)
            if ((i + j) / (2 * p) == (i + j + k) / (2 * p))
              low.push_back(line * n + i + j), high.push_back(line * n + i + j + k);
      if (low.empty()) continue;
      std::vector<int64_t> first, second;
      for (size_t i = 0; i < low.size(); ++i) first.push_back(at[high[i]]), second.push_back(at[low[i]]);
      for (size_t i = 0; i < low.size(); ++i) first.push_back(at[low[i]]), second.push_back(at[high[i]]);
      Tensor less;
      if (Error e = ComparePairs(interpreter, op, lines, first, second, &less); !e.ok()) return e;
      for (size_t i = 0; i < low.size(); ++i) {
        bool high_first = less.As<bool>()[i], low_first = less.As<bool>()[low.size() + i];
        if (high_first != low_first ? high_first : at[high[i]] < at[low[i]]) std::swap(at[low[i]], at[high[i]]);
      }
    }
  }
  for (Tensor& t : lines) {
    size_t item = tpu::ItemSize(t.type.dtype);
    Tensor sorted = Tensor::Empty(t.type);
    for (int64_t i = 0; i < total; ++i) std::memcpy(sorted.bytes() + i * item, t.bytes() + at[i] * item, item);
    out->push_back(TransposedTo(sorted, back));
  }
  return {};
}

// ---- chlo.top_k: the k largest of the last dimension, ties by position

std::string VerifyTopK(const Op& op) {
  const Type& a = op.operand_types[0];
  int64_t k = op.number("k");
  if (a.rank() == 0 || k < 0 || k > a.dims.back()) return "k is out of range";
  if (tpu::IsComplex(a.dtype)) return "complex numbers have no order";
  Dims dims = a.dims;
  dims.back() = k;
  if (std::string wrong = WrongResult(op, a.With(dims), 0); !wrong.empty()) return wrong;
  return WrongResult(op, {DType::kI32, dims}, 1);
}

Error EvalTopK(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  Tensor a = Widened(in[0]), values = Tensor::Empty(op.result_types[0]), indices = Tensor::Empty(op.result_types[1]);
  int64_t k = op.number("k"), n = a.type.dims.back(), lines = n ? a.type.numel() / n : 0;
  size_t item = tpu::ItemSize(in[0].type.dtype);
  VisitCompute(a.type.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, C64> && !std::is_same_v<T, C128>) {
      for (int64_t line = 0; line < lines; ++line) {
        const T* x = a.As<T>() + line * n;
        std::vector<int32_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [x](int32_t i, int32_t j) {
          if constexpr (Float<T>) return TotalOrderKey(x[j]) < TotalOrderKey(x[i]);  // as XLA: -NaN is the smallest
          return x[j] < x[i];
        });
        for (int64_t i = 0; i < k; ++i) {
          indices.As<int32_t>()[line * k + i] = order[i];
          std::memcpy(values.bytes() + (line * k + i) * item, in[0].bytes() + (line * n + order[i]) * item, item);
        }
      }
    }
  });
  out->push_back(values);
  out->push_back(indices);
  return {};
}

}  // namespace

const std::vector<OpDef>& SortOps() {
  static const auto* ops = new std::vector<OpDef>{
      {"stablehlo.sort",
       1,
       kAny,
       kAny,
       1,
       {{"dimension", Kind::kInt, false, "i64"}, {"is_stable", Kind::kBool}},
       VerifySort,
       EvalSort},
      {"chlo.top_k", 1, 1, 2, 0, {{"k", Kind::kInt, true, "i64"}}, VerifyTopK, EvalTopK},
  };
  return *ops;
}

}  // namespace fake_pjrt
