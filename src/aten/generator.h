// SPDX-License-Identifier: Apache-2.0
// Random numbers: the counter-based generator of a device. Its state is 16 bytes on the host: int64 seed, int64 offset.
#pragma once
#include <ATen/core/Generator.h>

#include <cstdint>
#include <optional>

namespace tpu::aten {

// Element i of a draw uses the Philox counter offset + i.
struct RandomDraw {
  uint64_t seed, offset;
};

// Draws `count` counters: returns seed and offset as they are and moves the offset on by `count` rounded up to a multiple
// of 4, in one step under the generator's mutex. No generator: the default one of `device`. Throws RuntimeError, in
// PyTorch's words, for a generator of another kind of device.
RandomDraw Draw(const std::optional<at::Generator>& generator, int device, int64_t count);

// The reference stays valid for ever. A negative index means the current device.
const at::Generator& DefaultGenerator(int device);
at::Generator NewGenerator(int device);

}  // namespace tpu::aten
