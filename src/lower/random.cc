// SPDX-License-Identifier: Apache-2.0
// Random numbers. Each element takes one Philox call and uses its first word (float64 and 64-bit integers: the first
// two); normal numbers come through the inverse distribution function, not through pairs: pairs make engines compute
// every call twice. Distribution parameters that ATen refuses are classes of their own and go to the fallback, which
// raises ATen's error at the call. Sampling without a simple formula is in random_sample.cc.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "lower/parts.h"
#include "lower/random.h"

namespace tpu::lower {
namespace {

constexpr uint8_t kRefused = 100;

uint8_t ClassifyNonNegative(int, double v, bool) { return v >= 0 ? 0 : kRefused; }
uint8_t ClassifyPositive(int, double v, bool) { return v > 0 ? 0 : kRefused; }
uint8_t ClassifyProbability(int, double v, bool) { return v >= 0 && v <= 1 ? 0 : kRefused; }
uint8_t ClassifyInnerProbability(int, double v, bool) { return v > 0 && v < 1 ? 0 : kRefused; }
// normal_(self, mean, std) and log_normal_: only std is limited.
uint8_t ClassifyStd(int argument, double v, bool) { return argument == 2 ? ClassifyNonNegative(argument, v, false) : 0; }
uint8_t ClassifyStdFirst(int argument, double v, bool) { return argument == 1 ? ClassifyNonNegative(argument, v, false) : 0; }
uint8_t ClassifyScale(int argument, double v, bool) { return argument == 2 ? ClassifyPositive(argument, v, false) : 0; }

bool Refused(Lowering& l, int i) {
  if (ClassOf(l, i) != kRefused) return false;
  l.Unsupported("a distribution parameter that ATen refuses");
  return true;
}

// The type that samples of `dtype` are computed in.
DType SampleType(DType dtype) { return dtype == DType::kF64 || dtype == DType::kC128 ? DType::kF64 : DType::kF32; }

Ints DimsOf(const TensorType& t) { return Ints(t.begin(), t.end()); }

// Parameter i (a run-time number) for every sample of `like`.
Value Parameter(Lowering& l, int i, Value like) { return l.b.BroadcastLike(l.Scalar(i, l.b.dtype(like)), like); }

// Significand bits of a uniform number of this type: more would round up to the excluded upper end.
int UniformBits(DType dtype) { return dtype == DType::kBF16 ? 8 : dtype == DType::kF16 ? 11 : 24; }

// uniform_(self, from, to)
void Uniform(Lowering& l) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  if (type.numel() == 0) return SetResultFill(l, 0, 0);
  if (!IsFloat(type.dtype)) return l.Unsupported("uniform numbers of this type");
  const DType acc = SampleType(type.dtype);
  const Value u = UniformFrom(b, l.Random(type.numel()), acc, UniformBits(type.dtype));
  const Value from = l.Scalar(1, acc), to = l.Scalar(2, acc);
  TrapIf(l, b.Cmp(Compare::kGt, from, to), ErrorKind::kRuntime,
         "uniform_ expects to return a [from, to) range, but found from > to");
  Value x = b.Add(b.Mul(u, b.BroadcastLike(b.Sub(to, from), u)), b.BroadcastLike(from, u));
  x = b.Convert(x, type.dtype);
  // Rounding may reach the upper end, which is not part of the range.
  const Value low = b.BroadcastLike(b.Convert(from, type.dtype), x), high = b.BroadcastLike(b.Convert(to, type.dtype), x);
  SetResultAs(l, 0, b.Select(b.Cmp(Compare::kLt, x, high), x, low));
}

// Standard normal numbers for a result of `type`, flat, in the sample type (complex: variance 1 in all).
Value StandardNormal(Lowering& l, const TensorType& type) {
  Builder& b = l.b;
  const DType acc = SampleType(type.dtype);
  const Lowering::RandomWords words = l.Random(type.numel());
  if (!IsComplex(type.dtype)) return NormalFrom(b, words, acc);
  const Value re = NormalFrom(b, words, acc), im = NormalFrom(b, {{words.w[2], words.w[3], {}, {}}}, acc);
  const double scale = std::sqrt(0.5);
  return b.Complex(b.Binary("multiply", re, scale), b.Binary("multiply", im, scale));
}

// normal_(self, mean, std), normal.float_float(mean, std, size): `mean` is the position of the mean.
void NormalFloats(Lowering& l, int mean) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  if (Refused(l, mean + 1)) return;
  if (type.numel() == 0) return SetResultFill(l, 0, 0);
  if (!IsFloat(type.dtype) && !IsComplex(type.dtype)) return l.Unsupported("normal numbers of this type");
  const Value z = StandardNormal(l, type);
  SetResultAs(l, 0, b.Add(b.Mul(z, Parameter(l, mean + 1, z)), Parameter(l, mean, z)));
}
void Normal(Lowering& l) { NormalFloats(l, 1); }
void NormalOfSize(Lowering& l) { NormalFloats(l, 0); }

