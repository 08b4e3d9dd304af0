// SPDX-License-Identifier: Apache-2.0
// The pointwise family: its rows are in pointwise_*.cc, by kind.
#include "lower/elementwise.h"

namespace tpu::lower {

std::span<const Rule> PointwiseRules() {
  static const std::vector<Rule>& rules = *[] {
    auto* all = new std::vector<Rule>;
    for (const auto& kind : {UnaryRules(), ArithmeticRules(), BitwiseRules(), TernaryRules(), ActivationRules(),
                             ActivationBackwardRules(), SpecialFunctionRules()}) {
      all->insert(all->end(), kind.begin(), kind.end());
    }
    return all;
  }();
  return rules;
}

}  // namespace tpu::lower
