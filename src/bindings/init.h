// SPDX-License-Identifier: Apache-2.0
// The extension module torch_tpu._C: private to the Python package. One function a room adds that room's names.
// Exceptions of c10 pass through every binding unchanged (module.cc translates them).
#pragma once
#include <pybind11/pybind11.h>

namespace tpu::bindings {

void InitBase(pybind11::module_& m);
void InitPjrt(pybind11::module_& m);
void InitLower(pybind11::module_& m);
void InitEngine(pybind11::module_& m);
void InitAten(pybind11::module_& m);
void InitCompile(pybind11::module_& m);

using ReleaseGil = pybind11::call_guard<pybind11::gil_scoped_release>;

}  // namespace tpu::bindings
