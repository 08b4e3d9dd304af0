// SPDX-License-Identifier: Apache-2.0
// The dtype that autocast takes when it is given none: bfloat16. Core keeps it in each thread, starting at float16, and has
// no hook for the start: a thread gets ours with its first tensor, or its first torch.autocast("tpu").
#pragma once

namespace tpu::aten {

extern thread_local bool t_autocast_chosen;
void ChooseAutocastDtype();

inline void EnsureAutocastDtype() {
  if (__builtin_expect(!t_autocast_chosen, 0)) ChooseAutocastDtype();
}

}  // namespace tpu::aten
