// SPDX-License-Identifier: Apache-2.0
// Operators that change what storage a tensor has, or how large a storage is.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

namespace tpu::aten {

// Makes a storage of ours `bytes` large. The common prefix keeps its values, the rest is undefined. Launches at most one
// copy. (Behind untyped_storage().resize_(), through the hooks.)
void ResizeStorage(const c10::Storage& storage, size_t bytes);

// The operator resize_: grows the storage when it has to, never shrinks it.
const at::Tensor& Resize(const at::Tensor& self, c10::IntArrayRef sizes, std::optional<c10::MemoryFormat> memory_format);

}  // namespace tpu::aten
