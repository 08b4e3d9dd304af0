// SPDX-License-Identifier: Apache-2.0
// Buffers: upload, read-back, copies, pointers.
#include <cstring>
#include <utility>

#include "api.h"
#include "objects.h"
#include "strided.h"
#include "worker.h"

namespace fake_pjrt {
namespace {

constexpr std::pair<PJRT_Buffer_Type, DType> kTypes[] = {
    {PJRT_Buffer_Type_PRED, DType::kBool},         {PJRT_Buffer_Type_S8, DType::kI8},
    {PJRT_Buffer_Type_S16, DType::kI16},           {PJRT_Buffer_Type_S32, DType::kI32},
    {PJRT_Buffer_Type_S64, DType::kI64},           {PJRT_Buffer_Type_U8, DType::kU8},
    {PJRT_Buffer_Type_U16, DType::kU16},           {PJRT_Buffer_Type_U32, DType::kU32},
    {PJRT_Buffer_Type_U64, DType::kU64},           {PJRT_Buffer_Type_F16, DType::kF16},
    {PJRT_Buffer_Type_F32, DType::kF32},           {PJRT_Buffer_Type_F64, DType::kF64},
    {PJRT_Buffer_Type_BF16, DType::kBF16},         {PJRT_Buffer_Type_C64, DType::kC64},
    {PJRT_Buffer_Type_C128, DType::kC128},         {PJRT_Buffer_Type_F8E5M2, DType::kF8E5M2},
    {PJRT_Buffer_Type_F8E4M3FN, DType::kF8E4M3FN},
};

Error OutOfMemory(size_t bytes) { return {kResourceExhausted, "Out of memory allocating " + std::to_string(bytes) + " bytes"}; }

Error Deleted() { return Invalid("Buffer has been deleted or donated."); }

// The memory of a buffer that still has one.
Error Hold(PJRT_Buffer* buffer, std::shared_ptr<Memory>* memory) {
  std::lock_guard lock(buffer->mutex);
  if (!buffer->memory) return Deleted();
  *memory = buffer->memory;
  return {};
}

Error CheckedType(PJRT_Buffer_Type element, const int64_t* dims, size_t num_dims, Type* type) {
  type->dtype = FromPjrtType(element);
  if (type->dtype == DType::kInvalid)
    return {kUnimplemented, "the fake plugin does not store element type " + std::to_string(element)};
  type->dims.assign(dims, dims + num_dims);
  for (int64_t d : type->dims)
    if (d < 0) return Invalid("negative dimension");
  return {};
}

Error Place(PJRT_Client* client, PJRT_Device* device, PJRT_Memory* memory, PJRT_Device** place) {
  *place = memory ? memory->device : device ? device : client->devices[0];
  return (*place)->client == client ? Error{} : Invalid("the device belongs to another client");
}

// Layouts other than dense row-major are refused.
Error CheckLayout(const PJRT_Buffer_MemoryLayout* layout, const Type& type) {
  if (!layout) return {};
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled || layout->tiled.num_tiles != 0)
    return {kUnimplemented, "only untiled row-major layouts"};
  if (layout->tiled.minor_to_major_size != type.rank()) return Invalid("the layout has another rank than the buffer");
  for (size_t i = 0; i < type.rank(); ++i)
    if (layout->tiled.minor_to_major[i] != static_cast<int64_t>(type.rank() - 1 - i))
      return {kUnimplemented, "only row-major layouts"};
  return {};
}

// Reads host memory with byte strides (in elements they may be fractions, so rows are walked by bytes).
void CopyFromHost(const uint8_t* data, const Dims& byte_strides, const Type& type, uint8_t* to) {
  size_t item = tpu::ItemSize(type.dtype);
  if (type.numel() == 0) return;
  Dims index(type.rank());
  do {
    int64_t offset = 0;
    for (size_t d = 0; d < type.rank(); ++d) offset += index[d] * byte_strides[d];
    std::memcpy(to, data + offset, item);
    to += item;
  } while (NextIndex(type.dims, &index));
}

// When the source is ready and its turn comes: copy, then set the event. The caller's `dst` must live until then.
PJRT_Event* CopyOut(PJRT_Buffer* source, std::shared_ptr<Memory> memory, int64_t offset, size_t bytes, void* dst) {
  auto done = std::make_shared<Promise>();
  Worker::Get().RunOrSubmit(!source->ready->ready(),
                            [ready = source->ready, memory = std::move(memory), offset, bytes, dst, done] {
                              Error e = ready->Wait();
                              if (e.ok() && bytes > 0) std::memcpy(dst, memory->data() + offset, bytes);
                              done->Set(std::move(e));
                            });
  return NewEvent(done);
}

Error CopyTo(PJRT_Buffer* source, PJRT_Device* device, PJRT_Buffer** result) {
  std::shared_ptr<Memory> from;
  if (Error e = Hold(source, &from); !e.ok()) return e;
  size_t bytes = source->type.bytes();
  std::shared_ptr<Memory> to = Memory::AllocateCounted(bytes);
  if (!to) return OutOfMemory(bytes);
  auto ready = std::make_shared<Promise>();
  Worker::Get().RunOrSubmit(!source->ready->ready(), [source_ready = source->ready, from, to, bytes, ready] {
    Error e = source_ready->Wait();
    if (e.ok()) std::memcpy(to->data(), from->data(), bytes);
    ready->Set(std::move(e));
  });
  *result = new PJRT_Buffer(source->type, device, to, ready);
  return {};
}

}  // namespace

