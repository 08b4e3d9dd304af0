// SPDX-License-Identifier: Apache-2.0
// Parts that several families share: dimensions, reductions, gathers, scatters, prefix scans, random numbers.
#pragma once
#include <functional>
#include <string>

#include "lower/lowering.h"

namespace tpu::lower {

using hlo::Builder;
using hlo::Compare;
using hlo::Ints;
using hlo::Value;
using hlo::Values;

// ---- dimensions
// A dimension argument as a number in [0, rank); rank 0 has one dimension of size 1.
int WrapDim(int64_t dim, int rank);
// The dimensions that list argument i names, ascending and wrapped; all when it is missing, None or empty.
Ints DimsArg(const Lowering& l, int i, int rank);
Ints AllDims(int rank);
Ints OtherDims(int rank, const Ints& dims);
// 1 for no elements.
int64_t Product(const Ints& sizes);
// Elements of x that a reduction over `dims` puts into one.
int64_t CountOf(Builder& b, Value x, const Ints& dims);
// Undoes a reduction over `dims`: `reduced`, which has lost them, repeated to `to`.
Value ExpandReduced(Builder& b, Value reduced, const Ints& to, const Ints& dims);
// Rank 0 becomes one dimension of size 1: ATen allows dim 0 there.
Value AtLeast1d(Builder& b, Value x);
Value Zeros(Builder& b, const TensorType& type);

// ---- arguments
// The structural class of scalar argument i by the rule's own classification, also where the number was burned in.
uint8_t ClassOf(const Lowering& l, int i);

// ---- results
// Converts to the dtype of result k, reshapes to its dims (equal element count) and sets it.
void SetResultAs(Lowering& l, int k, Value value);
// Result k is all `v`.
void SetResultFill(Lowering& l, int k, double v);
bool ResultIsEmpty(const Lowering& l, int k);

// ---- reductions. They accumulate in the operand's type: convert first.
Value ReduceSum(Lowering& l, Value x, const Ints& dims);
// Largest or smallest element. `carry_nan`: an element that is NaN wins; else what NaN does is undefined, which is
// faster and right where NaN reaches the result another way (softmax). i1: or, and.
Value ReduceMax(Lowering& l, Value x, const Ints& dims, bool carry_nan = true);
Value ReduceMin(Lowering& l, Value x, const Ints& dims, bool carry_nan = true);
// The identities of ReduceMax and ReduceMin.
Value LowestOf(Builder& b, DType dtype);
Value HighestOf(Builder& b, DType dtype);
// Between the passes of a kernel over rows: keeps x where computing it again in each pass is slower than storing it.
Value BetweenPasses(Lowering& l, Value x);
// x in memory for several readers, where engines would compute it again in each: barriers end before they fuse. A division
// by one, which is exact and which they take to be too dear for that.
Value Stored(Builder& b, Value x);
// x / count, exactly rounded: engines would multiply by the reciprocal of a constant divisor.
Value DivideByCount(Builder& b, Value x, double count);
// The s32 position along `dim` of the first element equal to `extreme` (x reduced over dim), NaN counting as equal.
Value FirstPosition(Builder& b, Value x, Value extreme, int dim);

// ---- products
// What the matmul precision setting asks of a product of two arrays of this type.
hlo::Precision PrecisionFor(const Lowering& l, DType dtype);
// StableHLO's dot_general. Where the engine is slow at a transposed left side, one side is transposed in memory.
Value DotGeneral(Lowering& l, Value lhs, Value rhs, hlo::DotDims dims, hlo::Precision precision, DType acc);

// ---- checks
// Traps when any element of `bad` (i1) is true.
void TrapIf(Lowering& l, Value bad, ErrorKind kind, const std::string& message);

// ---- indexing. Indices are checked by the caller.
// s32 where every index of a dimension of this size fits, else s64.
Value NarrowIndex(Builder& b, Value index, int64_t size);
// Negative indices count from the end.
Value WrapIndex(Builder& b, Value index, int64_t size);
// result[..., i..., ...] = x[..., index[i...], ...]: the dims of `index` take the place of `dim`.
Value TakeAlong(Builder& b, Value x, int dim, Value index);
// result[i, j, k] = x[i, index[i, j, k], k] for dim 1; x is cut to the dims of index where it is larger.
Value GatherElements(Lowering& l, Value x, int dim, Value index);
// Region of a scatter: {old, update} to new.
using Combine = std::function<Value(Builder&, Value, Value)>;
Combine ReplaceWith();
Combine AddTo();
Combine MultiplyTo();
Combine MaxTo();
Combine MinTo();
// x[..., index[i], ...] = combine(old, updates[..., i, ...]); index has rank 1. Out of range: dropped.
Value ScatterAlong(Builder& b, Value x, int dim, Value index, Value updates, const Combine& combine);
// x[i, index[i, j, k], k] = combine(old, updates[i, j, k]) for dim 1.
Value ScatterElements(Builder& b, Value x, int dim, Value index, Value updates, const Combine& combine);

// ---- scans
// Inclusive prefix combination along `dim`. `combine` is associative with this identity; its first operand is the
// earlier one.
Value PrefixScan(Lowering& l, Value x, int dim, Value identity, const Combine& combine);

// ---- random numbers, flat [count], of f32 or f64
// Uniform on [0, 1), multiples of 2^-bits; f32: bits <= 24, f64: 53 whatever `bits` says.
Value UniformFrom(Builder& b, const Lowering::RandomWords& words, DType dtype, int bits = 24);
// Uniform on (0, 1): never 0 and never 1.
Value OpenUniformFrom(Builder& b, const Lowering::RandomWords& words, DType dtype);
// Standard normal.
Value NormalFrom(Builder& b, const Lowering::RandomWords& words, DType dtype);

}  // namespace tpu::lower
