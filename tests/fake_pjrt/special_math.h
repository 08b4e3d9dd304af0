// SPDX-License-Identifier: Apache-2.0
// Special functions of CHLO that <cmath> does not have. Double precision, for all float types.
#pragma once

namespace fake_pjrt {

double Digamma(double x);
double ErfInv(double x);
// Hurwitz zeta.
double Zeta(double x, double q);
double Polygamma(double n, double x);
// exp(-|x|) * I1(x)
double BesselI1e(double x);

}  // namespace fake_pjrt
