// SPDX-License-Identifier: Apache-2.0
// Between ATen's tensors and the engine's cells and values.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/ScalarType.h>
#include <c10/core/StorageImpl.h>

#include "base/dtype.h"
#include "base/status.h"
#include "base/tensor_type.h"
#include "engine/cell.h"

namespace tpu::aten {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

// kInvalid for types that the device does not have (quantized, bits, ...).
DType FromScalarType(c10::ScalarType type);
c10::ScalarType ToScalarType(DType dtype);

inline bool IsOurs(const at::Tensor& t) { return t.defined() && t.device().type() == kDeviceType; }

// The cell behind a storage of ours, also when the storage was rebuilt from an address alone (pickle, storage[i]).
// Throws RuntimeError for an address that is not ours.
engine::Cell* CellOf(const c10::Storage& storage);
inline engine::Cell* CellOf(const at::Tensor& t) { return CellOf(t.unsafeGetTensorImpl()->unsafe_storage()); }

// A storage pointer with a fresh cell; takes the caller's reference of `value` (null: undefined).
c10::DataPtr NewDataPtr(size_t bytes, int device, engine::Value* value);
c10::DeleterFnPtr CellDeleter();

// A tensor over a fresh storage that holds `value` (takes the reference; null: undefined). `strides` null: contiguous.
// The storage has exactly the bytes that sizes and strides span.
at::Tensor MakeTensor(c10::IntArrayRef sizes, const int64_t* strides, c10::ScalarType dtype, int device, engine::Value* value);

// The current device of this thread, and the index meant by an optional device.
int CurrentDevice();
void SetCurrentDevice(int index);  // unchecked
int DeviceIndexOf(std::optional<at::Device> device);

// Size in bytes, and device limits are the allocator's business: src/aten/allocator.cc.
c10::Allocator* DeviceAllocator();

}  // namespace tpu::aten
