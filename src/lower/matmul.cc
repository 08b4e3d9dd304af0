// SPDX-License-Identifier: Apache-2.0
// Matrix products. Narrow floats are multiplied into float32 and rounded once, after alpha and beta.
#include "lower/parts.h"

namespace tpu::lower {
namespace {

Ints Joined(Ints x, const Ints& y) {
  x.insert(x.end(), y.begin(), y.end());
  return x;
}

// A product as multiplications and a sum. The TPU compiler has no dot of 64-bit integers.
Value DotBySum(Lowering& l, Value lhs, Value rhs, const hlo::DotDims& dims, const TensorType& type) {
  Builder& b = l.b;
  const auto canonical = [&](Value v, const Ints& batch, const Ints& contract) {
    const Ints free = OtherDims(b.rank(v), Joined(batch, contract));
    const int64_t outer = CountOf(b, v, batch), kept = CountOf(b, v, free), summed = CountOf(b, v, contract);
    return b.Reshape(b.Transpose(v, Joined(Joined(batch, free), contract)), {outer, kept, summed});
  };
  lhs = canonical(lhs, dims.lhs_batch, dims.lhs_contract);
  rhs = canonical(rhs, dims.rhs_batch, dims.rhs_contract);
  const Ints all{b.dim(lhs, 0), b.dim(lhs, 1), b.dim(rhs, 1), b.dim(lhs, 2)};
  const Value products = b.Mul(b.BroadcastInDim(lhs, all, {0, 1, 3}), b.BroadcastInDim(rhs, all, {0, 2, 3}));
  return b.Reshape(ReduceSum(l, products, {3}), Ints(type.begin(), type.end()));
}

// lhs and rhs of one dtype; the result is of the type that sums are kept in.
Value Dot(Lowering& l, Value lhs, Value rhs, const hlo::DotDims& dims) {
  Builder& b = l.b;
  if (!lhs.valid() || !rhs.valid()) return {};
  const DType dtype = b.dtype(lhs), acc = OpMathType(dtype);
  if (dtype == DType::kBool) {
    l.Unsupported("matrix product of bools");
    return {};
  }
  TensorType type = TensorType::Scalar(acc);
  for (int64_t d : dims.lhs_batch) type.Append(b.dim(lhs, static_cast<int>(d)));
  for (int64_t d : OtherDims(b.rank(lhs), Joined(dims.lhs_batch, dims.lhs_contract))) type.Append(b.dim(lhs, d));
  for (int64_t d : OtherDims(b.rank(rhs), Joined(dims.rhs_batch, dims.rhs_contract))) type.Append(b.dim(rhs, d));
  if (CountOf(b, lhs, dims.lhs_contract) == 0 || type.numel() == 0) return Zeros(b, type);
  if (IsInteger(dtype) && ItemSize(dtype) == 8 && l.profile.kind != pjrt::EngineKind::kCpu)
    return DotBySum(l, lhs, rhs, dims, type);
  return DotGeneral(l, lhs, rhs, dims, PrecisionFor(l, dtype), acc);
}

const hlo::DotDims kMatrix{.lhs_batch = {}, .rhs_batch = {}, .lhs_contract = {1}, .rhs_contract = {0}};
const hlo::DotDims kBatched{.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contract = {2}, .rhs_contract = {1}};
const hlo::DotDims kBatchSum{.lhs_batch = {}, .rhs_batch = {}, .lhs_contract = {0, 2}, .rhs_contract = {0, 1}};
const hlo::DotDims kVectors{.lhs_batch = {}, .rhs_batch = {}, .lhs_contract = {0}, .rhs_contract = {0}};

// mm(self, mat2), mm.dtype(self, mat2, out_dtype), mv(self, vec)
void Mm(Lowering& l) { SetResultAs(l, 0, Dot(l, l.Tensor(0), l.Tensor(1), kMatrix)); }
void Bmm(Lowering& l) { SetResultAs(l, 0, Dot(l, l.Tensor(0), l.Tensor(1), kBatched)); }
void DotVectors(Lowering& l) { SetResultAs(l, 0, Dot(l, l.Tensor(0), l.Tensor(1), kVectors)); }

// vdot(self, other): the first factor conjugated.
void VDot(Lowering& l) {
  Builder& b = l.b;
  Value x = l.Tensor(0);
  if (IsComplex(b.dtype(x))) x = b.Complex(b.Real(x), b.Neg(b.Imag(x)));
  SetResultAs(l, 0, Dot(l, x, l.Tensor(1), kVectors));
}

// _int_mm(self, mat2): 8-bit integers into 32-bit sums
void IntMm(Lowering& l) {
  const Value x = l.Tensor(0), y = l.Tensor(1);
  if (ResultIsEmpty(l, 0) || l.b.dim(x, 1) == 0) return SetResultFill(l, 0, 0);
  l.SetResult(0, l.b.DotGeneral(x, y, kMatrix, hlo::Precision::kDefault, DType::kI32));
}

// alpha and beta: 1 multiplies nothing; 0 means that the term is not even read (NaN in it does not count), which BLAS
// guarantees.
constexpr uint8_t kOne = 1, kZero = 2;
uint8_t ClassifyFactor(int, double value, bool) { return value == 1 ? kOne : value == 0 ? kZero : 0; }

// beta * self + alpha * product. The invalid Value stands for "nothing".
Value Scaled(Lowering& l, int factor, const std::function<Value()>& term) {
  Builder& b = l.b;
  const uint8_t factor_class = ClassOf(l, factor);
  if (factor_class == kZero) return {};
  const Value v = term();
  return factor_class == kOne || !v.valid() ? v : b.Mul(v, b.BroadcastLike(l.Scalar(factor, b.dtype(v)), v));
}

void Combination(Lowering& l, int beta, int alpha, const std::function<Value()>& product) {
  Builder& b = l.b;
  const TensorType result = l.ResultType(0);
  const DType acc = OpMathType(result.dtype);
  const Value first = Scaled(l, beta, [&] { return b.Broadcast(l.Tensor(0, acc), Ints(result.begin(), result.end())); });
  const Value second = Scaled(l, alpha, product);
  if (first.valid() && second.valid()) return SetResultAs(l, 0, b.Add(second, first));
  if (!first.valid() && !second.valid()) return SetResultFill(l, 0, 0);
  SetResultAs(l, 0, first.valid() ? first : second);
}

std::function<Value()> ProductOf(Lowering& l, const hlo::DotDims& dims) {
  return [&l, &dims] {
    const DType acc = OpMathType(l.ResultType(0).dtype);
    return l.b.Convert(Dot(l, l.Tensor(1), l.Tensor(2), dims), acc);
  };
}

// addmm(self, mat1, mat2, *, beta, alpha), addmv
void Addmm(Lowering& l) { Combination(l, 3, 4, ProductOf(l, kMatrix)); }
void Baddbmm(Lowering& l) { Combination(l, 3, 4, ProductOf(l, kBatched)); }
void Addbmm(Lowering& l) { Combination(l, 3, 4, ProductOf(l, kBatchSum)); }
// addmm.dtype(self, mat1, mat2, out_dtype, *, beta, alpha)
void AddmmDtype(Lowering& l) { Combination(l, 4, 5, ProductOf(l, kMatrix)); }
void BaddbmmDtype(Lowering& l) { Combination(l, 4, 5, ProductOf(l, kBatched)); }

// addr is elementwise, not BLAS: an alpha of 0 multiplies like any other number.
uint8_t ClassifyAddr(int arg, double value, bool integral) {
  const uint8_t factor_class = ClassifyFactor(arg, value, integral);
  return arg == 4 && factor_class == kZero ? 0 : factor_class;
}

// addr(self, vec1, vec2, *, beta, alpha)
void Addr(Lowering& l) {
  Combination(l, 3, 4, [&] {
    Builder& b = l.b;
    const TensorType result = l.ResultType(0);
    const DType acc = OpMathType(result.dtype);
    const Ints dims(result.begin(), result.end());
    return b.Mul(b.BroadcastInDim(l.Tensor(1, acc), dims, {0}), b.BroadcastInDim(l.Tensor(2, acc), dims, {1}));
  });
}

constexpr Rule kRules[] = {
    {.name = "mm", .lower = Mm, .precision = true},
    {.name = "mm.dtype", .lower = Mm, .precision = true},
    {.name = "bmm", .lower = Bmm, .precision = true},
    {.name = "bmm.dtype", .lower = Bmm, .precision = true},
    {.name = "mv", .lower = Mm, .precision = true},
    {.name = "dot", .lower = DotVectors, .precision = true},
    {.name = "vdot", .lower = VDot, .precision = true},
    {.name = "_int_mm", .lower = IntMm},
    {.name = "addmm", .lower = Addmm, .classify = ClassifyFactor, .precision = true},
    {.name = "addmm.dtype", .lower = AddmmDtype, .classify = ClassifyFactor, .precision = true},
    {.name = "addmv", .lower = Addmm, .classify = ClassifyFactor, .precision = true},
    {.name = "baddbmm", .lower = Baddbmm, .classify = ClassifyFactor, .precision = true},
    {.name = "baddbmm.dtype", .lower = BaddbmmDtype, .classify = ClassifyFactor, .precision = true},
    {.name = "addbmm", .lower = Addbmm, .classify = ClassifyFactor, .precision = true},
    {.name = "addr", .lower = Addr, .classify = ClassifyAddr},
};

}  // namespace

std::span<const Rule> MatmulRules() { return kRules; }

}  // namespace tpu::lower