// normal.Tensor_float(mean, std), normal.float_Tensor, normal.Tensor_Tensor
void NormalTensors(Lowering& l) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  const bool std_is_tensor = l.arg(1).kind == graph::ArgKind::kTensor;
  if (!std_is_tensor && Refused(l, 1)) return;
  if (type.numel() == 0) return SetResultFill(l, 0, 0);
  if (!IsFloat(type.dtype)) return l.Unsupported("normal numbers of this type");
  const Value z = b.Reshape(StandardNormal(l, type), DimsOf(type));
  const DType acc = b.dtype(z);
  const Value mean = l.Tensor(0, acc), std = l.Tensor(1, acc);
  if (std_is_tensor) {
    TrapIf(l, b.Cmp(Compare::kLt, std, 0.0), ErrorKind::kRuntime, "normal expects all elements of std >= 0.0");
  }
  SetResultAs(l, 0, b.Add(b.Mul(z, b.BroadcastLike(std, z)), b.BroadcastLike(mean, z)));
}

// log_normal_(self, mean, std)
void LogNormal(Lowering& l) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  if (Refused(l, 2)) return;
  if (type.numel() == 0) return SetResultFill(l, 0, 0);
  if (!IsFloat(type.dtype)) return l.Unsupported("log-normal numbers of this type");
  const Value z = StandardNormal(l, type);
  SetResultAs(l, 0, b.Unary("exponential", b.Add(b.Mul(z, Parameter(l, 2, z)), Parameter(l, 1, z))));
}

// A uniform number in (0, 1) for each element of result 0.
Value OpenUniform(Lowering& l) {
  const TensorType type = l.ResultType(0);
  return OpenUniformFrom(l.b, l.Random(type.numel()), SampleType(type.dtype));
}

// exponential_(self, lambd)
void Exponential(Lowering& l) {
  Builder& b = l.b;
  if (Refused(l, 1)) return;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value e = b.Neg(b.Unary("log", OpenUniform(l)));
  SetResultAs(l, 0, b.Div(e, Parameter(l, 1, e)));
}

// geometric_(self, p): number of trials up to the first success.
void Geometric(Lowering& l) {
  Builder& b = l.b;
  if (Refused(l, 1)) return;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value u = OpenUniform(l);
  const Value failure = b.Unary("log_plus_one", b.Neg(l.Scalar(1, b.dtype(u))));
  const Value trials = b.Unary("ceil", b.Div(b.Unary("log", u), b.BroadcastLike(failure, u)));
  SetResultAs(l, 0, b.Max(trials, b.Like(trials, 1.0)));
}

// cauchy_(self, median, sigma)
void Cauchy(Lowering& l) {
  Builder& b = l.b;
  if (Refused(l, 2)) return;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const Value u = OpenUniform(l);
  const Value angle = b.Binary("multiply", b.Binary("subtract", u, 0.5), M_PI);
  // tan as a quotient: StableHLO's own tangent is younger than some plugins.
  const Value tangent = b.Div(b.Unary("sine", angle), b.Unary("cosine", angle));
  SetResultAs(l, 0, b.Add(b.Mul(tangent, Parameter(l, 2, u)), Parameter(l, 1, u)));
}

// ---- trials with two outcomes
Value TrialsWith(Lowering& l, int64_t count, DType acc) { return UniformFrom(l.b, l.Random(count), acc); }

// bernoulli_.float(self, p), bernoulli.p(self, p)
void BernoulliFloat(Lowering& l) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  if (Refused(l, 1)) return;
  if (type.numel() == 0) return SetResultFill(l, 0, 0);
  const Value u = TrialsWith(l, type.numel(), DType::kF32);
  SetResultAs(l, 0, b.Cmp(Compare::kLt, u, Parameter(l, 1, u)));
}

// Argument p holds the probabilities: bernoulli(self), bernoulli_.Tensor(self, p), bernoulli.Tensor
void BernoulliTensor(Lowering& l, int p_arg) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  if (type.numel() == 0) return SetResultFill(l, 0, 0);
  const DType acc = SampleType(l.TypeOf(p_arg).dtype);
  const Value p = l.Tensor(p_arg, acc);
  const Value inside = b.And(b.Cmp(Compare::kGe, p, 0.0), b.Cmp(Compare::kLe, p, 1.0));
  TrapIf(l, b.Not(inside), ErrorKind::kRuntime,
         "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, "
         "please report an enhancement request to PyTorch.)");
  const Value u = b.Reshape(TrialsWith(l, type.numel(), acc), DimsOf(type));
  SetResultAs(l, 0, b.Cmp(Compare::kLt, u, b.BroadcastLike(p, u)));
}
void BernoulliSelf(Lowering& l) { BernoulliTensor(l, 0); }
void BernoulliOther(Lowering& l) { BernoulliTensor(l, 1); }

