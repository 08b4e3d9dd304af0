// SPDX-License-Identifier: Apache-2.0
// The same bytes as another element type. StableHLO's bitcast_convert refuses bool and complex, so both go through a
// carrier: bytes for bool, pairs of reals for complex.
#include "lower/view_access.h"

namespace tpu::lower {
namespace {

using hlo::Ints;
using hlo::Value;

DType Carrier(DType d) { return d == DType::kBool ? DType::kU8 : RealType(d); }

// [..., n] -> [..., n / r, r]. Flat where the rank or the size does not allow it.
Value SplitLast(hlo::Builder& b, Value x, int64_t r) {
  if (b.rank(x) == 0 || b.rank(x) == kMaxRank || b.dim(x, b.rank(x) - 1) % r != 0) x = b.Flatten(x);
  Ints dims = b.dims(x);
  dims.back() /= r;
  dims.push_back(r);
  return b.Reshape(x, dims);
}

Value ToCarrier(hlo::Builder& b, Value x) {
  DType d = b.dtype(x);
  if (d == DType::kBool) return b.Convert(x, DType::kU8);
  if (!IsComplex(d)) return x;
  if (b.rank(x) == kMaxRank || b.rank(x) == 0) x = b.Flatten(x);
  Ints dims = b.dims(x), pair = dims;
  pair.push_back(1);
  dims.back() *= 2;
  return b.Reshape(b.Concatenate({b.Reshape(b.Real(x), pair), b.Reshape(b.Imag(x), pair)}, b.rank(x)), dims);
}

Value FromCarrier(hlo::Builder& b, Value x, DType d) {
  if (d == DType::kBool) return b.Convert(x, d);
  if (!IsComplex(d)) return x;
  x = SplitLast(b, x, 2);
  int last = b.rank(x) - 1;
  Ints dims = b.dims(x);
  dims.pop_back();
  return b.Complex(b.Reshape(b.SliceDim(x, last, 0, 1), dims), b.Reshape(b.SliceDim(x, last, 1, 2), dims));
}

Value Bitcast(hlo::Builder& b, Value x, DType to) {
  auto from_size = static_cast<int64_t>(ItemSize(b.dtype(x))), to_size = static_cast<int64_t>(ItemSize(to));
  if (to_size > from_size) return b.BitcastConvert(SplitLast(b, x, to_size / from_size), to);
  if (to_size == from_size) return b.BitcastConvert(x, to);
  if (b.rank(x) == kMaxRank || b.rank(x) == 0) x = b.Flatten(x);
  Ints dims = b.dims(x);
  dims.back() *= from_size / to_size;
  return b.Reshape(b.BitcastConvert(x, to), dims);
}

}  // namespace

Value ReinterpretValue(hlo::Builder& b, Value base, DType dtype) {
  if (!base.valid() || b.dtype(base) == dtype) return base;
  TensorType to = graph::Reinterpret(b.type(base), dtype);
  if (to.dtype == DType::kInvalid) return b.Internal("the base's bytes do not divide into elements of the view");
  Value x = FromCarrier(b, Bitcast(b, ToCarrier(b, base), Carrier(dtype)), dtype);
  return b.Reshape(x, Ints(to.begin(), to.end()));
}

}  // namespace tpu::lower
