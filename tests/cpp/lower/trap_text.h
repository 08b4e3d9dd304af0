// SPDX-License-Identifier: Apache-2.0
// The message that the first trap which went off raises, or "" when none did. For tests.
#pragma once
#include <string>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {

inline std::string TrapText(const Outcome& out) {
  for (size_t i = 0; i < out.traps.size(); ++i) {
    const int32_t bad = out.traps[i];
    if (bad == 0) continue;
    std::string text = out.lowered.traps[i].message;
    const size_t place = text.find("%v");
    if (place != std::string::npos) text.replace(place, 2, std::to_string(bad > 0 ? bad - 1 : bad));
    return (out.lowered.traps[i].kind == ErrorKind::kIndex ? "IndexError: " : "RuntimeError: ") + text;
  }
  return "";
}

}  // namespace tpu::lower
