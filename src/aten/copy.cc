// SPDX-License-Identifier: Apache-2.0
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#define AT_PER_OPERATOR_HEADERS
#include "aten/copy.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>

#include <cstring>
#include <memory>

#include "aten/errors.h"
#include "aten/recorder.h"
#include "aten/storage_ops.h"
#include "aten/tensor.h"
#include "engine/capture.h"
#include "engine/runtime.h"
#include "graph/access.h"

namespace tpu::aten {
namespace {

using at::Tensor;

// Copies of fewer bytes are cheaper in one memcpy than through TensorIterator's threads.
constexpr size_t kMemcpyBytes = 256 << 10;
// Host-side broadcasting up to this size; above it the small source travels and the device repeats it.
constexpr size_t kHostBroadcastBytes = 1 << 20;

Tensor CpuTensor(c10::Storage storage, const Tensor& like, int64_t offset) {
  auto t =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), like.dtype());
  auto* impl = t.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), offset);
  if (like.is_conj()) t._set_conj(true);
  if (like.is_neg()) t._set_neg(true);
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return t;
}

c10::Storage OwnedHostStorage(size_t bytes, bool zero) {
  c10::DataPtr data = c10::GetCPUAllocator()->allocate(bytes);
  if (zero && bytes) std::memset(data.get(), 0, bytes);
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, std::move(data),
                                               c10::GetCPUAllocator(), /*resizable=*/false);
}

void DropValue(void* value) { static_cast<engine::Value*>(value)->DecRef(); }

// The current value of a storage, waited for.
engine::ValueRef ReadyValue(engine::Cell* cell) {
  engine::ValueRef value(cell->Load());
  ThrowIfError(engine::Wait(value.get()));
  TORCH_INTERNAL_ASSERT(value->bytes() == cell->bytes, "torch_tpu: a storage of ", cell->bytes, " bytes holds a value of ",
                        value->bytes());
  return value;
}

bool IsUndefined(const engine::ValueRef& value) {
  return value->state.load(std::memory_order_acquire) == engine::ValueState::kUndefined;
}

Tensor NewContiguous(const Tensor& like, c10::ScalarType dtype) {
  return MakeTensor(like.sizes(), nullptr, dtype, like.device().index(), nullptr);
}

// What has to be read back of a base that is far larger than the view: a dense copy made on the device. The tensor
// itself where its memory can be looked at in place anyway.
Tensor Compacted(const Tensor& t) {
  if (engine::Runtime::Started().profile().host_addressable) return t;
  const size_t needed = t.nbytes(), whole = t.storage().nbytes();
  if (whole < 4096 || needed * 2 > whole || t.dim() > kMaxRank) return t;
  Tensor dense = NewContiguous(t, t.scalar_type());
  RecordCopy(dense, t);
  return dense;
}

// True when a byte of a bool array is neither 0 nor 1; an engine's predicates may be nothing else.
bool HasOddBools(const void* data, size_t n) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint8_t seen = 0;
  for (size_t i = 0; i < n; ++i) seen |= bytes[i];
  return seen > 1;
}

// Uploads dense host memory as a value of this type.
engine::Value* UploadDense(const void* data, const TensorType& type, int device) {
  std::unique_ptr<uint8_t[]> clean;
  const size_t bytes = type.bytes();
  if (type.dtype == DType::kBool && HasOddBools(data, bytes)) {
    clean.reset(new uint8_t[bytes]);
    for (size_t i = 0; i < bytes; ++i) clean[i] = static_cast<const uint8_t*>(data)[i] != 0;
    data = clean.get();
  }
  return ValueOrThrow(engine::Upload(data, type, device));
}

Tensor EmptyCpuLike(const Tensor& t) { return at::detail::empty_strided_cpu(t.sizes(), t.strides(), t.scalar_type()); }

bool HasBits(const Tensor& t) { return t.is_conj() || t.is_neg(); }

