// SPDX-License-Identifier: Apache-2.0
// Scatters: element by element along one dimension, and the reducing forms of row scatters.
#include "lower/cast.h"
#include "lower/index.h"
#include "lower/parts.h"

namespace tpu::lower {
namespace {

enum class Reduction { kReplace, kSum, kProduct, kMean, kMax, kMin };

bool ParseReduction(Lowering& l, const std::string& text, Reduction* reduction) {
  if (text == "sum" || text == "add") {
    *reduction = Reduction::kSum;
  } else if (text == "prod" || text == "multiply") {
    *reduction = Reduction::kProduct;
  } else if (text == "mean") {
    *reduction = Reduction::kMean;
  } else if (text == "amax") {
    *reduction = Reduction::kMax;
  } else if (text == "amin") {
    *reduction = Reduction::kMin;
  } else {
    l.Unsupported("reduction \"" + text + "\"");
    return false;
  }
  return true;
}

Combine CombineFor(Reduction reduction) {
  switch (reduction) {
    case Reduction::kReplace:
      return ReplaceWith();
    case Reduction::kProduct:
      return MultiplyTo();
    case Reduction::kMax:
      return MaxTo();
    case Reduction::kMin:
      return MinTo();
    default:
      return AddTo();
  }
}

Value IdentityOf(Builder& b, DType dtype, Reduction reduction) {
  switch (reduction) {
    case Reduction::kProduct:
      return b.Constant(dtype, 1);
    case Reduction::kMax:
      return LowestOf(b, dtype);
    case Reduction::kMin:
      return HighestOf(b, dtype);
    default:
      return b.Constant(dtype, 0);
  }
}

// ATen's "mean" of integers rounds down.
Value DivideByCounts(Builder& b, Value sum, Value counts) {
  const Value at_least_one = b.Max(counts, b.Like(counts, 1));
  if (IsFloat(b.dtype(sum)) || IsComplex(b.dtype(sum))) return b.Div(sum, at_least_one);
  const Value quotient = b.Div(sum, at_least_one);
  if (!IsSigned(b.dtype(sum))) return quotient;
  const Value exact = b.Cmp(Compare::kEq, b.Mul(quotient, at_least_one), sum);
  const Value down = b.Sub(quotient, b.Like(sum, 1));
  return b.Select(b.Or(exact, b.Cmp(Compare::kGe, sum, 0)), quotient, down);
}

using ScatterInto = std::function<Value(Value into, Value updates, const Combine&)>;

// x with updates reduced into it; `scatter` knows the indices.
Value ReduceInto(Builder& b, Value x, Value updates, Reduction reduction, bool include_self, const ScatterInto& scatter) {
  const DType dtype = b.dtype(x);
  if (reduction == Reduction::kReplace) return scatter(x, updates, ReplaceWith());
  if (!include_self) {
    const Value identity = b.BroadcastLike(IdentityOf(b, dtype, reduction), updates);
    x = scatter(x, identity, ReplaceWith());
  }
  Value y = scatter(x, updates, CombineFor(reduction));
  if (reduction != Reduction::kMean) return y;
  // Counts of a dtype that is narrower than they are would overflow.
  const DType count_type = IsFloat(dtype) ? dtype : DType::kI32;
  const Value start = b.Constant(b.type(x).With(count_type), include_self ? 1 : 0);
  const Value counts = scatter(start, b.Constant(b.type(updates).With(count_type), 1), AddTo());
  if (IsFloat(dtype)) return DivideByCounts(b, y, counts);
  return DivideByCounts(b, y, b.Convert(counts, dtype));
}

// The element forms: self, dim, index are arguments 0 to 2.
void Elements(Lowering& l, Reduction reduction, bool include_self, const std::function<Value(DType)>& updates) {
  Builder& b = l.b;
  const TensorType self = l.TypeOf(0);
  if (l.TypeOf(2).numel() == 0) return SetResultAs(l, 0, l.Tensor(0));
  const bool exact = reduction == Reduction::kReplace || reduction == Reduction::kMax || reduction == Reduction::kMin;
  const DType acc = exact ? self.dtype : OpMathType(self.dtype);
  const Value x = AtLeast1d(b, l.Tensor(0, acc)), index = AtLeast1d(b, l.Tensor(2));
  const int dim = WrapDim(l.Int(1), b.rank(x));
  const int64_t n = b.dim(x, dim);
  l.TrapIfOutOfRange(index, 0, n, ErrorKind::kRuntime,
                     "index %v is out of bounds for dimension " + std::to_string(dim) + " with size " + std::to_string(n));
  const auto scatter = [&](Value into, Value what, const Combine& combine) {
    return ScatterElements(b, into, dim, index, what, combine);
  };
  Value what = updates(acc);
  what = b.rank(what) == 0 ? b.BroadcastLike(what, index) : what;
  what = b.Slice(what, Ints(b.rank(what), 0), b.dims(index));
  SetResultAs(l, 0, ReduceInto(b, x, what, reduction, include_self, scatter));
}

Reduction ReductionArg(Lowering& l, int i) {
  Reduction reduction = Reduction::kReplace;
  ParseReduction(l, l.Text(i), &reduction);
  return reduction;
}

// scatter.src(self, dim, index, src)
void ScatterSrc(Lowering& l) {
  Elements(l, Reduction::kReplace, true, [&](DType d) { return l.Tensor(3, d); });
}
// scatter.value(self, dim, index, value)
void ScatterValue(Lowering& l) {
  Elements(l, Reduction::kReplace, true, [&](DType d) { return l.Scalar(3, d); });
}
// scatter.reduce(self, dim, index, src, *, reduce)
void ScatterSrcReduce(Lowering& l) {
  Elements(l, ReductionArg(l, 4), true, [&](DType d) { return l.Tensor(3, d); });
}
void ScatterValueReduce(Lowering& l) {
  Elements(l, ReductionArg(l, 4), true, [&](DType d) { return l.Scalar(3, d); });
}
// scatter_add(self, dim, index, src)
void ScatterAdd(Lowering& l) {
  Elements(l, Reduction::kSum, true, [&](DType d) { return l.Tensor(3, d); });
}
// scatter_reduce.two(self, dim, index, src, reduce, *, include_self)
void ScatterReduce(Lowering& l) {
  Elements(l, ReductionArg(l, 4), l.Bool(5), [&](DType d) { return l.Tensor(3, d); });
}

// index_reduce(self, dim, index, source, reduce, *, include_self)
void IndexReduce(Lowering& l) {
  Builder& b = l.b;
  if (l.TypeOf(2).numel() == 0) return SetResultAs(l, 0, l.Tensor(0));
  const Reduction reduction = ReductionArg(l, 4);
  const DType acc = OpMathType(l.TypeOf(0).dtype);
  const Value x = AtLeast1d(b, l.Tensor(0, acc)), index = AtLeast1d(b, l.Tensor(2));
  const int dim = WrapDim(l.Int(1), b.rank(x));
  l.TrapIfOutOfRange(index, 0, b.dim(x, dim), ErrorKind::kIndex, "index out of range in self");
  const auto scatter = [&](Value into, Value what, const Combine& combine) {
    return ScatterAlong(b, into, dim, index, what, combine);
  };
  SetResultAs(l, 0, ReduceInto(b, x, AtLeast1d(b, l.Tensor(3, acc)), reduction, l.Bool(5), scatter));
}

constexpr Rule kRules[] = {
    {.name = "scatter.src", .lower = ScatterSrc},          {.name = "scatter.value", .lower = ScatterValue},
    {.name = "scatter.reduce", .lower = ScatterSrcReduce}, {.name = "scatter.value_reduce", .lower = ScatterValueReduce},
    {.name = "scatter_add", .lower = ScatterAdd},          {.name = "scatter_reduce.two", .lower = ScatterReduce},
    {.name = "index_reduce", .lower = IndexReduce},
};

}  // namespace

std::span<const Rule> ScatterRules() { return kRules; }

}  // namespace tpu::lower
