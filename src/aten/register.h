// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tpu::aten {

// Registers the recorder for ATen's operators (about 1,100, a few milliseconds). Once, when the extension is loaded,
// after the kernels of our own.
void RegisterOperators();

}  // namespace tpu::aten
