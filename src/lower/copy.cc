// SPDX-License-Identifier: Apache-2.0
// Copies and fills. The recorder gives them self as their target.
#include "lower/lowering.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

// Argument i, converted and repeated to the result's type.
void Repeat(Lowering& l, int i) {
  TensorType type = l.ResultType(0);
  l.SetResult(0, l.b.Broadcast(l.Tensor(i, type.dtype), Ints(type.begin(), type.end())));
}

// copy(self, src, non_blocking)
void Copy(Lowering& l) {
  // A source of more dimensions than the result has 1 in all that are too many.
  TensorType type = l.ResultType(0);
  Value src = l.Tensor(1, type.dtype);
  Ints dims = l.b.dims(src);
  if (dims.size() > type.rank) dims.erase(dims.begin(), dims.end() - type.rank);
  l.SetResult(0, l.b.Broadcast(l.b.Reshape(src, dims), Ints(type.begin(), type.end())));
}

void Fill(Lowering& l) { Repeat(l, 1); }

// XLA takes x + 0 for x, also where x is -0 and the sum 0. It does not see through a barrier, which costs nothing for a scalar.
void Zero(Lowering& l) {
  const TensorType type = l.ResultType(0);
  const Value zero = l.b.Constant(type.dtype, 0);
  const bool negative_zero = IsFloat(type.dtype) || IsComplex(type.dtype);
  l.SetResult(0, l.b.Broadcast(negative_zero ? l.b.OptimizationBarrier(zero) : zero, Ints(type.begin(), type.end())));
}

void Self(Lowering& l) { Repeat(l, 0); }

const Rule kRules[] = {
    {.name = "copy", .lower = Copy, .pad = Pad::kPass},        {.name = "fill.Scalar", .lower = Fill, .pad = Pad::kPass},
    {.name = "fill.Tensor", .lower = Fill, .pad = Pad::kPass}, {.name = "zero", .lower = Zero, .pad = Pad::kPass},
    {.name = "clone", .lower = Self, .pad = Pad::kPass},       {.name = "_to_copy", .lower = Self, .pad = Pad::kPass},
    {.name = "lift", .lower = Self, .pad = Pad::kPass},
};

}  // namespace

std::span<const Rule> CopyRules() { return kRules; }

}  // namespace tpu::lower
