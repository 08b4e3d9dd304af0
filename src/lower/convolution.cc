// SPDX-License-Identifier: Apache-2.0
// Convolutions of one to three spatial dimensions, plain and transposed, and their gradients.
#include "lower/convolution.h"

namespace tpu::lower {
namespace {

// A list with one number stands for all dimensions.
Ints PerDimension(const Ints& list, size_t n) { return list.size() == 1 ? Ints(n, list[0]) : list; }

Ints SizesOf(const TensorType& t) { return Ints(t.begin(), t.end()); }

// The type that is multiplied: narrow floats where the engine has fast products of them, else what sums are kept in.
DType Multiplied(const Lowering& l, DType dtype) { return l.profile.narrow_convolution ? dtype : OpMathType(dtype); }

struct Arguments {
  Correlation c;
  bool transposed = false;
};

// `first`: position of stride; padding, dilation, transposed, output_padding and groups follow. Output padding shows in
// the result's size alone. `in` and `out`: what the convolution reads and makes.
Arguments ReadArguments(const Lowering& l, int first, const TensorType& in, const TensorType& out, const TensorType& weight) {
  Arguments a;
  const size_t n = weight.rank - 2;
  a.transposed = l.Bool(first + 3);
  a.c.stride = PerDimension(l.IntList(first), n);
  a.c.padding = PerDimension(l.IntList(first + 1), n);
  a.c.dilation = PerDimension(l.IntList(first + 2), n);
  a.c.groups = l.Int(first + 5);
  a.c.x = SizesOf(a.transposed ? out : in);
  a.c.y = SizesOf(a.transposed ? in : out);
  a.c.w = SizesOf(weight);
  a.c.precision = PrecisionFor(l, weight.dtype);
  return a;
}

// Integers and complex numbers: core decomposes or refuses them before a backend sees them.
bool CanConvolve(Lowering& l, const TensorType& weight) {
  if (IsFloat(weight.dtype) && weight.rank >= 3 && weight.rank <= 5) return true;
  l.Unsupported("a convolution of this type or rank");
  return false;
}

Value AddBias(Builder& b, Value y, Value bias) { return b.Add(y, b.BroadcastInDim(bias, b.dims(y), {1})); }

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
void Convolution(Lowering& l) {
  Builder& b = l.b;
  const TensorType input = l.TypeOf(0), weight = l.TypeOf(1), result = l.ResultType(0);
  if (!CanConvolve(l, weight)) return;
  const DType acc = OpMathType(result.dtype), multiplied = Multiplied(l, result.dtype);
  const auto [c, transposed] = ReadArguments(l, 3, input, result, weight);
  Value y;
  if (input.numel() == 0 || weight.numel() == 0 || result.numel() == 0) {
    y = b.Constant(result.With(acc), 0);
  } else {
    const Image x = ImageOf(l, 0, multiplied);
    const Value w = l.Tensor(1, multiplied);
    const bool last = ResultFeaturesLast(l, 0);
    y = transposed ? CorrelateInputGrad(l, c, x, w, last) : Correlate(l, c, x, w, last);
  }
  SetResultAs(l, 0, l.IsNone(2) ? y : AddBias(b, y, l.Tensor(2, acc)));
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
// groups, output_mask)
void ConvolutionBackward(Lowering& l) {
  const TensorType grad = l.TypeOf(0), input = l.TypeOf(1), weight = l.TypeOf(2);
  if (!CanConvolve(l, weight)) return;
  const DType multiplied = Multiplied(l, weight.dtype);
  const auto [c, transposed] = ReadArguments(l, 4, input, grad, weight);
  if (l.ResultDefined(2)) {
    const DType acc = OpMathType(grad.dtype);
    SetResultAs(l, 2, ReduceSum(l, l.Tensor(0, acc), OtherDims(grad.rank, {1})));
  }
  if (grad.numel() == 0 || input.numel() == 0 || weight.numel() == 0) {
    for (int k = 0; k < 2; ++k)
      if (l.ResultDefined(k)) SetResultFill(l, k, 0);
    return;
  }
  const Image g = ImageOf(l, 0, multiplied);
  if (l.ResultDefined(0)) {
    const Value w = l.Tensor(2, multiplied);
    const bool last = ResultFeaturesLast(l, 0);
    SetResultAs(l, 0, transposed ? Correlate(l, c, g, w, last) : CorrelateInputGrad(l, c, g, w, last));
  }
  if (l.ResultDefined(1)) {
    const Image x = ImageOf(l, 1, multiplied);
    SetResultAs(l, 1, transposed ? CorrelateWeightGrad(l, c, g, x) : CorrelateWeightGrad(l, c, x, g));
  }
}

constexpr Rule kRules[] = {
    {.name = "convolution", .lower = Convolution, .precision = true, .keeps_channels_last = true},
    {.name = "convolution_backward", .lower = ConvolutionBackward, .precision = true},
};

}  // namespace

std::span<const Rule> ConvolutionRules() { return kRules; }

}  // namespace tpu::lower
