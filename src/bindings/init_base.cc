// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <string_view>

#include "base/settings.h"
#include "bindings/init.h"
#include "engine/runtime.h"

namespace tpu::bindings {
namespace py = pybind11;
namespace {

std::vector<py::dict> ListAll() {
  std::vector<py::dict> list;
  for (const SettingInfo& s : ListSettings()) {
    list.push_back(py::dict(py::arg("name") = s.name, py::arg("value") = s.value, py::arg("default_value") = s.default_value,
                            py::arg("choices") = s.choices, py::arg("help") = s.help, py::arg("is_int") = s.is_int));
  }
  return list;
}

std::string ValueOf(const std::string& name) {
  for (const SettingInfo& s : ListSettings())
    if (s.name == name) return s.value;
  return "";
}

void Set(const std::string& name, const std::string& value) {
  for (std::string_view early : {"engine", "plugin_path", "cpu_plugin", "device_count"}) {
    if (name == early && engine::Runtime::IsStarted() && ValueOf(name) != value)
      throw std::runtime_error("setting " + name + " must be changed before the tpu device is first used");
  }
  if (Status status = SetSetting(name, value); !status.ok()) throw py::value_error(status.message());
}

}  // namespace

void InitBase(py::module_& m) {
  m.def("settings", &ListAll);
  m.def("set_setting", &Set, py::arg("name"), py::arg("value"));
}

}  // namespace tpu::bindings
