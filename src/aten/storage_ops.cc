// SPDX-License-Identifier: Apache-2.0
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#define AT_PER_OPERATOR_HEADERS
#include "aten/storage_ops.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/is_set_to_native.h>
#include <torch/library.h>

#include <algorithm>

#include "aten/copy.h"
#include "aten/errors.h"
#include "aten/recorder.h"
#include "aten/tensor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

using at::Tensor;

// `n` elements from the start of a storage.
Tensor FlatView(const c10::Storage& storage, c10::ScalarType dtype, int64_t n) {
  auto t = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                    c10::scalarTypeToTypeMeta(dtype));
  t.unsafeGetTensorImpl()->set_sizes_contiguous({n});
  return t;
}

// Replaces the memory of a storage. `fresh`: the type of the undefined value it starts with.
void Reallocate(const c10::Storage& storage, size_t bytes, const TensorType& fresh) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
  const int device = impl->device().index();
  const size_t prefix = std::min(impl->nbytes(), bytes);
  bool defined = false;
  DType dtype = DType::kU8;
  if (prefix) {
    engine::ValueRef old(CellOf(storage)->Load());
    defined = old->state.load(std::memory_order_acquire) != engine::ValueState::kUndefined;
    // Whole elements of the old value keep its type; anything else is moved as bytes.
    const size_t item = ItemSize(old->type.dtype);
    if (prefix % item == 0 && bytes % item == 0) dtype = old->type.dtype;
  }
  if (!defined) {
    engine::Value* value = bytes ? engine::NewValue(fresh, device, engine::ValueState::kUndefined) : nullptr;
    impl->set_data_ptr_noswap(NewDataPtr(bytes, device, value));
    impl->set_nbytes(bytes);
    return;
  }
  const c10::ScalarType type = ToScalarType(dtype);
  const auto item = static_cast<int64_t>(ItemSize(dtype));
  Tensor grown = MakeTensor({static_cast<int64_t>(bytes) / item}, nullptr, type, device, nullptr);
  const int64_t kept = static_cast<int64_t>(prefix) / item;
  RecordCopy(FlatView(grown.storage(), type, kept), FlatView(storage, type, kept));
  // The copy's cell moves over: tensors keep their storage, the storage gets other memory.
  c10::StorageImpl* from = grown.storage().unsafeGetStorageImpl();
  impl->set_data_ptr_noswap(from->set_data_ptr(c10::DataPtr(nullptr, impl->device())));
  from->set_nbytes(static_cast<size_t>(0));
  impl->set_nbytes(bytes);
}

TensorType ContiguousType(c10::IntArrayRef sizes, c10::ScalarType dtype, size_t bytes) {
  const DType d = FromScalarType(dtype);
  const auto item = static_cast<int64_t>(ItemSize(d));
  int64_t numel = 1;
  for (int64_t s : sizes) numel *= s;
  // A storage offset makes the storage larger than the tensor.
  if (sizes.size() <= static_cast<size_t>(kMaxRank) && numel * item == static_cast<int64_t>(bytes))
    return TensorType::Of(d, sizes);
  if (bytes % item == 0) return TensorType(d, {static_cast<int64_t>(bytes) / item});
  return TensorType(DType::kU8, {static_cast<int64_t>(bytes)});
}