DType FromPjrtType(PJRT_Buffer_Type type) {
  for (auto [pjrt, dtype] : kTypes)
    if (pjrt == type) return dtype;
  return DType::kInvalid;
}

PJRT_Buffer_Type ToPjrtType(DType dtype) {
  for (auto [pjrt, d] : kTypes)
    if (d == dtype) return pjrt;
  return PJRT_Buffer_Type_INVALID;
}

// ---- creation

Error Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args* args) {
  Type type;
  if (Error e = CheckedType(args->type, args->dims, args->num_dims, &type); !e.ok()) return e;
  if (Error e = CheckLayout(args->device_layout, type); !e.ok()) return e;
  PJRT_Device* device;
  if (Error e = Place(args->client, args->device, args->memory, &device); !e.ok()) return e;
  size_t bytes = type.bytes(), item = tpu::ItemSize(type.dtype);
  Dims dense = RowMajorStrides(type.dims), strides;
  for (int64_t& s : dense) s *= static_cast<int64_t>(item);
  strides = dense;
  if (args->byte_strides) {
    if (args->num_byte_strides != type.rank()) return Invalid("num_byte_strides is not the rank");
    strides.assign(args->byte_strides, args->byte_strides + type.rank());
  }
  bool is_dense = true;
  for (size_t d = 0; d < type.rank(); ++d) is_dense &= strides[d] == dense[d] || type.dims[d] == 1;
  if (!args->data && bytes > 0) return Invalid("no data");

  auto semantics = args->host_buffer_semantics;
  bool zero_copy =
      semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy || semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
  if (zero_copy && is_dense && bytes > 0 && reinterpret_cast<uintptr_t>(args->data) % 64 == 0) {
    auto released = std::make_shared<Promise>();
    auto memory = Memory::Borrow(const_cast<void*>(args->data), bytes, semantics == PJRT_HostBufferSemantics_kMutableZeroCopy,
                                 [released] { released->Set({}); });
    args->buffer = new PJRT_Buffer(type, device, memory, ReadyPromise());
    args->done_with_host_buffer = NewEvent(released);
    return {};
  }
  std::shared_ptr<Memory> memory = Memory::AllocateCounted(bytes);
  if (!memory) return OutOfMemory(bytes);
  const auto* data = static_cast<const uint8_t*>(args->data);
  if (semantics == PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes) {
    auto ready = std::make_shared<Promise>();
    if (ControlState::Get().delay_us >= 0 || args->client->asynchronous) std::memset(memory->data(), 0xFD, bytes);
    Worker::Get().RunOrSubmit(args->client->asynchronous, [data, strides, type, memory, ready] {
      CopyFromHost(data, strides, type, memory->data());
      ready->Set({});
    });
    args->buffer = new PJRT_Buffer(type, device, memory, ready);
    args->done_with_host_buffer = NewEvent(ready);
    return {};
  }
  CopyFromHost(data, strides, type, memory->data());
  args->buffer = new PJRT_Buffer(type, device, memory, ReadyPromise());
  args->done_with_host_buffer = NewEvent(ReadyPromise());
  return {};
}

Error Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args* args) {
  Type type;
  if (Error e = CheckedType(args->shape_element_type, args->shape_dims, args->shape_num_dims, &type); !e.ok()) return e;
  if (Error e = CheckLayout(args->shape_layout, type); !e.ok()) return e;
  PJRT_Device* device;
  if (Error e = Place(args->client, args->device, args->memory, &device); !e.ok()) return e;
  std::shared_ptr<Memory> memory = Memory::AllocateCounted(type.bytes());
  if (!memory) return OutOfMemory(type.bytes());
  std::memset(memory->data(), 0xFD, type.bytes());
  args->buffer = new PJRT_Buffer(type, device, memory, ReadyPromise());
  return {};
}

Error Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args* args) {
  Type type;
  if (Error e = CheckedType(args->element_type, args->dims, args->num_dims, &type); !e.ok()) return e;
  if (Error e = CheckLayout(args->layout, type); !e.ok()) return e;
  if (reinterpret_cast<uintptr_t>(args->device_buffer_ptr) % 64) return Invalid("a view of memory that is not 64-byte aligned");
  PJRT_Device* device;
  if (Error e = Place(args->client, args->device, args->memory, &device); !e.ok()) return e;
  auto release = [callback = args->on_delete_callback, pointer = args->device_buffer_ptr, arg = args->on_delete_callback_arg] {
    if (callback) callback(pointer, arg);
  };
  args->buffer =
      new PJRT_Buffer(type, device, Memory::Borrow(args->device_buffer_ptr, type.bytes(), false, release), ReadyPromise());
  return {};
}

