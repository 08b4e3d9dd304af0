// SPDX-License-Identifier: Apache-2.0
// Comparisons: in the common dtype of both operands, with a bool result.
#include "lower/elementwise.h"

namespace tpu::lower {
namespace {

template <Compare kDirection>
void Comparison(Lowering& l) {
  Elementwise e(l, l.Promoted({0, 1}));
  e.Out(l.b.Cmp(kDirection, e.In(0), e.In(1)));
}

constexpr Pad kPass = Pad::kPass;
const Rule kRules[] = {
    {.name = "eq.Tensor", .lower = Comparison<Compare::kEq>, .pad = kPass},
    {.name = "eq.Scalar", .lower = Comparison<Compare::kEq>, .pad = kPass},
    {.name = "ne.Tensor", .lower = Comparison<Compare::kNe>, .pad = kPass},
    {.name = "ne.Scalar", .lower = Comparison<Compare::kNe>, .pad = kPass},
    {.name = "lt.Tensor", .lower = Comparison<Compare::kLt>, .pad = kPass},
    {.name = "lt.Scalar", .lower = Comparison<Compare::kLt>, .pad = kPass},
    {.name = "le.Tensor", .lower = Comparison<Compare::kLe>, .pad = kPass},
    {.name = "le.Scalar", .lower = Comparison<Compare::kLe>, .pad = kPass},
    {.name = "gt.Tensor", .lower = Comparison<Compare::kGt>, .pad = kPass},
    {.name = "gt.Scalar", .lower = Comparison<Compare::kGt>, .pad = kPass},
    {.name = "ge.Tensor", .lower = Comparison<Compare::kGe>, .pad = kPass},
    {.name = "ge.Scalar", .lower = Comparison<Compare::kGe>, .pad = kPass},
};

}  // namespace

std::span<const Rule> CompareRules() { return kRules; }

}  // namespace tpu::lower