void HostToDevice(const Tensor& dst, const Tensor& src) {
  const int device = dst.device().index();
  TensorType type;
  const bool repeats = src.numel() < dst.numel() && dst.nbytes() > kHostBroadcastBytes && dst.dim() <= kMaxRank;
  if (!repeats && CoversStorage(dst, &type)) {
    Tensor host = src;
    // Equal strides of a dense target: the source's memory is the storage's bytes.
    if (src.scalar_type() != dst.scalar_type() || HasBits(src) || !SameLayout(src, dst)) {
      host = EmptyCpuLike(dst);
      host.copy_(src);
    }
    // Entries recorded so far captured the old value: this is later than all of them.
    ThrowIfError(engine::CheckWrite(CellOf(dst)));
    CellOf(dst)->Swap(UploadDense(host.const_data_ptr(), type, device));
    return;
  }
  Tensor host = src;
  if (src.scalar_type() != dst.scalar_type() || HasBits(src) || !src.is_contiguous()) {
    host = at::detail::empty_cpu(src.sizes(), dst.scalar_type(), std::nullopt, std::nullopt, std::nullopt, std::nullopt);
    host.copy_(src);
  }
  CopyOnDevice(dst, ToDevice(host, device));
}

void DeviceToHost(const Tensor& dst, const Tensor& src) {
  const size_t bytes = dst.nbytes();
  const bool plain = src.scalar_type() == dst.scalar_type() && !HasBits(src) && !HasBits(dst) && src.is_contiguous() &&
                     dst.is_contiguous() && src.sizes() == dst.sizes();
  engine::Cell* cell = CellOf(src);
  if (plain && (bytes <= kMemcpyBytes || bytes == cell->bytes)) {
    engine::ValueRef value = ReadyValue(cell);
    const void* p = engine::HostPointer(value.get());
    if (p && bytes <= kMemcpyBytes) {
      const int64_t start = src.storage_offset() * static_cast<int64_t>(src.itemsize());
      std::memcpy(dst.mutable_data_ptr(), static_cast<const char*>(p) + start, bytes);
      return;
    }
    if (!p && bytes == cell->bytes && !IsUndefined(value)) {
      ThrowIfError(engine::ReadToHost(value.get(), dst.mutable_data_ptr()));
      return;
    }
  }
  dst.copy_(HostView(src));
}

void CopyAcross(const Tensor& dst, const Tensor& src) {
  Tensor from = src;
  TensorType type;
  if (HasBits(src) || !CoversStorage(src, &type)) {
    // Only the view travels, not its whole base.
    from = NewContiguous(src, src.scalar_type());
    CopyOnDevice(from, src);
  }
  engine::ValueRef value(CellOf(from)->Load());
  engine::ValueRef moved(ValueOrThrow(engine::CopyToDevice(value.get(), dst.device().index())));
  CopyOnDevice(dst, MakeTensor(from.sizes(), from.strides().data(), from.scalar_type(), dst.device().index(), moved.release()));
}

// TensorIterator's words, which a copy on the CPU would use.
void CheckSizes(const Tensor& dst, const Tensor& src) {
  if (dst.sizes() == src.sizes()) return;
  auto shape = at::infer_size_dimvector(dst.sizes(), src.sizes());
  TORCH_CHECK(dst.sizes() == c10::IntArrayRef(shape), "output with shape ", dst.sizes(), " doesn't match the broadcast shape ",
              c10::IntArrayRef(shape));
}

// `t` in `dtype`, same device.
Tensor Converted(const Tensor& t, c10::ScalarType dtype) {
  if (!IsOurs(t)) return t.to(dtype);
  Tensor out = NewContiguous(t, dtype);
  CopyFrom(t, out, false);
  return out;
}

// Writing v into a conjugate view writes conj(v) into memory: moves the bits of the target over to the source.
void MoveBits(Tensor* dst, Tensor* src) {
  if (src->scalar_type() != dst->scalar_type()) *src = Converted(*src, dst->scalar_type());
  if (dst->is_conj()) {
    *dst = dst->conj();
    *src = src->conj();
  }
  if (dst->is_neg()) {
    *dst = dst->_neg_view();
    *src = src->_neg_view();
  }
}

template <class T>
T LoadAs(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}
template <>
bool LoadAs<bool>(const void* p) {
  return LoadAs<uint8_t>(p) != 0;
}

