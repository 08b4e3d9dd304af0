// SPDX-License-Identifier: Apache-2.0
#include "pjrt/buffer.h"

#include <string>
#include <vector>

#include "pjrt/dtype.h"
#include "pjrt/errors.h"

namespace tpu::pjrt {
namespace {

// Valid as long as the buffer. Fails after donation on some plugins.
Status Dimensions(const Buffer& buffer, const int64_t** dims, size_t* rank) {
  Args<PJRT_Buffer_Dimensions_Args> args;
  args->buffer = buffer.get();
  TPU_RETURN_IF_ERROR(ToStatus(buffer.api(), buffer.api()->PJRT_Buffer_Dimensions(args.get())));
  *dims = args->dims;
  *rank = args->num_dims;
  return {};
}

}  // namespace

Result<Event> Buffer::ReadyEvent() const {
  Args<PJRT_Buffer_ReadyEvent_Args> args;
  args->buffer = get();
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Buffer_ReadyEvent(args.get())));
  return Event(api(), args->event);
}

bool Buffer::IsReady(Status* error) const {
  Result<Event> event = ReadyEvent();
  if (!event.ok()) {
    *error = std::move(event).status();
    return true;
  }
  if (!event->IsReady()) return false;
  *error = event->error();
  return true;
}

Result<const void*> Buffer::HostPointer() const {
  Args<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args> args;
  args->buffer = get();
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(args.get())));
  return static_cast<const void*>(args->device_memory_ptr);
}

Result<Event> Buffer::CopyToHost(void* dst, size_t bytes) const {
  const int64_t* dims;
  size_t rank;
  TPU_RETURN_IF_ERROR(Dimensions(*this, &dims, &rank));
  // Without a layout, plugins write their device layout's order.
  std::vector<int64_t> minor_to_major(rank);
  for (size_t i = 0; i < rank; ++i) minor_to_major[i] = static_cast<int64_t>(rank - 1 - i);
  Args<PJRT_Buffer_MemoryLayout> layout;
  layout->type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout->tiled.struct_size = sizeof(PJRT_Buffer_MemoryLayout_Tiled);
  layout->tiled.minor_to_major = minor_to_major.data();
  layout->tiled.minor_to_major_size = rank;

  Args<PJRT_Buffer_ToHostBuffer_Args> args;
  args->src = get();
  args->host_layout = layout.get();
  // A null destination would ask for the size instead.
  static char nothing;
  args->dst = dst ? dst : &nothing;
  args->dst_size = bytes;
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Buffer_ToHostBuffer(args.get())));
  return Event(api(), args->event);
}

Result<size_t> Buffer::OnDeviceSize() const {
  Args<PJRT_Buffer_OnDeviceSizeInBytes_Args> args;
  args->buffer = get();
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Buffer_OnDeviceSizeInBytes(args.get())));
  return args->on_device_size_in_bytes;
}

bool Buffer::IsDeleted() const {
  Args<PJRT_Buffer_IsDeleted_Args> args;
  args->buffer = get();
  return ToStatus(api(), api()->PJRT_Buffer_IsDeleted(args.get())).ok() && args->is_deleted;
}

Result<TensorType> Buffer::Type() const {
  Args<PJRT_Buffer_ElementType_Args> args;
  args->buffer = get();
  TPU_RETURN_IF_ERROR(ToStatus(api(), api()->PJRT_Buffer_ElementType(args.get())));
  TensorType type;
  type.dtype = FromPjrtType(EnumNumber(args->type));
  if (type.dtype == DType::kInvalid)
    return RuntimeError("the buffer has PJRT element type " + std::to_string(EnumNumber(args->type)) +
                        ", which no tensor can have");
  const int64_t* dims;
  size_t rank;
  TPU_RETURN_IF_ERROR(Dimensions(*this, &dims, &rank));
  if (rank > kMaxRank) return RuntimeError("the buffer has rank " + std::to_string(rank));
  for (size_t i = 0; i < rank; ++i) type.Append(dims[i]);
  return type;
}

Status Buffer::CheckType(const TensorType& expected) const {
  Result<TensorType> type = Type();
  if (!type.ok()) return std::move(type).status();
  // Sizes only: a symbol is its bucket here.
  bool same = type->dtype == expected.dtype && type->rank == expected.rank;
  for (int i = 0; same && i < expected.rank; ++i) same = type->dims[i].size() == expected.dims[i].size();
  if (same) return {};
  return RuntimeError("the buffer is " + type->ToHlo() + ", expected " + expected.ToHlo());
}

}  // namespace tpu::pjrt