Error Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args* args) {
  return CopyTo(args->buffer, args->dst_device, &args->dst_buffer);
}

Error Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args* args) {
  return CopyTo(args->buffer, args->dst_memory->device, &args->dst_buffer);
}

// ---- end of life

Error Buffer_Destroy(PJRT_Buffer_Destroy_Args* args) {
  delete args->buffer;
  return {};
}

Error Buffer_Delete(PJRT_Buffer_Delete_Args* args) {
  std::shared_ptr<Memory> memory;  // released outside of the lock: it may run the host's callback
  std::lock_guard lock(args->buffer->mutex);
  memory = std::move(args->buffer->memory);
  return {};
}

Error Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args* args) {
  std::lock_guard lock(args->buffer->mutex);
  args->is_deleted = !args->buffer->memory;
  return {};
}

// ---- what a buffer is

Error Buffer_ElementType(PJRT_Buffer_ElementType_Args* args) {
  args->type = ToPjrtType(args->buffer->type.dtype);
  return {};
}

Error Buffer_Dimensions(PJRT_Buffer_Dimensions_Args* args) {
  args->dims = args->buffer->type.dims.data();
  args->num_dims = args->buffer->type.rank();
  return {};
}

Error Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args* args) {
  args->unpadded_dims = args->buffer->type.dims.data();
  args->num_dims = args->buffer->type.rank();
  return {};
}

Error Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args* args) {
  args->dynamic_dim_indices = nullptr;
  args->num_dynamic_dims = 0;
  return {};
}

Error Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args* args) {
  PJRT_Buffer* buffer = args->buffer;
  std::lock_guard lock(buffer->mutex);
  size_t rank = buffer->type.rank();
  if (buffer->minor_to_major.size() != rank)
    for (size_t i = rank; i-- > 0;) buffer->minor_to_major.push_back(static_cast<int64_t>(i));
  args->layout = {};
  args->layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
  args->layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args->layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
  args->layout.tiled.minor_to_major = buffer->minor_to_major.data();
  args->layout.tiled.minor_to_major_size = rank;
  return {};
}

Error Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args* args) {
  std::shared_ptr<Memory> memory;
  if (Error e = Hold(args->buffer, &memory); !e.ok()) return e;
  args->on_device_size_in_bytes = memory->size();
  return {};
}

Error Buffer_Device(PJRT_Buffer_Device_Args* args) {
  args->device = args->buffer->device;
  return {};
}

Error Buffer_Memory(PJRT_Buffer_Memory_Args* args) {
  args->memory = &args->buffer->device->memory;
  return {};
}

Error Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args* args) {
  args->is_on_cpu = true;
  return {};
}

// ---- content

Error Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args* args) {
  std::shared_ptr<Memory> memory;
  if (Error e = Hold(args->buffer, &memory); !e.ok()) return e;
  args->event = NewEvent(args->buffer->ready);
  return {};
}

Error Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args* args) {
  std::shared_ptr<Memory> memory;
  if (Error e = Hold(args->src, &memory); !e.ok()) return e;
  if (Error e = CheckLayout(args->host_layout, args->src->type); !e.ok()) return e;
  size_t bytes = args->src->type.bytes();
  if (!args->dst) {
    args->dst_size = bytes;
    return {};
  }
  if (args->dst_size < bytes)
    return Invalid("`dst_size` must be >= " + std::to_string(bytes) + ", got " + std::to_string(args->dst_size));
  args->event = CopyOut(args->src, memory, 0, bytes, args->dst);
  return {};
}

Error Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args* args) {
  std::shared_ptr<Memory> memory;
  if (Error e = Hold(args->buffer, &memory); !e.ok()) return e;
  if (args->offset < 0 || args->transfer_size < 0 || args->offset + args->transfer_size > static_cast<int64_t>(memory->size()))
    return Invalid("the range lies outside of the buffer");
  args->event = CopyOut(args->buffer, memory, args->offset, static_cast<size_t>(args->transfer_size), args->dst);
  return {};
}

Error Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args* args) {
  std::shared_ptr<Memory> memory;
  if (Error e = Hold(args->buffer, &memory); !e.ok()) return e;
  args->buffer_pointer = reinterpret_cast<uintptr_t>(memory->data());
  return {};
}

Error Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args* args) {
  std::shared_ptr<Memory> memory;
  if (Error e = Hold(args->buffer, &memory); !e.ok()) return e;
  args->device_memory_ptr = memory->data();
  return {};
}

Error Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args* args) {
  std::lock_guard lock(args->buffer->mutex);
  if (!args->buffer->memory) return Deleted();
  ++args->buffer->external_references;
  return {};
}

Error Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args* args) {
  std::lock_guard lock(args->buffer->mutex);
  if (args->buffer->external_references == 0) return Invalid("the external reference count is already zero");
  --args->buffer->external_references;
  return {};
}

}  // namespace fake_pjrt
