// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <type_traits>

#include "elementwise.h"
#include "special_math.h"

namespace fake_pjrt {
namespace {

// A function object whose expression is the same for all types that `concept_name` admits.
#define UNARY(name, concept_name, expression) \
  struct name {                               \
    template <concept_name T>                 \
    static T Apply(T x) {                     \
      return static_cast<T>(expression);      \
    }                                         \
  };

struct Abs {
  template <Float T>
  static T Apply(T x) {
    return std::fabs(x);
  }
  template <std::signed_integral T>
  static T Apply(T x) {
    return x < 0 ? static_cast<T>(-static_cast<uint64_t>(x)) : x;
  }
  template <Complex T>
  static typename T::value_type Apply(T x) {
    return std::abs(x);
  }
};
struct Negate {
  template <Number T>
  static T Apply(T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(-static_cast<uint64_t>(x));
    else
      return -x;
  }
};
struct Sign {
  template <class T>
    requires(std::signed_integral<T> || Real<T>)
  static T Apply(T x) {
    if constexpr (Complex<T>) {
      auto magnitude = std::abs(x);
      return magnitude == 0 ? T(0) : x / magnitude;
    } else if constexpr (Float<T>) {
      return std::isnan(x) || x == 0 ? x : std::copysign(T(1), x);
    } else {
      return x > 0 ? T(1) : x == 0 ? T(0) : T(-1);
    }
  }
};
struct Not {
  template <std::integral T>
  static T Apply(T x) {
    if constexpr (Bool<T>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};
template <class T>
using Unsigned = std::make_unsigned_t<T>;
UNARY(PopulationCount, Integer, std::popcount(static_cast<Unsigned<T>>(x)))
UNARY(LeadingZeros, Integer, std::countl_zero(static_cast<Unsigned<T>>(x)))

UNARY(Exp, Real, std::exp(x))
UNARY(Log, Real, std::log(x))
UNARY(Sin, Real, std::sin(x))
UNARY(Cos, Real, std::cos(x))
UNARY(Tan, Real, std::tan(x))
UNARY(Tanh, Real, std::tanh(x))
UNARY(Sqrt, Real, std::sqrt(x))
UNARY(Rsqrt, Real, T(1) / std::sqrt(x))
UNARY(Cbrt, Float, std::cbrt(x))
UNARY(Logistic, Real, T(1) / (T(1) + std::exp(-x)))
UNARY(Floor, Float, std::floor(x))
UNARY(Ceil, Float, std::ceil(x))
UNARY(RoundAfz, Float, std::round(x))
UNARY(RoundEven, Float, std::nearbyint(x))
struct Expm1 {
  template <Real T>
  static T Apply(T x) {
    if constexpr (Complex<T>)
      return std::exp(x) - T(1);
    else
      return std::expm1(x);
  }
};
struct Log1p {
  template <Real T>
  static T Apply(T x) {
    if constexpr (Complex<T>)
      return std::log(x + T(1));
    else
      return std::log1p(x);
  }
};
struct RealPart {
  template <Real T>
  static auto Apply(T x) {
    return std::real(x);
  }
};
struct ImagPart {
  template <Real T>
  static auto Apply(T x) {
    return std::imag(x);
  }
};
struct IsFinite {
  template <Float T>
  static bool Apply(T x) {
    return std::isfinite(x);
  }
};

UNARY(Acos, Real, std::acos(x))
UNARY(Acosh, Real, std::acosh(x))
UNARY(Asin, Real, std::asin(x))
UNARY(Asinh, Real, std::asinh(x))
UNARY(Atan, Real, std::atan(x))
UNARY(Atanh, Real, std::atanh(x))
UNARY(Cosh, Real, std::cosh(x))
UNARY(Sinh, Real, std::sinh(x))
UNARY(Erf, Float, std::erf(x))
UNARY(Erfc, Float, std::erfc(x))
UNARY(ErfInverse, Float, ErfInv(x))
UNARY(Lgamma, Float, std::lgamma(x))
UNARY(DigammaOp, Float, Digamma(x))
UNARY(BesselI1eOp, Float, BesselI1e(x))
UNARY(Square, Real, x* x)
struct Conj {
  template <Number T>
  static T Apply(T x) {
    if constexpr (Complex<T>)
      return std::conj(x);
    else
      return x;
  }
};
struct IsInf {
  template <Float T>
  static bool Apply(T x) {
    return std::isinf(x);
  }
};
struct IsPosInf {
  template <Float T>
  static bool Apply(T x) {
    return std::isinf(x) && x > 0;
  }
};
struct IsNegInf {
  template <Float T>
  static bool Apply(T x) {
    return std::isinf(x) && x < 0;
  }
};
#undef UNARY

}  // namespace

const std::vector<OpDef>& UnaryOps() {
  const std::vector<AttrSpec> accuracy = {{"result_accuracy", Attr::Kind::kStruct, false, "stablehlo.result_accuracy"}};
  static const auto* ops = new std::vector<OpDef>{
      UnaryOp<Abs>("stablehlo.abs"),
      UnaryOp<Cbrt>("stablehlo.cbrt", accuracy),
      UnaryOp<Ceil>("stablehlo.ceil"),
      UnaryOp<LeadingZeros>("stablehlo.count_leading_zeros"),
      UnaryOp<Cos>("stablehlo.cosine", accuracy),
      UnaryOp<Exp>("stablehlo.exponential", accuracy),
      UnaryOp<Expm1>("stablehlo.exponential_minus_one", accuracy),
      UnaryOp<Floor>("stablehlo.floor"),
      UnaryOp<ImagPart>("stablehlo.imag"),
      UnaryOp<IsFinite>("stablehlo.is_finite"),
      UnaryOp<Log>("stablehlo.log", accuracy),
      UnaryOp<Log1p>("stablehlo.log_plus_one", accuracy),
      UnaryOp<Logistic>("stablehlo.logistic", accuracy),
      UnaryOp<Negate>("stablehlo.negate"),
      UnaryOp<Not>("stablehlo.not"),
      UnaryOp<PopulationCount>("stablehlo.popcnt"),
      UnaryOp<RealPart>("stablehlo.real"),
      UnaryOp<RoundAfz>("stablehlo.round_nearest_afz"),
      UnaryOp<RoundEven>("stablehlo.round_nearest_even"),
      UnaryOp<Rsqrt>("stablehlo.rsqrt", accuracy),
      UnaryOp<Sign>("stablehlo.sign"),
      UnaryOp<Sin>("stablehlo.sine", accuracy),
      UnaryOp<Sqrt>("stablehlo.sqrt", accuracy),
      UnaryOp<Tan>("stablehlo.tan", accuracy),
      UnaryOp<Tanh>("stablehlo.tanh", accuracy),
      UnaryOp<Acos>("chlo.acos"),
      UnaryOp<Acosh>("chlo.acosh"),
      UnaryOp<Asin>("chlo.asin"),
      UnaryOp<Asinh>("chlo.asinh"),
      UnaryOp<Atan>("chlo.atan"),
      UnaryOp<Atanh>("chlo.atanh"),
      UnaryOp<BesselI1eOp>("chlo.bessel_i1e"),
      UnaryOp<Conj>("chlo.conj"),
      UnaryOp<Cosh>("chlo.cosh"),
      UnaryOp<DigammaOp>("chlo.digamma"),
      UnaryOp<Erf>("chlo.erf"),
      UnaryOp<ErfInverse>("chlo.erf_inv"),
      UnaryOp<Erfc>("chlo.erfc"),
      UnaryOp<IsInf>("chlo.is_inf"),
      UnaryOp<IsNegInf>("chlo.is_neg_inf"),
      UnaryOp<IsPosInf>("chlo.is_pos_inf"),
      UnaryOp<Lgamma>("chlo.lgamma"),
      UnaryOp<Sinh>("chlo.sinh"),
      UnaryOp<Square>("chlo.square"),
      UnaryOp<Tan>("chlo.tan"),
  };
  return *ops;
}

}  // namespace fake_pjrt