// native_dropout(input, p, train) -> (output, mask)
void Dropout(Lowering& l) {
  Builder& b = l.b;
  const TensorType type = l.ResultType(0);
  if (Refused(l, 1)) return;
  const Value x = l.Tensor(0);
  if (type.numel() == 0 || (!l.IsNone(2) && !l.Bool(2))) {
    l.SetResult(0, x);
    return SetResultFill(l, 1, 1);
  }
  const DType acc = SampleType(OpMathType(type.dtype));
  const Value keep = b.Sub(b.Constant(acc, 1.0), l.Scalar(1, acc));
  const Value u = b.Reshape(TrialsWith(l, type.numel(), acc), DimsOf(type));
  // Two results from one mask: without the barrier engines draw the random numbers twice.
  const Value mask = b.OptimizationBarrier(b.Cmp(Compare::kLt, u, b.BroadcastLike(keep, u)));
  // Everything dropped: 0, where 1 / keep would be infinite.
  const Value scale = b.Select(b.Cmp(Compare::kEq, keep, 0.0), b.Like(keep, 0.0), b.Div(b.Like(keep, 1.0), keep));
  const Value y = b.Convert(x, OpMathType(type.dtype));
  const Value scaled = b.Mul(y, b.BroadcastLike(b.Convert(scale, b.dtype(y)), y));
  SetResultAs(l, 0, b.Mul(scaled, b.Convert(mask, b.dtype(y))));
  SetResultAs(l, 1, mask);
}

constexpr Rule kRules[] = {
    {.name = "uniform_", .lower = Uniform, .runtime_floats = "from,to", .random = true},
    {.name = "uniform", .lower = Uniform, .runtime_floats = "from,to", .random = true},
    {.name = "normal_", .lower = Normal, .runtime_floats = "mean,std", .classify = ClassifyStd, .random = true},
    {.name = "normal_functional", .lower = Normal, .runtime_floats = "mean,std", .classify = ClassifyStd, .random = true},
    {.name = "normal.float_float",
     .lower = NormalOfSize,
     .runtime_floats = "mean,std",
     .classify = ClassifyStdFirst,
     .random = true},
    {.name = "normal.Tensor_float",
     .lower = NormalTensors,
     .runtime_floats = "std",
     .classify = ClassifyStdFirst,
     .random = true},
    {.name = "normal.float_Tensor", .lower = NormalTensors, .runtime_floats = "mean", .random = true},
    {.name = "normal.Tensor_Tensor", .lower = NormalTensors, .random = true},
    {.name = "log_normal_", .lower = LogNormal, .runtime_floats = "mean,std", .classify = ClassifyScale, .random = true},
    {.name = "log_normal", .lower = LogNormal, .runtime_floats = "mean,std", .classify = ClassifyScale, .random = true},
    {.name = "exponential_", .lower = Exponential, .runtime_floats = "lambd", .classify = ClassifyPositive, .random = true},
    {.name = "exponential", .lower = Exponential, .runtime_floats = "lambd", .classify = ClassifyPositive, .random = true},
    {.name = "geometric_", .lower = Geometric, .runtime_floats = "p", .classify = ClassifyInnerProbability, .random = true},
    {.name = "geometric", .lower = Geometric, .runtime_floats = "p", .classify = ClassifyInnerProbability, .random = true},
    {.name = "cauchy_", .lower = Cauchy, .runtime_floats = "median,sigma", .classify = ClassifyScale, .random = true},
    {.name = "cauchy", .lower = Cauchy, .runtime_floats = "median,sigma", .classify = ClassifyScale, .random = true},
    {.name = "bernoulli_.float",
     .lower = BernoulliFloat,
     .runtime_floats = "p",
     .classify = ClassifyProbability,
     .random = true},
    {.name = "bernoulli.p", .lower = BernoulliFloat, .runtime_floats = "p", .classify = ClassifyProbability, .random = true},
    {.name = "bernoulli", .lower = BernoulliSelf, .random = true},
    {.name = "bernoulli_.Tensor", .lower = BernoulliOther, .random = true},
    {.name = "bernoulli.Tensor", .lower = BernoulliOther, .random = true},
    {.name = "native_dropout", .lower = Dropout, .runtime_floats = "p", .classify = ClassifyProbability, .random = true},
};

}  // namespace

// One list out of the two files of the family.
std::span<const Rule> RandomRules() {
  static const std::vector<Rule>& rules = *[] {
    auto* all = new std::vector<Rule>(std::begin(kRules), std::end(kRules));
    all->insert(all->end(), SampleRules().begin(), SampleRules().end());
    return all;
  }();
  return rules;
}

}  // namespace tpu::lower
