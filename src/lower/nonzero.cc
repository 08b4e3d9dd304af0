// SPDX-License-Identifier: Apache-2.0
// nonzero with a result of fixed size: the operator of ours behind nonzero and boolean masks.
#include <limits>

#include "lower/cast.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

// Each set element knows its row from a prefix sum and scatters its position there; unset ones scatter out of range,
// which drops them. Rows that nobody writes stay zero: valid indices, so that consumers may read them.
void NonzeroPadded(Lowering& l) {
  Builder& b = l.b;
  const Value x = l.Tensor(0);
  if (!x.valid()) return;
  const Ints dims = b.dims(x);
  const int64_t numel = Product(dims);
  const int rank = static_cast<int>(dims.size());
  if (numel == 0 || rank == 0) {
    if (rank == 0) return l.Unsupported("no dimension to count along");
    l.SetResult(0, Zeros(b, l.ResultType(0)));
    l.SetResult(1, Zeros(b, l.ResultType(1)));
    return;
  }
  const DType word = numel < std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64;
  const Value set = b.Flatten(Cast(b, x, DType::kBool));
  const Value rows = PrefixScan(l, b.Convert(set, word), 0, b.Constant(word, 0), AddTo());
  const Value count = b.Reshape(b.SliceDim(rows, 0, numel - 1, numel), {});
  const Value target = b.Select(set, b.Binary("subtract", rows, 1), b.Like(rows, numel));
  const TensorType flat(word, {numel});
  const Value order = ScatterAlong(b, Zeros(b, flat), 0, target, b.Iota(flat, 0), ReplaceWith());
  // Row-major position to coordinates, last dimension first.
  Values columns(rank);
  Value left = order;
  for (int d = rank - 1; d >= 0; --d) {
    const Value column = d ? b.Binary("remainder", left, dims[d]) : left;
    columns[d] = b.Reshape(column, {numel, 1});
    if (d) left = b.Binary("divide", left, dims[d]);
  }
  l.SetResult(0, b.Convert(b.Concatenate(columns, 1), DType::kI64));
  l.SetResult(1, b.Convert(count, DType::kI64));
}

constexpr Rule kRules[] = {
    {.name = "torch_tpu::nonzero_padded", .lower = &NonzeroPadded},
};

}  // namespace

std::span<const Rule> NonzeroRules() { return kRules; }

}  // namespace tpu::lower
