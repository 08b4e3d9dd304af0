// SPDX-License-Identifier: Apache-2.0
// Variances, norms and logsumexp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lower/parts.h"
#include "lower/reduce.h"

namespace tpu::lower {
namespace {

// abs(x)^2 as a real number.
Value SquareOf(Builder& b, Value x) {
  if (!IsComplex(b.dtype(x))) return b.Mul(x, x);
  const Value re = b.Real(x), im = b.Imag(x);
  return b.Add(b.Mul(re, re), b.Mul(im, im));
}

// var.correction(self, dim, *, correction, keepdim) and its kin. Two passes: sums of squares lose everything when the
// mean is large.
void Moments(Lowering& l, bool root, bool with_mean) {
  Builder& b = l.b;
  const Value x = l.Tensor(0, OpMathType(l.TypeOf(0).dtype));
  const Ints dims = DimsArg(l, 1, b.rank(x));
  const double n = static_cast<double>(CountOf(b, x, dims));
  const double correction = l.IsNone(2) ? 1.0 : l.StructuralScalar(2);
  const Value mean = DivideByCount(b, ReduceSum(l, x, dims), n);
  const Value deviation = b.Sub(x, ExpandReduced(b, mean, b.dims(x), dims));
  Value var = DivideByCount(b, ReduceSum(l, SquareOf(b, deviation), dims), std::max(0.0, n - correction));
  if (root) var = b.Unary("sqrt", var);
  SetResultAs(l, 0, var);
  if (with_mean) SetResultAs(l, 1, mean);
}
void Var(Lowering& l) { Moments(l, false, false); }
void Std(Lowering& l) { Moments(l, true, false); }
void VarMean(Lowering& l) { Moments(l, false, true); }
void StdMean(Lowering& l) { Moments(l, true, true); }

// ---- norms. The order is a class where it changes the program.
enum Order : uint8_t { kOtherOrder, kOne, kTwo, kZero, kInfinity, kMinusInfinity };

uint8_t ClassifyOrder(int, double order, bool) {
  if (order == 1) return kOne;
  if (order == 2) return kTwo;
  if (order == 0) return kZero;
  if (std::isinf(order)) return order > 0 ? kInfinity : kMinusInfinity;
  return kOtherOrder;
}

// The order is argument 1 (None: 2).
void NormOver(Lowering& l, const Ints& dims) {
  Builder& b = l.b;
  const TensorType result = l.ResultType(0);
  const DType real = OpMathType(result.dtype);
  Value x;
  if (IsComplex(l.TypeOf(0).dtype)) {
    x = b.Unary("abs", l.Tensor(0, real == DType::kF64 ? DType::kC128 : DType::kC64));
  } else {
    x = b.Unary("abs", b.Convert(l.Tensor(0, result.dtype), real));
  }
  switch (l.IsNone(1) ? Order{kTwo} : static_cast<Order>(ClassOf(l, 1))) {
    case kZero:
      x = ReduceSum(l, b.Convert(b.Cmp(Compare::kNe, x, 0.0), real), dims);
      break;
    case kOne:
      x = ReduceSum(l, x, dims);
      break;
    case kTwo:
      x = b.Unary("sqrt", ReduceSum(l, b.Mul(x, x), dims));
      break;
    case kInfinity:
      x = ReduceMax(l, x, dims);
      break;
    case kMinusInfinity:
      x = ReduceMin(l, x, dims);
      break;
    default: {
      const Value p = l.Scalar(1, real);
      const Value sum = ReduceSum(l, b.Binary("power", x, b.BroadcastLike(p, x)), dims);
      x = b.Binary("power", sum, b.BroadcastLike(b.Div(b.Constant(real, 1.0), p), sum));
    }
  }
  SetResultAs(l, 0, x);
}
// linalg_vector_norm(self, ord, dim, keepdim, *, dtype), norm.ScalarOpt_dim[_dtype](self, p, dim, keepdim)
void Norm(Lowering& l) { NormOver(l, DimsArg(l, 2, l.TypeOf(0).rank)); }
// norm.Scalar(self, p), norm.ScalarOpt_dtype(self, p, *, dtype)
void NormAll(Lowering& l) { NormOver(l, AllDims(l.TypeOf(0).rank)); }

// logsumexp(self, dim, keepdim)
void LogSumExp(Lowering& l) {
  Builder& b = l.b;
  const DType to = l.ResultType(0).dtype;
  if (IsComplex(to)) return l.Unsupported("complex logsumexp");
  const Value x = b.Convert(l.Tensor(0, to), OpMathType(to));
  const Ints dims = DimsArg(l, 1, b.rank(x));
  Value largest = ReduceMax(l, x, dims, false);
  // An infinite maximum subtracted from itself is NaN.
  const Value infinite = b.Cmp(Compare::kEq, b.Unary("abs", largest), std::numeric_limits<double>::infinity());
  largest = b.Select(infinite, b.Like(largest, 0.0), largest);
  const Value e = b.Unary("exponential", b.Sub(x, ExpandReduced(b, largest, b.dims(x), dims)));
  SetResultAs(l, 0, b.Add(b.Unary("log", ReduceSum(l, e, dims)), largest));
}

constexpr Rule kRules[] = {
    {.name = "var.correction", .lower = Var, .structural_scalars = "correction"},
    {.name = "std.correction", .lower = Std, .structural_scalars = "correction"},
    {.name = "var_mean.correction", .lower = VarMean, .structural_scalars = "correction"},
    {.name = "std_mean.correction", .lower = StdMean, .structural_scalars = "correction"},
    {.name = "linalg_vector_norm", .lower = Norm, .classify = ClassifyOrder},
    {.name = "norm.Scalar", .lower = NormAll, .classify = ClassifyOrder},
    {.name = "norm.ScalarOpt_dtype", .lower = NormAll, .classify = ClassifyOrder},
    {.name = "norm.ScalarOpt_dim", .lower = Norm, .classify = ClassifyOrder},
    {.name = "norm.ScalarOpt_dim_dtype", .lower = Norm, .classify = ClassifyOrder},
    {.name = "logsumexp", .lower = LogSumExp},
};

}  // namespace

std::span<const Rule> MomentRules() { return kRules; }

}  // namespace tpu::lower
