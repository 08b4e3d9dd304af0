// SPDX-License-Identifier: Apache-2.0
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/csrc/Event.h>
#include <torch/csrc/utils/pybind.h>

#include "aten/autocast.h"
#include "aten/availability.h"
#include "aten/device.h"
#include "aten/errors.h"
#include "aten/fallback.h"
#include "aten/generator.h"
#include "aten/register.h"
#include "aten/stream.h"
#include "aten/tensor.h"
#include "bindings/init.h"
#include "engine/runtime.h"
#include "engine/value.h"

namespace tpu::bindings {
namespace py = pybind11;
namespace {

using aten::CheckedDevice;
using aten::CurrentDevice;
using c10::CachingAllocator::StatArray;

c10::DeviceAllocator& TheAllocator() { return *c10::getDeviceAllocator(aten::kDeviceType); }

int ExchangeDevice(int device) {
  int before = CurrentDevice();
  aten::SetCurrentDevice(CheckedDevice(device));
  return before;
}

// torch.Event.elapsed_time refuses subclasses of torch.Event as its argument.
double EventElapsedTime(const py::object& start, const py::object& end) {
  if (!THPEvent_Check(start.ptr()) || !THPEvent_Check(end.ptr())) throw py::type_error("expected two torch.Event objects");
  const c10::Event& first = reinterpret_cast<THPEvent*>(start.ptr())->event;
  const c10::Event& second = reinterpret_cast<THPEvent*>(end.ptr())->event;
  py::gil_scoped_release no_gil;
  return first.elapsedTime(second);
}

// By the keys of torch.cuda.memory_stats.
std::map<std::string, int64_t> MemoryStats(int device) {
  c10::CachingDeviceAllocator::DeviceStats stats = TheAllocator().getDeviceStats(static_cast<c10::DeviceIndex>(device));
  std::map<std::string, int64_t> flat;
  auto add = [&](const char* name, const StatArray& array) {
    static constexpr const char* kPools[] = {"all", "small_pool", "large_pool"};
    for (size_t i = 0; i < array.size(); ++i) {
      std::string prefix = std::string(name) + "." + kPools[i] + ".";
      flat[prefix + "current"] = array[i].current;
      flat[prefix + "peak"] = array[i].peak;
      flat[prefix + "allocated"] = array[i].allocated;
      flat[prefix + "freed"] = array[i].freed;
    }
  };
  add("allocation", stats.allocation);
  add("segment", stats.segment);
  add("active", stats.active);
  add("inactive_split", stats.inactive_split);
  add("allocated_bytes", stats.allocated_bytes);
  add("reserved_bytes", stats.reserved_bytes);
  add("active_bytes", stats.active_bytes);
  add("inactive_split_bytes", stats.inactive_split_bytes);
  add("requested_bytes", stats.requested_bytes);
  flat["num_alloc_retries"] = stats.num_alloc_retries;
  flat["num_ooms"] = stats.num_ooms;
  return flat;
}

// Where the bytes of a tensor's storage lie on the host; 0 when it has none yet, or the engine's memory is elsewhere.
uintptr_t BufferPointer(const at::Tensor& tensor) {
  engine::ValueRef value(aten::CellOf(tensor)->Load());
  aten::ThrowIfError(engine::Wait(value.get()));
  return reinterpret_cast<uintptr_t>(engine::HostPointer(value.get()));
}

std::map<std::string, uint64_t> FallbackCounts() {
  auto counts = aten::FallbackCounts();
  return {counts.begin(), counts.end()};
}

}  // namespace

void InitAten(py::module_& m) {
  aten::EnsureAutocastDtype();
  aten::RegisterOperators();  // our own kernels have registered themselves by now
  m.def("is_available", &aten::IsAvailable);
  m.def("current_device", &CurrentDevice);
  m.def("set_device", [](int device) { aten::SetCurrentDevice(CheckedDevice(device)); });
  m.def("exchange_device", &ExchangeDevice);
  m.def("default_generator", [](int device) { return aten::DefaultGenerator(device); });
  m.def("event_elapsed_time", &EventElapsedTime, py::arg("start"), py::arg("end"));
  m.def("stream_priority", [](int64_t id) { return aten::PriorityOf(id); });

  m.def("memory_stats", &MemoryStats);
  m.def("reset_peak_memory_stats", [](int device) { TheAllocator().resetPeakStats(static_cast<c10::DeviceIndex>(device)); });
  m.def("reset_accumulated_memory_stats",
        [](int device) { TheAllocator().resetAccumulatedStats(static_cast<c10::DeviceIndex>(device)); });
  m.def("ensure_autocast_dtype", &aten::EnsureAutocastDtype);
  m.def("empty_cache", [] { TheAllocator().emptyCache(); }, ReleaseGil());
  m.def(
      "mem_get_info", [](int device) { return TheAllocator().getMemoryInfo(static_cast<c10::DeviceIndex>(device)); },
      ReleaseGil());

  m.def("buffer_pointer", &BufferPointer, ReleaseGil());
  m.def("fallback_counts", &FallbackCounts);
}

}  // namespace tpu::bindings
