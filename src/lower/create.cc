// SPDX-License-Identifier: Apache-2.0
// Factories and triangles. Sizes come from the result; starts and steps are run-time values.
#include <algorithm>
#include <cmath>

#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

Ints DimsOf(const TensorType& t) { return Ints(t.begin(), t.end()); }

// Where ATen's CPU kernels accumulate in double; TPUs emulate that at a high price.
DType WideFloat(const Lowering& l) { return l.profile.kind == pjrt::EngineKind::kCpu ? DType::kF64 : DType::kF32; }

// start + step * i
void ArangeFrom(Lowering& l, int start, int step) {
  Builder& b = l.b;
  TensorType type = l.ResultType(0);
  DType math = type.dtype == DType::kF32 ? WideFloat(l) : OpMathType(type.dtype);
  if (type.dtype == DType::kBool) math = DType::kI32;
  Value i = b.Iota(type.With(math), 0);
  if (step >= 0) i = b.Mul(i, b.Broadcast(l.Scalar(step, math), DimsOf(type)));
  if (start >= 0) i = b.Add(b.Broadcast(l.Scalar(start, math), DimsOf(type)), i);
  l.SetResult(0, l.Cast(i, type.dtype));
}
int64_t ArangeSize(double start, double end, double step) {
  double n = std::ceil((end - start) / step);
  return n >= 0 && n < 9e15 ? static_cast<int64_t>(n) : -1;  // NaN too: a step of 0
}
int64_t ArangeEnd(const double* s, int) { return ArangeSize(0, s[0], 1); }
int64_t ArangeStartEnd(const double* s, int) { return ArangeSize(s[0], s[1], 1); }
int64_t ArangeStartEndStep(const double* s, int count) { return ArangeSize(s[0], s[1], count > 2 ? s[2] : 1); }

void Arange(Lowering& l) { ArangeFrom(l, -1, -1); }
void ArangeStart(Lowering& l) { ArangeFrom(l, 0, -1); }
void ArangeStartStep(Lowering& l) { ArangeFrom(l, 0, 2); }

// start + step * i in the first half, end - step * (n - 1 - i) in the second: exact at both ends.
Value LinspaceOf(Lowering& l, const TensorType& type) {
  Builder& b = l.b;
  int64_t n = type.dims[0].size();
  Ints dims = {n};
  Value start = l.Scalar(0, type.dtype), end = l.Scalar(1, type.dtype);
  if (n == 1) return b.Broadcast(start, dims);
  Value step = b.Broadcast(b.Div(b.Sub(end, start), b.OptimizationBarrier(b.Like(start, n - 1))), dims);
  Value i = b.Iota(type, 0);
  Value up = b.Add(b.Broadcast(start, dims), b.Mul(step, i));
  Value down = b.Sub(b.Broadcast(end, dims), b.Mul(step, b.Sub(b.Like(i, n - 1), i)));
  Value first_half = b.Cmp(Compare::kLt, b.Iota(TensorType(DType::kI32, {n}), 0), n / 2);
  return b.Select(first_half, up, down);
}

DType LinspaceMath(DType d) { return IsInteger(d) || d == DType::kBool ? DType::kF64 : OpMathType(d); }

void Linspace(Lowering& l) {
  TensorType type = l.ResultType(0);
  if (type.numel() == 0) return l.SetResult(0, l.b.Constant(type, 0));
  l.SetResult(0, l.Cast(LinspaceOf(l, type.With(LinspaceMath(type.dtype))), type.dtype));
}

void Logspace(Lowering& l) {
  TensorType type = l.ResultType(0);
  if (type.numel() == 0) return l.SetResult(0, l.b.Constant(type, 0));
  Value exponent = LinspaceOf(l, type.With(LinspaceMath(type.dtype)));
  Value base = l.IsNone(3) ? l.b.Like(exponent, 10.0) : l.b.BroadcastLike(l.Scalar(3, l.b.dtype(exponent)), exponent);
  l.SetResult(0, l.Cast(l.b.Binary("power", base, exponent), type.dtype));
}

// Column minus row of the last two dimensions, s32.
Value DiagonalNumber(Builder& b, const TensorType& type) {
  TensorType square(DType::kI32, {type.dims[type.rank - 2].size(), type.dims[type.rank - 1].size()});
  return b.Sub(b.Iota(square, 1), b.Iota(square, 0));
}

void Eye(Lowering& l) {
  TensorType type = l.ResultType(0);
  l.SetResult(0, l.b.Convert(l.b.Cmp(Compare::kEq, DiagonalNumber(l.b, type), 0), type.dtype));
}

template <Compare kKeep>
void Triangle(Lowering& l) {
  Builder& b = l.b;
  TensorType type = l.ResultType(0);
  if (type.rank < 2) return l.Unsupported("fewer than two dimensions");
  // Beyond the matrix every diagonal number is the same: it keeps or drops all.
  int64_t limit = type.dims[type.rank - 2].size() + type.dims[type.rank - 1].size();
  int64_t diagonal = std::min(std::max(l.IntOr(1, 0), -limit), limit);
  Value keep = b.Cmp(kKeep, DiagonalNumber(b, type), diagonal);
  keep = b.BroadcastInDim(keep, DimsOf(type), {type.rank - 2, type.rank - 1});
  l.SetResult(0, b.Select(keep, l.Tensor(0, type.dtype), b.Constant(type, 0)));
}

// Row and column numbers of a triangle, row by row. Known on the host; long lists are not worth a program's text.
template <bool kLower>
void TriangleIndices(Lowering& l) {
  TensorType type = l.ResultType(0);
  if (type.numel() > 8192) return l.Unsupported("a long list of indices");
  int64_t rows = l.Int(0), columns = l.Int(1), offset = l.IntOr(2, 0);
  Ints row, column;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      if (kLower ? j - i > offset : j - i < offset) continue;
      row.push_back(i);
      column.push_back(j);
    }
  }
  row.insert(row.end(), column.begin(), column.end());
  l.SetResult(0, l.b.ConstantList(type, row));
}

const Rule kRules[] = {
    {.name = "arange", .lower = Arange, .size_of_scalars = ArangeEnd},
    {.name = "arange.start", .lower = ArangeStart, .size_of_scalars = ArangeStartEnd},
    {.name = "arange.start_step", .lower = ArangeStartStep, .size_of_scalars = ArangeStartEndStep},
    {.name = "linspace", .lower = Linspace},
    {.name = "linspace.Tensor_Tensor", .lower = Linspace},
    {.name = "linspace.Tensor_Scalar", .lower = Linspace},
    {.name = "linspace.Scalar_Tensor", .lower = Linspace},
    {.name = "logspace", .lower = Logspace},
    {.name = "logspace.Tensor_Tensor", .lower = Logspace},
    {.name = "logspace.Tensor_Scalar", .lower = Logspace},
    {.name = "logspace.Scalar_Tensor", .lower = Logspace},
    {.name = "eye", .lower = Eye},
    {.name = "eye.m", .lower = Eye},
    {.name = "tril", .lower = Triangle<Compare::kLe>},
    {.name = "triu", .lower = Triangle<Compare::kGe>},
    {.name = "tril_indices", .lower = TriangleIndices<true>},
    {.name = "triu_indices", .lower = TriangleIndices<false>},
};

}  // namespace

std::span<const Rule> CreateRules() { return kRules; }

}  // namespace tpu::lower
