// SPDX-License-Identifier: Apache-2.0
// Comparison, selection and changes of element type.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "elementwise.h"

namespace fake_pjrt {
namespace {

using Kind = Attr::Kind;

// ---- compare

std::string VerifyCompare(const Op& op) {
  const Type& a = op.operand_types[0];
  if (!(op.operand_types[1] == a)) return "operands are " + a.ToString() + " and " + op.operand_types[1].ToString();
  const std::string& direction = op.attr("comparison_direction").text;
  bool equality = direction == "EQ" || direction == "NE";
  if (!equality && direction != "LT" && direction != "LE" && direction != "GT" && direction != "GE")
    return "unknown direction " + direction;
  if (tpu::IsComplex(a.dtype) && !equality) return "complex numbers have no order";
  if (const Attr& type = op.attr("compare_type")) {
    const std::string& t = type.text;
    bool fits = t == "NOTYPE" || (tpu::IsFloat(a.dtype)     ? t == "FLOAT" || t == "TOTALORDER"
                                  : tpu::IsComplex(a.dtype) ? t == "FLOAT"
                                  : tpu::IsSigned(a.dtype)  ? t == "SIGNED"
                                                            : t == "UNSIGNED");
    if (!fits) return "compare_type " + t + " does not fit " + a.ToString();
  }
  return WrongResult(op, a.With(DType::kBool));
}

template <class T>
bool Compare(const T& a, const T& b, const std::string& direction) {
  if (direction == "EQ") return a == b;
  if (direction == "NE") return a != b;
  if constexpr (!Complex<T>) {
    if (direction == "LT") return a < b;
    if (direction == "LE") return a <= b;
    if (direction == "GT") return a > b;
    return a >= b;
  }
  return false;
}

Error EvalCompare(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  Tensor a = Widened(in[0]), b = Widened(in[1]), r = Tensor::Empty(interpreter.ResultType(op));
  const std::string& direction = op.attr("comparison_direction").text;
  bool total = op.attr("compare_type").text == "TOTALORDER";
  int64_t n = r.type.numel();
  VisitCompute(a.type.dtype, [&]<class T>() {
    for (int64_t i = 0; i < n; ++i) {
      const T x = a.As<T>()[i], y = b.As<T>()[i];
      if constexpr (Float<T>) {
        r.As<bool>()[i] = total ? Compare(TotalOrderKey(x), TotalOrderKey(y), direction) : Compare(x, y, direction);
      } else {
        r.As<bool>()[i] = Compare(x, y, direction);
      }
    }
  });
  out->push_back(r);
  return {};
}

// ---- select, clamp

std::string VerifySelect(const Op& op) {
  const Type &p = op.operand_types[0], &a = op.operand_types[1];
  if (p.dtype != DType::kBool) return "the predicate is " + p.ToString();
  if (!(op.operand_types[2] == a)) return "the alternatives are " + a.ToString() + " and " + op.operand_types[2].ToString();
  if (!p.dims.empty())
    if (std::string wrong = NeedSameDims(op, 0, a.dims); !wrong.empty()) return wrong;
  return WrongResult(op, a);
}

Error EvalSelect(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  Tensor r = Tensor::Empty(interpreter.ResultType(op));
  size_t item = tpu::ItemSize(r.type.dtype);
  int64_t n = r.type.numel(), step = in[0].type.dims.empty() ? 0 : 1;
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(r.bytes() + i * item, (in[0].As<bool>()[i * step] ? in[1] : in[2]).bytes() + i * item, item);
  out->push_back(r);
  return {};
}

std::string VerifyClamp(const Op& op) {
  const Type& x = op.operand_types[1];
  for (size_t i : {0, 2}) {
    if (op.operand_types[i].dtype != x.dtype) return "bounds of another element type";
    if (op.operand_types[i].dims.empty()) continue;
    if (std::string wrong = NeedSameDims(op, i, x.dims); !wrong.empty()) return wrong;
  }
  if (tpu::IsComplex(x.dtype)) return "complex numbers have no order";
  return WrongResult(op, x);
}

Error EvalClamp(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  Tensor lo = Widened(in[0]), x = Widened(in[1]), hi = Widened(in[2]);
  Type type = interpreter.ResultType(op);
  Tensor r = Tensor::Empty(type.With(tpu::OpMathType(type.dtype)));
  int64_t n = type.numel(), lo_step = lo.type.numel() == 1 ? 0 : 1, hi_step = hi.type.numel() == 1 ? 0 : 1;
  VisitCompute(x.type.dtype, [&]<class T>() {
    if constexpr (!Complex<T>) {
      for (int64_t i = 0; i < n; ++i) {
        T l = lo.As<T>()[i * lo_step], h = hi.As<T>()[i * hi_step], v = x.As<T>()[i];
        if constexpr (Float<T>)
          if (std::isnan(l) || std::isnan(h)) v = std::numeric_limits<T>::quiet_NaN();
        v = v < l ? l : v;
        r.As<T>()[i] = h < v ? h : v;
      }
    }
  });
  out->push_back(Narrowed(r, type.dtype));
  return {};
}

// ---- convert, bitcast_convert, reduce_precision

std::string VerifyConvert(const Op& op) { return NeedSameDims(op, 0, op.result_types[0].dims); }

template <class To, class From>
To ConvertValue(From x) {
  if constexpr (Complex<From> && Complex<To>) {
    return To(static_cast<typename To::value_type>(x.real()), static_cast<typename To::value_type>(x.imag()));
  } else if constexpr (Complex<From> && Bool<To>) {
    return x != From(0);
  } else if constexpr (Complex<From>) {
    return ConvertValue<To>(x.real());
  } else if constexpr (Complex<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (Bool<To>) {
    return x != From(0);
  } else if constexpr (Float<From> && Integer<To>) {  // saturates; NaN is 0
    if (std::isnan(x)) return 0;
    constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From kHigh = static_cast<From>(std::numeric_limits<To>::max());  // may round up to max + 1
    if (x <= kLow) return std::numeric_limits<To>::min();
    if (x >= kHigh) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

Error EvalConvert(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  Type type = interpreter.ResultType(op);
  Tensor a = Widened(in[0]), r = Tensor::Empty(type.With(tpu::OpMathType(type.dtype)));
  int64_t n = type.numel();
  VisitCompute(a.type.dtype, [&]<class From>() {
    VisitCompute(type.dtype, [&]<class To>() {
      for (int64_t i = 0; i < n; ++i) r.As<To>()[i] = ConvertValue<To>(a.As<From>()[i]);
    });
  });
  out->push_back(Narrowed(r, type.dtype));
  return {};
}

std::string VerifyBitcast(const Op& op) {
  const Type &a = op.operand_types[0], &r = op.result_types[0];
  if (a.dtype == r.dtype) return NeedSameDims(op, 0, r.dims);
  if (a.dtype == DType::kBool || r.dtype == DType::kBool || tpu::IsComplex(a.dtype) || tpu::IsComplex(r.dtype))
    return "not defined between " + a.ToString() + " and " + r.ToString();
  Dims expected = a.dims;
  size_t from = tpu::ItemSize(a.dtype), to = tpu::ItemSize(r.dtype);
  if (from > to) expected.push_back(static_cast<int64_t>(from / to));
  if (from < to) {
    if (expected.empty() || expected.back() != static_cast<int64_t>(to / from))
      return "the last dimension does not hold one element";
    expected.pop_back();
  }
  return WrongResult(op, a.With(r.dtype).With(expected));
}

Error EvalBitcast(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  out->push_back({interpreter.ResultType(op), in[0].memory});
  return {};
}

std::string VerifyReducePrecision(const Op& op) {
  if (!tpu::IsFloat(op.operand_types[0].dtype)) return "not defined for " + op.operand_types[0].ToString();
  if (op.number("exponent_bits") < 1 || op.number("mantissa_bits") < 0) return "bad bit counts";
  return WrongResult(op, op.operand_types[0]);
}

double RoundToFormat(double x, int exponent_bits, int mantissa_bits) {
  if (x == 0 || !std::isfinite(x)) return x;
  int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = std::ilogb(x);
  double ulp = std::ldexp(1.0, exponent - mantissa_bits);
  double rounded = std::nearbyint(x / ulp) * ulp;
  if (std::ilogb(rounded) > bias) return std::copysign(INFINITY, x);
  if (std::ilogb(rounded) < 1 - bias) return std::copysign(0.0, x);  // no subnormals
  return rounded;
}

Error EvalReducePrecision(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  Tensor a = Widened(in[0]);
  Type type = interpreter.ResultType(op);
  Tensor r = Tensor::Empty(a.type);
  int e = static_cast<int>(op.number("exponent_bits")), m = static_cast<int>(op.number("mantissa_bits"));
  VisitCompute(a.type.dtype, [&]<class T>() {
    if constexpr (Float<T>)
      for (int64_t i = 0; i < type.numel(); ++i) r.As<T>()[i] = static_cast<T>(RoundToFormat(a.As<T>()[i], e, m));
  });
  out->push_back(Narrowed(r, type.dtype));
  return {};
}

}  // namespace

const std::vector<OpDef>& ConvertOps() {
  static const auto* ops = new std::vector<OpDef>{
      {"stablehlo.bitcast_convert", 1, 1, 1, 0, {}, VerifyBitcast, EvalBitcast, true},
      {"stablehlo.clamp", 3, 3, 1, 0, {}, VerifyClamp, EvalClamp, true},
      {"stablehlo.compare",
       2,
       2,
       1,
       0,
       {{"comparison_direction", Kind::kEnum, true, "stablehlo.comparison_direction"},
        {"compare_type", Kind::kEnum, false, "stablehlo.comparison_type"}},
       VerifyCompare,
       EvalCompare,
       true},
      {"stablehlo.convert", 1, 1, 1, 0, {}, VerifyConvert, EvalConvert, true},
      {"stablehlo.reduce_precision",
       1,
       1,
       1,
       0,
       {{"exponent_bits", Kind::kInt, true, "i32"}, {"mantissa_bits", Kind::kInt, true, "i32"}},
       VerifyReducePrecision,
       EvalReducePrecision,
       true},
      {"stablehlo.select", 3, 3, 1, 0, {}, VerifySelect, EvalSelect, true},
  };
  return *ops;
}

}  // namespace fake_pjrt
