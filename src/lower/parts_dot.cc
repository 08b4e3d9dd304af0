// SPDX-License-Identifier: Apache-2.0
// Products of two arrays, in the form that the engine is fast at.
#include <utility>

#include "lower/parts.h"

namespace tpu::lower {
namespace {

// Below this many multiplications a product costs less than the transposes around it.
constexpr int64_t kLeastTerms = 1 << 15;

// [batches..., summed, kept]: behind leading batch dimensions one that is summed over and one that stays.
bool SumsOverRows(Builder& b, Value x, const Ints& batch, const Ints& contract) {
  const auto leading = static_cast<int64_t>(batch.size());
  for (int64_t i = 0; i < leading; ++i)
    if (batch[static_cast<size_t>(i)] != i) return false;
  return b.rank(x) == leading + 2 && contract == Ints{leading};
}

}  // namespace

hlo::Precision PrecisionFor(const Lowering& l, DType dtype) {
  // Products of bf16 and f16 are exact in the first pass already; more passes only cost time.
  if (dtype == DType::kBF16 || dtype == DType::kF16) return hlo::Precision::kDefault;
  if (dtype == DType::kF64 || dtype == DType::kC128) return hlo::Precision::kHighest;
  switch (l.numerics.matmul_precision) {
    case Numerics::kHigh:
      return hlo::Precision::kHigh;
    case Numerics::kDefault:
      return hlo::Precision::kDefault;
    default:
      return hlo::Precision::kHighest;
  }
}

Value DotGeneral(Lowering& l, Value lhs, Value rhs, hlo::DotDims dims, hlo::Precision precision, DType acc) {
  Builder& b = l.b;
  if (!lhs.valid() || !rhs.valid()) return {};
  b.FoldTransposes(&lhs, &rhs, &dims);
  if (!l.profile.transposed_left_dot_is_slow || !SumsOverRows(b, lhs, dims.lhs_batch, dims.lhs_contract) ||
      !SumsOverRows(b, rhs, dims.rhs_batch, dims.rhs_contract)) {
    return b.DotGeneral(lhs, rhs, dims, precision, acc);
  }
  const int rows = b.rank(lhs) - 2, columns = rows + 1;
  const int64_t m = b.dim(lhs, columns), n = b.dim(rhs, columns), k = b.dim(lhs, rows);
  if (m == 1 || n == 1 || m * n * k < kLeastTerms) return b.DotGeneral(lhs, rhs, dims, precision, acc);

  Ints turned = AllDims(b.rank(lhs));
  std::swap(turned[static_cast<size_t>(rows)], turned[static_cast<size_t>(columns)]);
  // The barriers keep the transposes out of the product, which would become the slow one again.
  const auto transposed = [&](Value x) { return b.OptimizationBarrier(b.Transpose(x, turned)); };
  dims.lhs_contract = {columns};
  dims.rhs_contract = {rows};
  if (m <= n) return b.DotGeneral(transposed(lhs), rhs, dims, precision, acc);
  // The smaller side is the cheaper one to transpose: (rhs' lhs)'.
  return b.Transpose(b.OptimizationBarrier(b.DotGeneral(transposed(rhs), lhs, dims, precision, acc)), turned);
}

}  // namespace tpu::lower
