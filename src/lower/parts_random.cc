// SPDX-License-Identifier: Apache-2.0
// Random words to floating-point numbers.
#include <initializer_list>

#include "lower/parts.h"

namespace tpu::lower {
namespace {

// word >> shift as a float; the sign bit is clear, and conversions from signed integers are the fast ones.
Value HighBits(Builder& b, Value word, int shift, DType dtype) {
  const Value bits = b.Binary("shift_right_logical", word, shift);
  return b.Convert(b.BitcastConvert(bits, DType::kI32), dtype);
}

// The words made by a loop of their own where the engine heeds barriers: fused with logarithms the integer rounds of
// Philox are not vectorised, which doubles the whole.
Lowering::RandomWords Settled(Builder& b, const Lowering::RandomWords& words, DType dtype) {
  Lowering::RandomWords settled = words;
  settled.w[0] = b.OptimizationBarrier(words.w[0]);
  if (dtype == DType::kF64) settled.w[1] = b.OptimizationBarrier(words.w[1]);
  return settled;
}

// Horner's rule, highest coefficient first.
Value Polynomial(Builder& b, Value x, std::initializer_list<double> coefficients) {
  Value sum;
  for (double c : coefficients) sum = sum.valid() ? b.Add(b.Mul(sum, x), b.Like(x, c)) : b.Like(x, c);
  return sum;
}

// Lower-tail quantile of the standard normal distribution for p in (0, 0.5], Wichura's algorithm AS 241: only the 15 %
// of the elements in the tails need the logarithm, and the tails are exact to the last bits of p (an inverse error
// function of 2p - 1 has only 24 bits there).
Value LowerQuantileF32(Builder& b, Value p) {
  const Value q = b.Sub(p, b.Like(p, 0.5));
  const Value s = b.Sub(b.Like(p, 0.180625), b.Mul(q, q));
  const Value center = b.Div(b.Mul(q, Polynomial(b, s, {5.9109374720e1, 1.5929113202e2, 5.0434271938e1, 3.3871327179})),
                             Polynomial(b, s, {6.7187563600e1, 7.8757757664e1, 1.7895169469e1, 1.0}));
  const Value r = b.Sub(b.Unary("sqrt", b.Neg(b.Unary("log", p))), b.Like(p, 1.6));
  const Value tail = b.Div(Polynomial(b, r, {1.7023821103e-1, 1.3067284816, 2.7568153900, 1.4234372777}),
                           Polynomial(b, r, {1.2021132975e-1, 7.3700164250e-1, 1.0}));
  return b.Select(b.Cmp(Compare::kGe, q, -0.425), center, b.Neg(tail));
}

Value LowerQuantileF64(Builder& b, Value p) {
  const Value q = b.Sub(p, b.Like(p, 0.5));
  const Value s = b.Sub(b.Like(p, 0.180625), b.Mul(q, q));
  const Value center = b.Div(
      b.Mul(q, Polynomial(b, s,
                          {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
                           1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080})),
      Polynomial(b, s,
                 {5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
                  5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0}));
  const Value root = b.Unary("sqrt", b.Neg(b.Unary("log", p)));
  const Value near = b.Sub(root, b.Like(p, 1.6));
  const Value near_tail = b.Div(
      Polynomial(b, near,
                 {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
                  3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734}),
      Polynomial(b, near,
                 {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
                  6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0}));
  const Value far = b.Sub(root, b.Like(p, 5.0));
  const Value far_tail = b.Div(
      Polynomial(b, far,
                 {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
                  2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720}),
      Polynomial(b, far,
                 {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
                  1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0}));
  const Value tail = b.Select(b.Cmp(Compare::kLe, root, 5.0), near_tail, far_tail);
  return b.Select(b.Cmp(Compare::kGe, q, -0.425), center, b.Neg(tail));
}

}  // namespace

Value UniformFrom(Builder& b, const Lowering::RandomWords& words, DType dtype, int bits) {
  if (dtype == DType::kF64) {
    const Value high = HighBits(b, words.w[0], 5, dtype), low = HighBits(b, words.w[1], 6, dtype);
    return b.Binary("multiply", b.Add(b.Binary("multiply", high, 0x1p26), low), 0x1p-53);
  }
  return b.Binary("multiply", HighBits(b, words.w[0], 32 - bits, dtype), 1.0 / static_cast<double>(1 << bits));
}

Value OpenUniformFrom(Builder& b, const Lowering::RandomWords& given, DType dtype) {
  const Lowering::RandomWords words = Settled(b, given, dtype);
  if (dtype == DType::kF64) {
    const Value high = HighBits(b, words.w[0], 6, dtype), low = HighBits(b, words.w[1], 6, dtype);
    const Value k = b.Add(b.Binary("multiply", high, 0x1p26), low);
    return b.Binary("multiply", b.Binary("add", k, 0.5), 0x1p-52);
  }
  // 23 bits: with the half they are all of an f32's significand.
  return b.Binary("multiply", b.Binary("add", HighBits(b, words.w[0], 9, dtype), 0.5), 0x1p-23);
}

Value NormalFrom(Builder& b, const Lowering::RandomWords& given, DType dtype) {
  const Lowering::RandomWords words = Settled(b, given, dtype);
  // One bit is the sign, all the others the tail probability.
  const Value positive = b.Cmp(Compare::kNe, b.Binary("and", words.w[0], 1), 0);
  Value k = HighBits(b, words.w[0], 1, dtype), lower;
  if (dtype == DType::kF64) {
    k = b.Add(b.Binary("multiply", k, 0x1p21), HighBits(b, words.w[1], 11, dtype));
    lower = LowerQuantileF64(b, b.Binary("multiply", b.Binary("add", k, 0.5), 0x1p-53));
  } else {
    lower = LowerQuantileF32(b, b.Binary("multiply", b.Binary("add", k, 0.5), 0x1p-32));
  }
  return b.Select(positive, b.Neg(lower), lower);
}

}  // namespace tpu::lower
