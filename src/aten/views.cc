// SPDX-License-Identifier: Apache-2.0
// Tensors without values, and views: metadata only, nothing here launches a program.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#define AT_PER_OPERATOR_HEADERS
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "aten/errors.h"
#include "aten/tensor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

using at::Tensor;

// The first tensor starts the engine: whoever has none learns it here, not at the first operation.
int StartedDevice(std::optional<at::Device> device) {
  if (__builtin_expect(!engine::Runtime::IsStarted() || engine::InBadFork(), 0))
    ThrowIfError(engine::Runtime::Get().status());
  const int index = DeviceIndexOf(device);
  TORCH_CHECK(index >= 0 && index < engine::Runtime::DeviceCount(), "tpu device ordinal ", index,
              " is out of range: this process has ", engine::Runtime::DeviceCount(), " device(s)");
  return index;
}

c10::ScalarType CheckedDType(std::optional<c10::ScalarType> dtype) {
  const c10::ScalarType type = dtype ? *dtype : c10::typeMetaToScalarType(c10::get_default_dtype());
  if (__builtin_expect(FromScalarType(type) == DType::kInvalid, 0))
    C10_THROW_ERROR(TypeError, c10::str("the tpu device does not support the dtype ", c10::toString(type)));
  return type;
}

void CheckOptions(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(!layout || *layout == c10::kStrided, "the tpu device has strided tensors only, not ", *layout);
  TORCH_CHECK(!pin_memory || !*pin_memory, "Only dense CPU tensors can be pinned");
}

Tensor& FillIfDeterministic(Tensor& t) {
  if (__builtin_expect(at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory(), 0))
    at::native::fill_empty_deterministic_(t);
  return t;
}

Tensor EmptyMemoryFormat(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pin_memory,
                         std::optional<c10::MemoryFormat> memory_format) {
  CheckOptions(layout, pin_memory);
  const c10::ScalarType type = CheckedDType(dtype);
  at::detail::check_size_nonnegative(sizes);
  at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(type));  // raises on overflow
  const int index = StartedDevice(device);
  Tensor t;
  if (__builtin_expect(!memory_format || *memory_format == c10::MemoryFormat::Contiguous, 1)) {
    t = MakeTensor(sizes, nullptr, type, index, nullptr);
  } else {
    TORCH_CHECK(*memory_format != c10::MemoryFormat::Preserve, "memory format option is only supported by strided tensors");
    // The undefined value is made for the final strides: its dimensions are in memory order.
    auto shape = c10::make_intrusive<c10::TensorImpl>(c10::DispatchKeySet(c10::DispatchKey::Meta),
                                                      c10::scalarTypeToTypeMeta(type), c10::Device(c10::kMeta));
    shape->set_sizes_contiguous(sizes);
    shape->empty_tensor_restride(*memory_format);
    t = MakeTensor(sizes, shape->strides().data(), type, index, nullptr);
  }
  return FillIfDeterministic(t);
}

Tensor EmptyStrided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<c10::ScalarType> dtype,
                    std::optional<c10::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  CheckOptions(layout, pin_memory);
  const c10::ScalarType type = CheckedDType(dtype);
  at::detail::check_size_nonnegative(sizes);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(), ") must match dimensionality of strides (",
              strides.size(), ")");
  for (int64_t s : strides)
    TORCH_CHECK(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", strides);
  at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(type));  // raises on overflow
  Tensor t = MakeTensor(sizes, strides.data(), type, StartedDevice(device), nullptr);
  return FillIfDeterministic(t);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &EmptyMemoryFormat);
  m.impl("empty_strided", &EmptyStrided);
  // Every other view is one of these, or metadata that core handles alone.
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
}

}  // namespace tpu::aten
