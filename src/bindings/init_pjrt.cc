// SPDX-License-Identifier: Apache-2.0
#include <ATen/EmptyTensor.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>

#include "aten/availability.h"
#include "aten/errors.h"
#include "aten/tensor.h"
#include "bindings/init.h"
#include "bindings/python_hooks.h"
#include "engine/runtime.h"
#include "pjrt/client.h"

namespace tpu::bindings {
namespace py = pybind11;
namespace {

using aten::ThrowIfError;
using aten::ValueOrThrow;

void WaitFor(pjrt::Event event, bool interruptible) {
  while (ValueOrThrow(event.WaitFor(std::chrono::milliseconds(50))) == pjrt::WaitOutcome::kTimedOut) {
    if (interruptible && !ContinueWaiting()) ThrowInterrupt();
  }
}

pjrt::Buffer ToBuffer(const pjrt::Client& client, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().is_cpu(), "run_stablehlo takes CPU tensors, got one on ", tensor.device());
  DType dtype = aten::FromScalarType(tensor.scalar_type());
  TORCH_CHECK_TYPE(dtype != DType::kInvalid, "the device has no ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.dim() <= kMaxRank, "at most ", kMaxRank, " dimensions, got ", tensor.dim());
  int64_t strides[kMaxRank];
  for (int64_t i = 0; i < tensor.dim(); ++i) strides[i] = tensor.stride(i) * static_cast<int64_t>(tensor.itemsize());
  return ValueOrThrow(client.BufferFromHost(tensor.const_data_ptr(), TensorType::Of(dtype, tensor.sizes()), 0,
                                            pjrt::HostBufferSemantics::kImmutableOnlyDuringCall, strides));
}

at::Tensor ToTensor(const pjrt::Client& client, const pjrt::Buffer& buffer, const TensorType& type) {
  TORCH_CHECK(type.dtype != DType::kInvalid, "the program returns a type that torch does not have");
  std::vector<int64_t> sizes(type.begin(), type.end());
  at::Tensor tensor(at::detail::empty_cpu(sizes, aten::ToScalarType(type.dtype)));
  WaitFor(ValueOrThrow(buffer.ReadyEvent()), /*interruptible=*/true);
  if (type.bytes() == 0) return tensor;
  if (client.profile().host_addressable) {
    std::memcpy(tensor.mutable_data_ptr(), ValueOrThrow(buffer.HostPointer()), type.bytes());
  } else {
    // The plugin writes to the tensor until it is done.
    WaitFor(ValueOrThrow(buffer.CopyToHost(tensor.mutable_data_ptr(), type.bytes())), /*interruptible=*/false);
  }
  return tensor;
}

// A program given as text, past everything that torch_tpu does: what the plugin itself makes of it.
std::vector<at::Tensor> RunStableHlo(const std::string& text, const std::vector<at::Tensor>& inputs) {
  const pjrt::Client& client = ValueOrThrow(engine::Runtime::Get())->client();
  std::vector<pjrt::Buffer> arguments;
  std::vector<PJRT_Buffer*> argument_handles;
  for (const at::Tensor& tensor : inputs) {
    arguments.push_back(ToBuffer(client, tensor));
    argument_handles.push_back(arguments.back().get());
  }
  auto program = ValueOrThrow(client.Compile(text, client.DefaultCompileOptions()));
  std::vector<PJRT_Buffer*> output_handles(program.num_outputs());
  ThrowIfError(program.Execute(argument_handles.data(), argument_handles.size(), nullptr, 0, client.devices()[0].device,
                               output_handles.data()));
  std::vector<pjrt::Buffer> outputs;
  for (PJRT_Buffer* handle : output_handles) outputs.emplace_back(client.api(), handle);
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) results.push_back(ToTensor(client, outputs[i], program.output_types()[i]));
  return results;
}

py::dict PluginInfo() {
  engine::Runtime* runtime;
  {
    py::gil_scoped_release no_gil;
    runtime = ValueOrThrow(engine::Runtime::Get());
  }
  py::dict attributes;
  for (const auto& attribute : runtime->plugin().attributes()) attributes[py::str(attribute.name)] = attribute.value;
  py::dict info;
  info["path"] = runtime->plugin().path();
  info["minor"] = runtime->plugin().minor_version();
  info["attributes"] = attributes;
  info["extensions"] = runtime->plugin().extensions();
  info["profile"] = runtime->profile().name;
  return info;
}

}  // namespace

void InitPjrt(py::module_& m) {
  m.def("tpu_on_bus", &aten::TpuOnBus);
  m.def("plugin_info", &PluginInfo);
  m.def("run_stablehlo", &RunStableHlo, py::arg("text"), py::arg("inputs"), ReleaseGil());
}

}  // namespace tpu::bindings
