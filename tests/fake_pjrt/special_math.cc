// SPDX-License-Identifier: Apache-2.0
#include "special_math.h"

#include <cmath>

namespace fake_pjrt {

double Digamma(double x) {
  if (x <= 0) {
    if (x == std::floor(x)) return NAN;
    return Digamma(1 - x) - M_PI / std::tan(M_PI * x);
  }
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  double y = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * 691.0 / 32760)))));
}

double ErfInv(double x) {
  if (std::isnan(x) || std::fabs(x) > 1) return NAN;
  if (std::fabs(x) == 1) return std::copysign(INFINITY, x);
  // Winitzki's approximation, then Newton steps on erf (erfc near the ends, where erf has no digits left).
  double l = std::log1p(-x * x), a = 0.147, b = 2 / (M_PI * a) + l / 2;
  double y = std::copysign(std::sqrt(std::sqrt(b * b - l / a) - b), x);
  for (int i = 0; i < 4; ++i) {
    double f = std::fabs(x) < 0.9 ? std::erf(y) - x : ((1 - std::fabs(x)) - std::erfc(std::fabs(y))) * (x < 0 ? -1 : 1);
    double step = f * std::sqrt(M_PI) / 2 * std::exp(y * y);
    y -= step / (1 + y * step);
  }
  return y;
}

double Zeta(double x, double q) {
  if (x == 1) return INFINITY;
  if (x < 1) return NAN;
  if (q <= 0) {
    if (q == std::floor(q)) return std::fmod(x, 2) == 0 ? INFINITY : NAN;
    if (x != std::floor(x)) return NAN;
  }
  // Euler-Maclaurin after enough explicit terms.
  double sum = 0;
  while (q < 12) {
    sum += std::pow(q, -x);
    q += 1;
  }
  double power = std::pow(q, -x);
  sum += power * q / (x - 1) + power / 2;
  static constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                          -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
  double factor = x * power / q / 2;  // x(x+1)...(x+2k-2) q^(-x-2k+1) / (2k)!
  for (int k = 1; k <= 10; ++k) {
    sum += kBernoulli[k - 1] * factor;
    factor *= (x + 2 * k - 1) * (x + 2 * k) / (q * q) / ((2 * k + 1.0) * (2 * k + 2.0));
  }
  return sum;
}

double Polygamma(double n, double x) {
  if (n < 0 || n != std::floor(n)) return NAN;
  if (n == 0) return Digamma(x);
  double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(std::lgamma(n + 1)) * Zeta(n + 1, x);
}

double BesselI1e(double x) {
  double a = std::fabs(x), value;
  if (a < 30) {
    double term = a / 2, sum = 0;
    for (int k = 1; k < 200 && term > sum * 1e-18; ++k) {
      sum += term;
      term *= a * a / 4 / (k * (k + 1.0));
    }
    value = sum * std::exp(-a);
  } else {
    double sum = 1, term = 1;
    for (int k = 1; k < 12; ++k) {
      term *= -(4 - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8 * a);
      sum += term;
    }
    value = sum / std::sqrt(2 * M_PI * a);
  }
  return std::copysign(value, x);
}

}  // namespace fake_pjrt