Tensor& SetStorageOffset(Tensor& self, c10::Storage source, int64_t offset, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides);
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  at::OptionalIntArrayRef given = strides.data() ? at::OptionalIntArrayRef(strides) : std::nullopt;
  at::native::resize_impl_cpu_(impl, sizes, given, /*resize_storage=*/false);
  if (impl->numel() == 0) return self;
  const size_t needed = at::detail::computeStorageNbytes(impl->sizes(), impl->strides(), impl->itemsize(), offset);
  const c10::Storage& storage = impl->unsafe_storage();
  if (needed > storage.nbytes()) Reallocate(storage, needed, ContiguousType(sizes, self.scalar_type(), needed));

  // Checkpoints arrive as bytes. The first typed tensor over all of such a storage gives its value that type, else every
  // program that reads it would begin with a bitcast of its own.
  TensorType type;
  engine::Cell* cell = CellOf(storage);
  engine::ValueRef value(cell->Load());
  if (value->type.dtype != DType::kU8 || self.scalar_type() == c10::kByte || !CoversStorage(self, &type)) return self;
  switch (value->state.load(std::memory_order_acquire)) {
    case engine::ValueState::kUndefined:
      cell->Swap(engine::NewValue(type, cell->device, engine::ValueState::kUndefined));
      break;
    case engine::ValueState::kReady: {
      Tensor typed;
      if (engine::Runtime::Started().profile().host_addressable) {
        typed = ToDevice(HostView(self), cell->device);
      } else {
        if (self.dim() > kMaxRank) break;
        typed = MakeTensor(self.sizes(), self.strides().data(), self.scalar_type(), cell->device, nullptr);
        RecordCopy(typed, self);
      }
      cell->Swap(CellOf(typed)->Load());
      break;
    }
    default:
      break;
  }
  return self;
}

Tensor& SetStorage(Tensor& self, c10::Storage source) {
  const auto n = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return SetStorageOffset(self, std::move(source), 0, {n}, {});
}

Tensor& SetTensor(Tensor& self, const Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return SetStorageOffset(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

Tensor& SetNothing(Tensor& self) {
  c10::Storage empty = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                             NewDataPtr(0, self.device().index(), nullptr), DeviceAllocator(),
                                                             /*resizable=*/true);
  return SetStorageOffset(self, std::move(empty), 0, {0}, {});
}

// One queue in order serves every stream: memory cannot be reused before the entries that read it have run.
void RecordStream(Tensor&, c10::Stream) {}

}  // namespace

void ResizeStorage(const c10::Storage& storage, size_t bytes) {
  if (storage.nbytes() == bytes) return;
  at::AutoDispatchBelowADInplaceOrView below;
  DType dtype = DType::kU8;
  if (storage.nbytes()) {
    engine::ValueRef old(CellOf(storage)->Load());
    if (bytes % ItemSize(old->type.dtype) == 0) dtype = old->type.dtype;
  }
  Reallocate(storage, bytes, TensorType(dtype, {static_cast<int64_t>(bytes / ItemSize(dtype))}));
}

const Tensor& Resize(const Tensor& self, c10::IntArrayRef sizes, std::optional<c10::MemoryFormat> memory_format) {
  at::detail::check_size_nonnegative(sizes);
  auto* impl = self.unsafeGetTensorImpl();
  const size_t old_bytes = impl->unsafe_storage().nbytes();
  at::native::resize_impl_cpu_(impl, sizes, std::nullopt, /*resize_storage=*/false);
  if (memory_format) {
    TORCH_CHECK(*memory_format != c10::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
    impl->empty_tensor_restride(*memory_format);
  }
  if (impl->numel() == 0) return self;
  const size_t needed = at::detail::computeStorageNbytesContiguous(sizes, impl->itemsize(), impl->storage_offset());
  if (needed <= old_bytes) return self;
  at::AutoDispatchBelowADInplaceOrView below;
  Reallocate(impl->unsafe_storage(), needed, ContiguousType(sizes, self.scalar_type(), needed));
  if (at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory())
    at::native::fill_resize_deterministic_(self, static_cast<int64_t>(old_bytes));
  return self;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("resize_", &Resize);
  m.impl("set_", &SetNothing);
  m.impl("set_.source_Tensor", &SetTensor);
  m.impl("set_.source_Storage", &SetStorage);
  m.impl("set_.source_Storage_storage_offset", &SetStorageOffset);
  m.impl("is_set_to", &at::native::is_set_to);
  m.impl("record_stream", &RecordStream);
}

}  // namespace tpu::aten
