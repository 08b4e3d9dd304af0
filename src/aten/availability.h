// SPDX-License-Identifier: Apache-2.0
// Whether something should choose the device "tpu" by itself.
#pragma once

namespace tpu::aten {

// With a TPU: yes. With the CPU engine: unless a CUDA build of torch sees a GPU. Setting engine = off: no. The device works
// when it is named, whatever the answer. Starts nothing, never throws.
bool IsAvailable() noexcept;
// True when a TPU chip is on the bus; looked at once.
bool TpuOnBus();

}  // namespace tpu::aten
