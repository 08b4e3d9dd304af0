// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "aten/device.h"
#include "aten/errors.h"
#include "aten/stream.h"
#include "bindings/init.h"
#include "engine/corridor.h"
#include "engine/counters.h"
#include "engine/memory.h"
#include "engine/runtime.h"

namespace tpu::bindings {
namespace py = pybind11;
namespace {

using aten::CheckedOrCurrentDevice;

engine::Runtime& Started() { return *aten::ValueOrThrow(engine::Runtime::Get()); }

void Synchronize(int device) {
  CheckedOrCurrentDevice(device);
  aten::SynchronizeQueue();
}

py::dict DeviceProperties(int device) {
  engine::Runtime* runtime;
  {
    py::gil_scoped_release no_gil;
    runtime = &Started();
    device = CheckedOrCurrentDevice(device);
  }
  const pjrt::Client& client = runtime->client();
  const std::string& kind = client.devices()[static_cast<size_t>(device)].kind;
  bool is_cpu = runtime->profile().kind == pjrt::EngineKind::kCpu;
  py::dict properties;
  properties["name"] = is_cpu ? "XLA:CPU" : kind;
  properties["kind"] = kind;
  properties["total_memory"] = engine::MemoryLimit(device);
  properties["platform"] = client.platform_name();
  properties["platform_version"] = client.platform_version();
  return properties;
}

}  // namespace

void InitEngine(py::module_& m) {
  m.def("init", [] { Started(); }, ReleaseGil());
  m.def("is_initialized", &engine::Runtime::IsStarted);
  m.def("in_bad_fork", &engine::InBadFork);
  // Starts the engine; "" when it runs.
  m.def("start_error", [] { return engine::Runtime::Get().status().message(); }, ReleaseGil());
  m.def("set_plugin_search_path", &engine::Runtime::SetPluginSearchPath);
  m.def("device_count", &engine::Runtime::DeviceCount);
  m.def("device_properties", &DeviceProperties);
  m.def("synchronize", &Synchronize, py::arg("device") = -1, ReleaseGil());
  m.def("shutdown", &engine::Shutdown, ReleaseGil());

  m.def("counters", &engine::ReadCounters);
  m.def("reset_counters", &engine::ResetCounters);
  m.def("explain_last_miss", &engine::ExplainLastMiss);
}

}  // namespace tpu::bindings