at::Scalar ScalarAt(const void* p, c10::ScalarType dtype) {
  switch (dtype) {
#define TPU_CASE(type, name)  \
  case c10::ScalarType::name: \
    return at::Scalar(LoadAs<type>(p));
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(TPU_CASE)
#undef TPU_CASE
    case c10::ScalarType::UInt16:
      return at::Scalar(LoadAs<uint16_t>(p));
    case c10::ScalarType::UInt32:
      return at::Scalar(LoadAs<uint32_t>(p));
    case c10::ScalarType::UInt64:
      return at::Scalar(LoadAs<uint64_t>(p));
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "item() of a tpu tensor of dtype ", dtype);
  }
}

at::Scalar LocalScalarDense(const Tensor& self) {
  if (__builtin_expect(HasBits(self), 0)) {
    at::AutoDispatchBelowADInplaceOrView below;
    return HostView(self).item();
  }
  auto* impl = self.unsafeGetTensorImpl();
  engine::Cell* cell = CellOf(self);
  engine::ValueRef value = ReadyValue(cell);
  const c10::ScalarType dtype = c10::typeMetaToScalarType(impl->dtype());
  if (const void* p = engine::HostPointer(value.get()))
    return ScalarAt(static_cast<const char*>(p) + impl->storage_offset() * static_cast<int64_t>(impl->itemsize()), dtype);
  alignas(16) char bytes[16] = {};
  if (IsUndefined(value)) return ScalarAt(bytes, dtype);
  Tensor host = HostView(self);
  return ScalarAt(host.const_data_ptr(), dtype);
}

Tensor CopyFromAndResize(const Tensor& self, const Tensor& dst) {
  if (IsOurs(dst))
    Resize(dst, self.sizes(), std::nullopt);
  else
    dst.resize_(self.sizes());
  return CopyFrom(self, dst, false);
}

}  // namespace

bool SameLayout(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  auto sizes = a.sizes(), x = a.strides(), y = b.strides();
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1 && x[i] != y[i]) return false;
  return true;
}

bool CoversStorage(const Tensor& t, TensorType* type) {
  auto* impl = t.unsafeGetTensorImpl();
  const size_t bytes = impl->unsafe_storage().nbytes();
  const DType dtype = FromScalarType(c10::typeMetaToScalarType(impl->dtype()));
  auto sizes = impl->sizes();
  if (sizes.size() > static_cast<size_t>(kMaxRank)) {
    if (impl->storage_offset() != 0 || !impl->is_non_overlapping_and_dense() || t.nbytes() != bytes) return false;
    *type = TensorType(dtype, {impl->numel()});
    return true;
  }
  graph::View view{dtype, static_cast<uint8_t>(sizes.size()), sizes.data(), impl->strides().data(), impl->storage_offset()};
  int8_t order[kMaxRank];
  if (!graph::CoversStorage(view, bytes, order)) return false;
  *type = TensorType::Scalar(dtype);
  for (int i = 0; i < view.rank; ++i) type->Append(sizes[order[i]]);
  return true;
}

TensorType DenseType(const Tensor& t) {
  const DType dtype = FromScalarType(t.scalar_type());
  TensorType type = TensorType::Scalar(dtype);
  auto sizes = t.sizes(), strides = t.strides();
  int8_t order[kMaxRank];
  graph::View view{dtype, static_cast<uint8_t>(sizes.size()), sizes.data(), strides.data(), 0};
  if (sizes.size() > static_cast<size_t>(kMaxRank) || !graph::CoversStorage(view, t.nbytes(), order))
    return TensorType(dtype, {t.numel()});
  for (int i = 0; i < view.rank; ++i) type.Append(sizes[order[i]]);
  return type;
}

Tensor HostView(const Tensor& device_tensor) {
  if (device_tensor.numel() == 0) return CpuTensor(OwnedHostStorage(0, false), device_tensor, 0);
  Tensor t = Compacted(device_tensor);
  engine::Cell* cell = CellOf(t);
  engine::ValueRef value = ReadyValue(cell);
  if (const void* p = engine::HostPointer(value.get())) {
    c10::DataPtr data(const_cast<void*>(p), value.get(), &DropValue, c10::Device(c10::kCPU));
    value.release();
    c10::Storage storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), cell->bytes,
                                                                 std::move(data), nullptr, /*resizable=*/false);
    return CpuTensor(std::move(storage), t, t.storage_offset());
  }
  if (IsUndefined(value)) {
    // Only what the view spans: the base may be large, and nothing of it exists.
    const size_t span = at::detail::computeStorageNbytes(t.sizes(), t.strides(), t.itemsize());
    return CpuTensor(OwnedHostStorage(span, true), t, 0);
  }
  c10::Storage storage = OwnedHostStorage(cell->bytes, false);
  ThrowIfError(engine::ReadToHost(value.get(), storage.mutable_data()));
  return CpuTensor(std::move(storage), t, t.storage_offset());
}

