// SPDX-License-Identifier: Apache-2.0
#include "aten/tensor.h"

#include "aten/autocast.h"

#include <c10/core/TensorImpl.h>

#include "aten/allocator.h"
#include "aten/device.h"

namespace tpu::aten {
namespace {

void DeleteCell(void* context) { engine::FreeCell(static_cast<engine::Cell*>(context)); }

// What storages of no bytes that were rebuilt from their null address stand for.
engine::Cell* EmptyCell(int device) {
  static std::atomic<engine::Cell*> cells[kMaxDevices];
  engine::Cell* cell = cells[device].load(std::memory_order_acquire);
  if (!cell) {
    engine::Cell* fresh = engine::NewCell(0, device, nullptr);
    if (cells[device].compare_exchange_strong(cell, fresh, std::memory_order_acq_rel)) return fresh;
    engine::FreeCell(fresh);
  }
  return cell;
}

[[noreturn, gnu::cold, gnu::noinline]] void ThrowOverflow(c10::IntArrayRef sizes) {
  TORCH_CHECK(false, "Storage size calculation overflowed with sizes=", sizes);
}

// From the first to the last element, in bytes; `strides` null: contiguous.
size_t SpanBytes(c10::IntArrayRef sizes, const int64_t* strides, size_t item_size) {
  int64_t span = 1, step;
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    if (strides) {
      overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &step);
      overflow |= __builtin_add_overflow(span, step, &span);
    } else {
      overflow |= __builtin_mul_overflow(span, sizes[i], &span);
    }
  }
  overflow |= __builtin_mul_overflow(span, static_cast<int64_t>(item_size), &span);
  if (__builtin_expect(overflow, 0)) ThrowOverflow(sizes);
  return static_cast<size_t>(span);
}

}  // namespace

// A type without a row has no counterpart: quantized types, bits, 4-bit and 6-bit numbers.
// clang-format off
#define TPU_SCALAR_TYPES(X) \
  X(Bool, kBool) \
  X(Byte, kU8) \
  X(UInt16, kU16) \
  X(UInt32, kU32) \
  X(UInt64, kU64) \
  X(Char, kI8) \
  X(Short, kI16) \
  X(Int, kI32) \
  X(Long, kI64) \
  X(Half, kF16) \
  X(BFloat16, kBF16) \
  X(Float, kF32) \
  X(Double, kF64) \
  X(ComplexFloat, kC64) \
  X(ComplexDouble, kC128) \
  X(Float8_e4m3fn, kF8E4M3FN) \
  X(Float8_e5m2, kF8E5M2)
// clang-format on

DType FromScalarType(c10::ScalarType type) {
  switch (type) {
#define TPU_CASE(theirs, ours)  \
  case c10::ScalarType::theirs: \
    return DType::ours;
    TPU_SCALAR_TYPES(TPU_CASE)
#undef TPU_CASE
    default:
      return DType::kInvalid;
  }
}

c10::ScalarType ToScalarType(DType dtype) {
  switch (dtype) {
#define TPU_CASE(theirs, ours) \
  case DType::ours:            \
    return c10::ScalarType::theirs;
    TPU_SCALAR_TYPES(TPU_CASE)
#undef TPU_CASE
    case DType::kInvalid:
      break;
  }
  return c10::ScalarType::Undefined;
}

engine::Cell* CellOf(const c10::Storage& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  if (__builtin_expect(data.get_deleter() == &DeleteCell, 1)) return static_cast<engine::Cell*>(data.get_context());
  if (engine::Cell* cell = engine::FindCell(data.get())) return cell;
  TORCH_CHECK(storage.device_type() == kDeviceType, "Expected a storage on a ", c10::DeviceTypeName(kDeviceType, true),
              " device, but it is on ", storage.device());
  TORCH_CHECK(data.get() == nullptr && storage.nbytes() == 0,
              "the storage's address does not belong to the tpu device that the storage names");
  return EmptyCell(CheckedOrCurrentDevice(storage.device().index()));
}

c10::DeleterFnPtr CellDeleter() { return &DeleteCell; }

c10::DataPtr NewDataPtr(size_t bytes, int device, engine::Value* value) {
  EnsureAutocastDtype();
  engine::ValueRef owned(value);
  // Results of operators had room made for them when they were recorded.
  if (!value || value->state.load(std::memory_order_relaxed) == engine::ValueState::kUndefined) CheckRoom(bytes, device);
  engine::Cell* cell = engine::NewCell(bytes, device, owned.release());
  // Null for no bytes, as on other devices: libraries read it as "freed".
  return {bytes ? engine::AddressOf(cell) : nullptr, cell, &DeleteCell,
          c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(device))};
}

at::Tensor MakeTensor(c10::IntArrayRef sizes, const int64_t* strides, c10::ScalarType dtype, int device, engine::Value* value) {
  engine::ValueRef owned(value);
  caffe2::TypeMeta meta = c10::scalarTypeToTypeMeta(dtype);
  size_t bytes = SpanBytes(sizes, strides, meta.itemsize());
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       NewDataPtr(bytes, device, owned.release()), DeviceAllocator(),
                                                       /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)),
                                                               c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), meta);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (strides) {
    impl->set_sizes_and_strides(sizes, c10::IntArrayRef(strides, sizes.size()));
  } else if (sizes.size() != 1 || sizes[0] != 0) {  // what a fresh TensorImpl has
    impl->set_sizes_contiguous(sizes);
  }
  return tensor;
}

}  // namespace tpu::aten
