// SPDX-License-Identifier: Apache-2.0
// StableHLO text in MLIR's generic form -> Module. Strict: it is also the verifier of the project's emitter.
#pragma once
#include <memory>
#include <string_view>

#include "error.h"
#include "program.h"

namespace fake_pjrt {

// On failure the message starts with "line N: " and names the operator where there is one.
Error ParseModule(std::string_view text, std::unique_ptr<Module>* module);

}  // namespace fake_pjrt
