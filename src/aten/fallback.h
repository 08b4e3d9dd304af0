// SPDX-License-Identifier: Apache-2.0
// The CPU fallback: counted, warned once an operator, forbidden by a setting. The only file with at:: compute.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tpu::aten {

// Runs `op` on the CPU: device tensors become CPU tensors (read-only ones without a copy where the engine's memory is
// the host's), results come back to the device; in-place and out= arguments keep their storage; views among results
// are refused. `why` says in one line why no rule served. Throws NotImplementedError when the setting forbids it.
void CpuFallback(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& why);

// How often each operator took the fallback in this process.
std::vector<std::pair<std::string, uint64_t>> FallbackCounts();

}  // namespace tpu::aten
