// SPDX-License-Identifier: Apache-2.0
// The functions behind the table of GetPjrtApi, under the names of the table. Each is entered with its struct size
// checked and after the control surface had its say (api.cc).
#pragma once
#include "error.h"
#include "pjrt_c_api.h"

namespace fake_pjrt {

// FALLIBLE(name): implemented, may fail. DESTROY(name): implemented, never made to fail. MISSING(name): UNIMPLEMENTED.
// clang-format off
#define FAKE_PJRT_FUNCTIONS(FALLIBLE, DESTROY, MISSING)                                                               \
  FALLIBLE(Plugin_Initialize) FALLIBLE(Plugin_Attributes) DESTROY(Event_Destroy) FALLIBLE(Event_IsReady)              \
  FALLIBLE(Event_Error) FALLIBLE(Event_Await) FALLIBLE(Event_OnReady) FALLIBLE(Client_Create)                         \
  DESTROY(Client_Destroy) FALLIBLE(Client_PlatformName) FALLIBLE(Client_ProcessIndex)                                 \
  FALLIBLE(Client_PlatformVersion) FALLIBLE(Client_Devices) FALLIBLE(Client_AddressableDevices)                       \
  FALLIBLE(Client_LookupDevice) FALLIBLE(Client_LookupAddressableDevice) FALLIBLE(Client_AddressableMemories)         \
  FALLIBLE(Client_Compile) FALLIBLE(Client_DefaultDeviceAssignment) FALLIBLE(Client_BufferFromHostBuffer)             \
  FALLIBLE(DeviceDescription_Id) FALLIBLE(DeviceDescription_ProcessIndex) FALLIBLE(DeviceDescription_Attributes)      \
  FALLIBLE(DeviceDescription_Kind) FALLIBLE(DeviceDescription_DebugString) FALLIBLE(DeviceDescription_ToString)       \
  FALLIBLE(Device_GetDescription) FALLIBLE(Device_IsAddressable) FALLIBLE(Device_LocalHardwareId)                     \
  FALLIBLE(Device_AddressableMemories) FALLIBLE(Device_DefaultMemory) FALLIBLE(Device_MemoryStats)                    \
  FALLIBLE(Memory_Id) FALLIBLE(Memory_Kind) FALLIBLE(Memory_Kind_Id) FALLIBLE(Memory_DebugString)                     \
  FALLIBLE(Memory_ToString) FALLIBLE(Memory_AddressableByDevices) DESTROY(Executable_Destroy)                         \
  FALLIBLE(Executable_Name) FALLIBLE(Executable_NumReplicas) FALLIBLE(Executable_NumPartitions)                       \
  FALLIBLE(Executable_NumOutputs) FALLIBLE(Executable_SizeOfGeneratedCodeInBytes)                                     \
  FALLIBLE(Executable_OutputMemoryKinds) FALLIBLE(Executable_OptimizedProgram) FALLIBLE(Executable_Serialize)         \
  FALLIBLE(Executable_OutputElementTypes) FALLIBLE(Executable_OutputDimensions) FALLIBLE(Executable_Fingerprint)      \
  FALLIBLE(Executable_GetCompiledMemoryStats) FALLIBLE(Executable_DeserializeAndLoad)                                 \
  DESTROY(LoadedExecutable_Destroy) FALLIBLE(LoadedExecutable_GetExecutable)                                          \
  FALLIBLE(LoadedExecutable_AddressableDevices) FALLIBLE(LoadedExecutable_Delete)                                     \
  FALLIBLE(LoadedExecutable_IsDeleted) FALLIBLE(LoadedExecutable_Execute) FALLIBLE(LoadedExecutable_Fingerprint)      \
  DESTROY(Buffer_Destroy) FALLIBLE(Buffer_ElementType) FALLIBLE(Buffer_Dimensions)                                    \
  FALLIBLE(Buffer_UnpaddedDimensions) FALLIBLE(Buffer_DynamicDimensionIndices) FALLIBLE(Buffer_GetMemoryLayout)       \
  FALLIBLE(Buffer_OnDeviceSizeInBytes) FALLIBLE(Buffer_Device) FALLIBLE(Buffer_Memory) FALLIBLE(Buffer_Delete)        \
  FALLIBLE(Buffer_IsDeleted) FALLIBLE(Buffer_CopyToDevice) FALLIBLE(Buffer_CopyToMemory)                              \
  FALLIBLE(Buffer_ToHostBuffer) FALLIBLE(Buffer_CopyRawToHost) FALLIBLE(Buffer_IsOnCpu)                               \
  FALLIBLE(Buffer_ReadyEvent) FALLIBLE(Buffer_UnsafePointer) FALLIBLE(Buffer_IncreaseExternalReferenceCount)          \
  FALLIBLE(Buffer_DecreaseExternalReferenceCount) FALLIBLE(Buffer_OpaqueDeviceMemoryDataPointer)                      \
  FALLIBLE(Client_CreateUninitializedBuffer) FALLIBLE(Client_CreateViewOfDeviceBuffer)                                \
  FALLIBLE(ExecuteContext_Create) DESTROY(ExecuteContext_Destroy) MISSING(Executable_GetCostAnalysis)                 \
  MISSING(CopyToDeviceStream_Destroy) MISSING(CopyToDeviceStream_AddChunk) MISSING(CopyToDeviceStream_TotalBytes)     \
  MISSING(CopyToDeviceStream_GranuleSize) MISSING(CopyToDeviceStream_CurrentBytes)                                    \
  MISSING(TopologyDescription_Create) MISSING(TopologyDescription_Destroy)                                            \
  MISSING(TopologyDescription_PlatformName) MISSING(TopologyDescription_PlatformVersion)                              \
  MISSING(TopologyDescription_GetDeviceDescriptions) MISSING(TopologyDescription_Serialize)                           \
  MISSING(TopologyDescription_Attributes) MISSING(TopologyDescription_Deserialize) MISSING(Compile)                   \
  MISSING(Client_TopologyDescription) MISSING(AsyncHostToDeviceTransferManager_Destroy)                               \
  MISSING(AsyncHostToDeviceTransferManager_TransferData) MISSING(Client_CreateBuffersForAsyncHostToDevice)            \
  MISSING(AsyncHostToDeviceTransferManager_RetrieveBuffer) MISSING(AsyncHostToDeviceTransferManager_Device)           \
  MISSING(AsyncHostToDeviceTransferManager_BufferCount) MISSING(AsyncHostToDeviceTransferManager_BufferSize)          \
  MISSING(AsyncHostToDeviceTransferManager_SetBufferError) MISSING(AsyncHostToDeviceTransferManager_AddMetadata)      \
  MISSING(Client_DmaMap) MISSING(Client_DmaUnmap) MISSING(Client_UpdateGlobalProcessInfo)                             \
  MISSING(Client_CreateAliasBuffer) MISSING(Client_FulfillAliasBuffer)                                                \
  MISSING(LoadedExecutable_GetDeviceAssignment)
// clang-format on

#define FAKE_PJRT_DECLARE(name) Error name(PJRT_##name##_Args* args);
#define FAKE_PJRT_NOTHING(name)
FAKE_PJRT_FUNCTIONS(FAKE_PJRT_DECLARE, FAKE_PJRT_DECLARE, FAKE_PJRT_NOTHING)
#undef FAKE_PJRT_DECLARE
#undef FAKE_PJRT_NOTHING

// The complaint about a caller's struct that ends before ours; success otherwise.
Error CheckStructSize(const char* name, size_t expected, size_t actual);

}  // namespace fake_pjrt
