// SPDX-License-Identifier: Apache-2.0
#include "lower/parts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tpu::lower {

int WrapDim(int64_t dim, int rank) {
  if (rank == 0) return 0;
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

Ints AllDims(int rank) {
  Ints dims(rank);
  for (int i = 0; i < rank; ++i) dims[i] = i;
  return dims;
}

Ints DimsArg(const Lowering& l, int i, int rank) {
  if (i >= l.num_args() || l.IsNone(i)) return AllDims(rank);
  Ints dims;
  if (l.arg(i).kind == graph::ArgKind::kInt)
    dims = {l.Int(i)};
  else
    dims = l.IntList(i);
  if (dims.empty()) return AllDims(rank);
  if (rank == 0) return {};
  for (int64_t& d : dims) d = WrapDim(d, rank);
  std::sort(dims.begin(), dims.end());
  return dims;
}

Ints OtherDims(int rank, const Ints& dims) {
  Ints others;
  for (int i = 0; i < rank; ++i)
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) others.push_back(i);
  return others;
}

int64_t Product(const Ints& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

int64_t CountOf(Builder& b, Value x, const Ints& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= b.dim(x, static_cast<int>(d));
  return n;
}

Value ExpandReduced(Builder& b, Value reduced, const Ints& to, const Ints& dims) {
  return b.BroadcastInDim(reduced, to, OtherDims(static_cast<int>(to.size()), dims));
}

Value AtLeast1d(Builder& b, Value x) { return b.rank(x) == 0 ? b.Reshape(x, {1}) : x; }

Value Zeros(Builder& b, const TensorType& type) { return b.Constant(type, 0); }

uint8_t ClassOf(const Lowering& l, int i) {
  const graph::Argument& a = l.arg(i);
  const bool number = a.kind == graph::ArgKind::kInt || a.kind == graph::ArgKind::kDouble;
  if (!number) return a.scalar_class;
  if (!l.rule().classify) return l.Double(i) == 1;
  return l.rule().classify(i, l.Double(i), a.kind == graph::ArgKind::kInt);
}

void SetResultAs(Lowering& l, int k, Value value) {
  const TensorType type = l.ResultType(k);
  l.SetResult(k, l.b.Reshape(l.b.Convert(value, type.dtype), Ints(type.begin(), type.end())));
}

void SetResultFill(Lowering& l, int k, double v) { l.SetResult(k, l.b.Constant(l.ResultType(k), v)); }

bool ResultIsEmpty(const Lowering& l, int k) { return l.ResultType(k).numel() == 0; }

void TrapIf(Lowering& l, Value bad, ErrorKind kind, const std::string& message) {
  const Ints dims = AllDims(l.b.rank(bad));
  if (!dims.empty()) bad = l.b.Reduce(bad, l.b.Constant(DType::kBool, 0), dims, "or");
  l.Trap(l.b.Convert(bad, DType::kI32), kind, message);
}

}  // namespace tpu::lower