Tensor ToDevice(const Tensor& cpu, int device) {
  Tensor host = cpu;
  if (HasBits(cpu) || !cpu.is_non_overlapping_and_dense()) {
    host = at::detail::empty_cpu(cpu.sizes(), cpu.scalar_type(), std::nullopt, std::nullopt, std::nullopt, std::nullopt);
    host.copy_(cpu);
  }
  const DType dtype = FromScalarType(cpu.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(dtype != DType::kInvalid, "the tpu device has no dtype ", cpu.scalar_type());
  if (host.numel() == 0) return MakeTensor(host.sizes(), host.strides().data(), host.scalar_type(), device, nullptr);
  engine::Value* value = UploadDense(host.const_data_ptr(), DenseType(host), device);
  return MakeTensor(host.sizes(), host.strides().data(), host.scalar_type(), device, value);
}

void CopyOnDevice(const Tensor& dst, const Tensor& src) {
  if (src.device() != dst.device()) return CopyAcross(dst, src);
  TensorType type;
  if (src.scalar_type() == dst.scalar_type() && !HasBits(src) && SameLayout(src, dst) && CoversStorage(dst, &type) &&
      CoversStorage(src, &type)) {
    // Values are immutable: equal bytes are one value. Whoever writes next makes a new one.
    engine::Cell* to = CellOf(dst);
    engine::Cell* from = CellOf(src);
    ThrowIfError(engine::CheckWrite(to));
    if (to != from) to->Swap(from->Load());
    return;
  }
  if (dst.dim() > kMaxRank || src.dim() > kMaxRank) {
    HostBase base(dst);
    base.View(dst).copy_(HostView(src));
    base.Commit();
    return;
  }
  RecordCopy(dst, src);
}

Tensor CopyFrom(const Tensor& self, const Tensor& dst, bool /*non_blocking*/) {
  CheckSizes(dst, self);
  if (dst.numel() == 0) return dst;
  if (self.is_complex() && !dst.is_complex()) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  }
  at::assert_no_internal_overlap(dst);
  at::AutoDispatchBelowADInplaceOrView below;
  if (!IsOurs(dst)) {
    DeviceToHost(dst, self);
    return dst;
  }
  if (self.device() == dst.device()) at::assert_no_partial_overlap(dst, self);
  Tensor to = dst, from = self;
  if (__builtin_expect(HasBits(dst), 0)) MoveBits(&to, &from);
  if (IsOurs(from))
    CopyOnDevice(to, from);
  else
    HostToDevice(to, from);
  return dst;
}

HostBase::HostBase(const Tensor& t) : storage_(t.storage()) {
  engine::ValueRef value = ReadyValue(CellOf(storage_));
  type_ = value->type;
  const bool undefined = IsUndefined(value);
  const size_t bytes = value->bytes();
  host_ = OwnedHostStorage(bytes, undefined);
  if (undefined || !bytes) return;
  if (const void* p = engine::HostPointer(value.get()))
    std::memcpy(host_.mutable_data(), p, bytes);
  else
    ThrowIfError(engine::ReadToHost(value.get(), host_.mutable_data()));
}

bool HostBase::Holds(const Tensor& t) const { return CellOf(t) == CellOf(storage_); }

Tensor HostBase::View(const Tensor& t) const { return CpuTensor(host_, t, t.storage_offset()); }

void HostBase::Commit() {
  if (!type_.bytes()) return;
  engine::Cell* cell = CellOf(storage_);
  ThrowIfError(engine::CheckWrite(cell));
  cell->Swap(UploadDense(host_.data(), type_, cell->device));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &CopyFrom);
  m.impl("_copy_from_and_resize", &CopyFromAndResize);
  m.impl("_local_scalar_dense", &LocalScalarDense);
}

}  // namespace tpu::aten
