// SPDX-License-Identifier: Apache-2.0
// Prefix sums and products.
#include "lower/parts.h"
#include "lower/reduce.h"

namespace tpu::lower {
namespace {

// cumsum(self, dim, *, dtype)
void Scan(Lowering& l, double identity, const Combine& combine) {
  Builder& b = l.b;
  const DType to = l.ResultType(0).dtype;
  const Value x = b.Convert(l.Tensor(0, to), OpMathType(to));
  if (b.rank(x) == 0) return SetResultAs(l, 0, x);
  const int dim = WrapDim(l.Int(1), b.rank(x));
  SetResultAs(l, 0, PrefixScan(l, x, dim, b.Constant(b.dtype(x), identity), combine));
}

void CumSum(Lowering& l) { Scan(l, 0, AddTo()); }
void CumProd(Lowering& l) { Scan(l, 1, MultiplyTo()); }

constexpr Rule kRules[] = {
    {.name = "cumsum", .lower = CumSum, .dtype_of_out = true},
    {.name = "cumprod", .lower = CumProd, .dtype_of_out = true},
};

}  // namespace

std::span<const Rule> ScanRules() { return kRules; }

}  // namespace tpu::lower
