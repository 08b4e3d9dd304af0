// SPDX-License-Identifier: Apache-2.0
// Elementwise operations.
#include <algorithm>

#include "hlo/builder.h"
#include "hlo/literal.h"

namespace tpu::hlo {
namespace {

bool IsPredicate(std::string_view op) {
  return op == "is_finite" || op == "chlo.is_inf" || op == "chlo.is_pos_inf" || op == "chlo.is_neg_inf";
}

std::string Describe(const TensorType& a, const TensorType& b) { return a.ToHlo() + " and " + b.ToHlo(); }

}  // namespace

Value Builder::Unary(std::string_view op, Value x) {
  if (!Usable(x)) return {};
  TensorType t = type(x);
  if (op == "abs" || op == "real" || op == "imag") {
    if (op != "abs" && !IsComplex(t.dtype)) return Internal(std::string(op) + " of " + t.ToHlo());
    t.dtype = RealType(t.dtype);
  } else if (IsPredicate(op)) {
    t.dtype = DType::kBool;
  }
  return Emit(op, {x}, t);
}

Value Builder::Binary(std::string_view op, Value x, Value y) {
  if (!Usable({x, y})) return {};
  if (!(type(x) == type(y))) return Internal(std::string(op) + " of " + Describe(type(x), type(y)));
  return Emit(op, {x, y}, type(x));
}

Value Builder::Cmp(Compare direction, Value x, Value y, bool total_order) {
  static constexpr const char* kNames[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  if (!Usable({x, y})) return {};
  if (!(type(x) == type(y))) return Internal("compare of " + Describe(type(x), type(y)));
  DType d = dtype(x);
  const char* kind = IsFloat(d) || IsComplex(d) ? (total_order ? "TOTALORDER" : "FLOAT") : IsSigned(d) ? "SIGNED" : "UNSIGNED";
  std::string attributes = "comparison_direction = #stablehlo<comparison_direction ";
  attributes += kNames[static_cast<int>(direction)];
  attributes += ">, compare_type = #stablehlo<comparison_type ";
  attributes += kind;
  attributes += ">";
  return Emit("compare", {x, y}, type(x).With(DType::kBool), attributes);
}

Value Builder::Select(Value pred, Value on_true, Value on_false) {
  if (!Usable({pred, on_true, on_false})) return {};
  if (!(type(on_true) == type(on_false))) return Internal("select of " + Describe(type(on_true), type(on_false)));
  if (dtype(pred) != DType::kBool || (rank(pred) != 0 && !type(pred).SameDims(type(on_true)))) {
    return Internal("select by " + Describe(type(pred), type(on_true)));
  }
  if (on_true.id == on_false.id) return on_true;
  return Emit("select", {pred, on_true, on_false}, type(on_true));
}

Value Builder::Clamp(Value low, Value x, Value high) {
  if (!Usable({low, x, high})) return {};
  for (Value bound : {low, high}) {
    if (dtype(bound) != dtype(x) || (rank(bound) != 0 && !type(bound).SameDims(type(x)))) {
      return Internal("clamp of " + Describe(type(bound), type(x)));
    }
  }
  return Emit("clamp", {low, x, high}, type(x));
}

Value Builder::Convert(Value x, DType to) {
  if (!Usable(x)) return {};
  DType from = dtype(x);
  if (from == to) return x;
  // Spelled out: plugins differ in what a direct conversion of NaN or of a complex number to i1 does.
  if (to == DType::kBool) return Cmp(Compare::kNe, x, Like(x, 0));
  if (IsComplex(from) && !IsComplex(to)) return Convert(Real(x), to);
  if (IsComplex(to) && !IsComplex(from)) {
    Value real = Convert(x, RealType(to));
    return Complex(real, Like(real, 0));
  }
  return Emit("convert", {x}, type(x).With(to));
}

Value Builder::BitcastConvert(Value x, DType to) {
  if (!Usable(x)) return {};
  DType from = dtype(x);
  if (from == to) return x;
  TensorType t = type(x).With(to);
  auto from_size = static_cast<int64_t>(ItemSize(from)), to_size = static_cast<int64_t>(ItemSize(to));
  bool fits = from != DType::kBool && to != DType::kBool && !IsComplex(from) && !IsComplex(to);
  if (fits && to_size < from_size) {
    fits = t.rank < kMaxRank;
    if (fits) t.Append(from_size / to_size);
  } else if (fits && to_size > from_size) {
    fits = t.rank > 0 && t.dims[t.rank - 1].size() * from_size == to_size;
    if (fits) t.dims[--t.rank] = Dim();
  }
  if (!fits) return Internal("bitcast_convert of " + type(x).ToHlo() + " to " + HloName(to));
  return Emit("bitcast_convert", {x}, t);
}

Value Builder::ReducePrecision(Value x, int exponent_bits, int mantissa_bits) {
  if (!Usable(x)) return {};
  std::string attributes = "exponent_bits = ";
  AppendInt(&attributes, exponent_bits);
  attributes += " : i32, mantissa_bits = ";
  AppendInt(&attributes, mantissa_bits);
  attributes += " : i32";
  return Emit("reduce_precision", {x}, type(x), attributes);
}

Value Builder::Complex(Value real, Value imag) {
  if (!Usable({real, imag})) return {};
  DType d = dtype(real);
  if (!(type(real) == type(imag)) || (d != DType::kF32 && d != DType::kF64)) {
    return Internal("complex of " + Describe(type(real), type(imag)));
  }
  return Emit("complex", {real, imag}, type(real).With(d == DType::kF32 ? DType::kC64 : DType::kC128));
}

Value Builder::OptimizationBarrier(Value x) {
  if (!Usable(x)) return {};
  return Emit("optimization_barrier", {x}, type(x));
}

Value Builder::Iota(const TensorType& t, int dimension) {
  if (!ok()) return {};
  if (dimension < 0 || dimension >= t.rank) return Internal("iota of " + t.ToHlo());
  TensorType plain = TensorType::Of(t.dtype, Ints(t.begin(), t.end()));
  std::string attributes = "iota_dimension = ";
  AppendInt(&attributes, dimension);
  attributes += " : i64";
  return Emit("iota", {}, plain, attributes);
}

}  // namespace tpu::hlo
