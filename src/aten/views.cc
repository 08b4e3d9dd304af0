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

#include "aten/allocator.h"
#include "aten/copy.h"
#include "aten/errors.h"
#include "aten/tensor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

using at::Tensor;

// The first tensor starts the engine: whoever has none learns it here, not at the first operation.
int StartedDevice(std::optional<at::Device> device) {
  const int index = DeviceIndexOf(device);
  if (__builtin_expect(!engine::Runtime::IsStarted() || engine::InBadFork(), 0)) ThrowIfError(engine::Runtime::Get().status());
  return index;
}

// A tensor of nothing: its value is undefined but has a type, so that the first program that touches part of it sees
// elements, not bytes.
Tensor Undefined(c10::IntArrayRef sizes, const int64_t* strides, c10::ScalarType dtype, int device) {
  int64_t bytes = static_cast<int64_t>(c10::elementSize(dtype));
  bool odd = strides || sizes.size() > static_cast<size_t>(kMaxRank);
  for (int64_t s : sizes) odd |= __builtin_mul_overflow(bytes, s, &bytes);
  if (__builtin_expect(!odd && bytes, 1)) {
    CheckRoom(static_cast<size_t>(bytes), device);
    engine::Value* value =
        engine::NewValue(TensorType::Of(FromScalarType(dtype), sizes), device, engine::ValueState::kUndefined);
    return MakeTensor(sizes, nullptr, dtype, device, value);
  }
  Tensor t = MakeTensor(sizes, strides, dtype, device, nullptr);
  TensorType type;
  if (t.storage().nbytes() && CoversStorage(t, &type))
    CellOf(t)->Swap(engine::NewValue(type, device, engine::ValueState::kUndefined));
  return t;
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
  if (__builtin_expect(
          at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory(), 0))
    at::native::fill_empty_deterministic_(t);
  return t;
}

Tensor EmptyMemoryFormat(c10::IntArrayRef sizes, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pin_memory,
                         std::optional<c10::MemoryFormat> memory_format) {
  CheckOptions(layout, pin_memory);
  const c10::ScalarType type = CheckedDType(dtype);
  at::detail::check_size_nonnegative(sizes);
  const int index = StartedDevice(device);
  Tensor t;
  if (__builtin_expect(!memory_format || *memory_format == c10::MemoryFormat::Contiguous, 1)) {
    t = Undefined(sizes, nullptr, type, index);
  } else {
    TORCH_CHECK(*memory_format != c10::MemoryFormat::Preserve, "memory format option is only supported by strided tensors");
    // The undefined value is made for the final strides: its dimensions are in memory order.
    auto shape = c10::make_intrusive<c10::TensorImpl>(c10::DispatchKeySet(c10::DispatchKey::Meta),
                                                      c10::scalarTypeToTypeMeta(type), c10::Device(c10::kMeta));
    shape->set_sizes_contiguous(sizes);
    shape->empty_tensor_restride(*memory_format);
    t = Undefined(sizes, shape->strides().data(), type, index);
  }
  return FillIfDeterministic(t);
}

Tensor EmptyStrided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<c10::ScalarType> dtype,
                    std::optional<c10::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  CheckOptions(layout, pin_memory);
  const c10::ScalarType type = CheckedDType(dtype);
  at::detail::check_size_nonnegative(sizes);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
              ") must match dimensionality of strides (", strides.size(), ")");
  for (int64_t s : strides)
    TORCH_CHECK(s >= 0, "as_strided: Negative strides are not supported at the moment, got strides: ", strides);
  Tensor t = Undefined(sizes, strides.data(), type, StartedDevice(device));
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
