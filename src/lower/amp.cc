// SPDX-License-Identifier: Apache-2.0
// GradScaler's scale.
#include <iterator>

#include "lower/parts.h"

namespace tpu::lower {
namespace {

// _amp_update_scale(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval)
// Results: the scale, which shrinks after a step with a gradient that is not finite and grows after `growth_interval` steps
// without one; the number of such steps since the last change.
void UpdateScale(Lowering& l) {
  Builder& b = l.b;
  const Value scale = b.Reshape(l.Tensor(0), {}), tracker = b.Reshape(l.Tensor(1), {});
  const Value found = b.Cmp(Compare::kNe, b.Reshape(l.Tensor(2), {}), 0);
  const Value steps = b.Add(tracker, b.Like(tracker, 1));
  const Value due = b.Cmp(Compare::kEq, steps, l.Int(5));
  const Value grown = b.Mul(scale, b.Like(scale, l.Double(3)));
  const Value usable = b.And(due, b.Unary("is_finite", grown));
  const Value kept = b.Select(usable, grown, scale);
  SetResultAs(l, 0, b.Select(found, b.Mul(scale, b.Like(scale, l.Double(4))), kept));
  SetResultAs(l, 1, b.Select(b.Or(found, due), b.Like(steps, 0), steps));
}

constexpr Rule kRules[] = {{.name = "_amp_update_scale", .lower = UpdateScale}};

}  // namespace

std::span<const Rule> AmpRules() { return kRules; }

}  // namespace tpu::lower
