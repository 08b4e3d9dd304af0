// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <type_traits>

#include "elementwise.h"
#include "special_math.h"

namespace fake_pjrt {
namespace {

template <class T>
inline constexpr int kBits = static_cast<int>(sizeof(T)) * 8;

struct Add {
  template <class T>
  static T Apply(T a, T b) {
    if constexpr (Bool<T>)
      return a || b;
    else if constexpr (Integer<T>)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
};
struct Subtract {
  template <Number T>
  static T Apply(T a, T b) {
    if constexpr (Integer<T>)
      return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    else
      return a - b;
  }
};
struct Multiply {
  template <class T>
  static T Apply(T a, T b) {
    if constexpr (Bool<T>)
      return a && b;
    else if constexpr (Integer<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};
struct Divide {
  template <Number T>
  static T Apply(T a, T b) {
    if constexpr (Integer<T>) {
      if (b == 0) return static_cast<T>(-1);  // as XLA does
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return static_cast<T>(-static_cast<uint64_t>(a));
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};
struct Remainder {
  template <class T>
    requires(Integer<T> || Float<T>)
  static T Apply(T a, T b) {
    if constexpr (Integer<T>) {
      if (b == 0) return a;
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return 0;
      return static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};
struct Power {
  template <Number T>
  static T Apply(T a, T b) {
    if constexpr (Integer<T>) {
      if constexpr (std::is_signed_v<T>)
        if (b < 0) return a == 1 ? T(1) : a == -1 ? (b % 2 ? T(-1) : T(1)) : T(0);
      uint64_t base = static_cast<uint64_t>(a), result = 1;
      for (auto e = static_cast<std::make_unsigned_t<T>>(b); e; e >>= 1) {
        if (e & 1) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    } else {
      return std::pow(a, b);
    }
  }
};
template <class T>
concept Ordered = Bool<T> || Integer<T> || Float<T>;
template <bool kMax>
struct Extremum {
  template <Ordered T>
  static T Apply(T a, T b) {
    if constexpr (Float<T>) {
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
      if (a == b) return kMax == std::signbit(a) ? b : a;  // -0 < +0
    }
    return kMax ? (a < b ? b : a) : (b < a ? b : a);
  }
};
struct Atan2 {
  template <Real T>
  static T Apply(T a, T b) {
    if constexpr (Complex<T>) {
      T i(0, 1);
      return -i * std::log((b + i * a) / std::sqrt(a * a + b * b));
    } else {
      return std::atan2(a, b);
    }
  }
};
#define LOGICAL(name, operator_)            \
  struct name {                             \
    template <std::integral T>              \
    static T Apply(T a, T b) {              \
      return static_cast<T>(a operator_ b); \
    }                                       \
  };
LOGICAL(And, &)
LOGICAL(Or, |)
LOGICAL(Xor, ^)
#undef LOGICAL
struct ShiftLeft {
  template <Integer T>
  static T Apply(T a, T b) {
    auto n = static_cast<std::make_unsigned_t<T>>(b);
    return n >= kBits<T> ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << n);
  }
};
struct ShiftRightLogical {
  template <Integer T>
  static T Apply(T a, T b) {
    auto n = static_cast<std::make_unsigned_t<T>>(b);
    return n >= kBits<T> ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) >> n);
  }
};
struct ShiftRightArithmetic {
  template <Integer T>
  static T Apply(T a, T b) {
    auto n = static_cast<std::make_unsigned_t<T>>(b);
    return static_cast<T>(static_cast<std::make_signed_t<T>>(a) >> (n >= kBits<T> ? kBits<T> - 1 : static_cast<int>(n)));
  }
};
struct MakeComplex {
  template <Float T>
  static std::complex<T> Apply(T a, T b) {
    return {a, b};
  }
};
struct NextAfter {
  template <Float T>
  static T Apply(T a, T b) {
    return std::nextafter(a, b);
  }
};
struct PolygammaOp {
  template <Float T>
  static T Apply(T n, T x) {
    return static_cast<T>(Polygamma(n, x));
  }
};
struct ZetaOp {
  template <Float T>
  static T Apply(T x, T q) {
    return static_cast<T>(Zeta(x, q));
  }
};
struct MulHigh {
  template <Integer T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<__int128>(a) * static_cast<__int128>(b) >> kBits<T>);
  }
};

}  // namespace

const std::vector<OpDef>& BinaryOps() {
  static const auto* ops = new std::vector<OpDef>{
      BinaryOp<Add>("stablehlo.add"),
      BinaryOp<And>("stablehlo.and"),
      BinaryOp<Atan2>("stablehlo.atan2"),
      BinaryOp<MakeComplex>("stablehlo.complex"),
      BinaryOp<Divide>("stablehlo.divide"),
      BinaryOp<Extremum<true>>("stablehlo.maximum"),
      BinaryOp<Extremum<false>>("stablehlo.minimum"),
      BinaryOp<Multiply>("stablehlo.multiply"),
      BinaryOp<Or>("stablehlo.or"),
      BinaryOp<Power>("stablehlo.power"),
      BinaryOp<Remainder>("stablehlo.remainder"),
      BinaryOp<ShiftLeft>("stablehlo.shift_left"),
      BinaryOp<ShiftRightArithmetic>("stablehlo.shift_right_arithmetic"),
      BinaryOp<ShiftRightLogical>("stablehlo.shift_right_logical"),
      BinaryOp<Subtract>("stablehlo.subtract"),
      BinaryOp<Xor>("stablehlo.xor"),
      BinaryOp<MulHigh>("chlo.mulhi"),
      BinaryOp<NextAfter>("chlo.next_after"),
      BinaryOp<PolygammaOp>("chlo.polygamma"),
      BinaryOp<ZetaOp>("chlo.zeta"),
  };
  return *ops;
}

}  // namespace fake_pjrt
