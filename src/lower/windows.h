// SPDX-License-Identifier: Apache-2.0
// Windows along one dimension at a time: pooling and resampling are separable.
#pragma once
#include "lower/image.h"

namespace tpu::lower {

// x at these positions of `dim`, `fill` (rank 0) where a position is outside. Evenly spaced and evenly repeated
// positions cost a slice or a broadcast, all others a gather.
Value TakePositions(Builder& b, Value x, int dim, const Ints& positions, Value fill);

// One output of a weighted sum.
struct Term {
  int64_t source;
  double weight;
};
using Terms = std::vector<std::vector<Term>>;

// result[..., i, ...] = sum over the terms of i: weight * x[..., source, ...].
Value Resample(Lowering& l, Value x, int dim, const Terms& terms);
// The terms of the gradient: source and output exchanged.
Terms Transposed(const Terms& terms, int64_t sources);

// Operand i for an operator on its last n dimensions, in the order of its memory: the dimensions are first, first + 1, ...
struct SpatialView {
  Value value;
  int first;
  bool features_last;
};
SpatialView SpatialOf(Lowering& l, int i, DType dtype, int n);
// Back in logical order.
Value Logical(Builder& b, Value x, bool features_last);

// A window of a pooling operator along one dimension.
struct PoolWindow {
  int64_t in, out, kernel, stride, padding, dilation;
  bool apart() const { return padding == 0 && dilation == 1 && kernel == stride; }
};
// Where output i of an adaptive pool begins and ends.
int64_t AdaptiveStart(int64_t i, int64_t in, int64_t out);
int64_t AdaptiveEnd(int64_t i, int64_t in, int64_t out);

}  // namespace tpu::lower
