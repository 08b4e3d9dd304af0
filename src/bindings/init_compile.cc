// SPDX-License-Identifier: Apache-2.0
// torch_tpu._C.capture and what it returns, for torch_tpu.compile.
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <optional>
#include <vector>

#include "aten/compiled_graph.h"
#include "bindings/init.h"

namespace tpu::bindings {
namespace py = pybind11;
namespace {

using aten::CompiledGraph;

bool IsTensor(const py::handle& h) { return THPVariable_Check(h.ptr()); }

// A captured function of any Python arguments: tensors are inputs, all else has to be equal at a call.
class Captured {
 public:
  Captured(const py::function& function, const py::sequence& arguments, const py::object& error) {
    CompiledGraph::Tensors inputs;
    for (const py::handle& a : arguments) {
      is_tensor_.push_back(IsTensor(a));
      if (is_tensor_.back())
        inputs.push_back(THPVariable_Unpack(a.ptr()));
      else
        others_.push_back(py::reinterpret_borrow<py::object>(a));
    }
    std::string why;
    auto run = [&](const CompiledGraph::Tensors& placeholders) { return Run(function, placeholders); };
    try {
      graph_ = CompiledGraph::Capture(inputs, run, &why);
    } catch (...) {
      if (why.empty()) throw;
    }
    if (!why.empty()) {
      PyErr_Clear();
      PyErr_SetString(error.ptr(), why.c_str());
      throw py::error_already_set();
    }
  }

  py::object Call(const py::sequence& arguments) const {
    CompiledGraph::Tensors inputs;
    size_t n = 0, other = 0;
    for (const py::handle& a : arguments) {
      if (n == is_tensor_.size() || is_tensor_[n] != IsTensor(a)) return py::none();
      if (is_tensor_[n++])
        inputs.push_back(THPVariable_Unpack(a.ptr()));
      else if (!others_[other++].equal(a))
        return py::none();
    }
    std::optional<CompiledGraph::Tensors> results;
    {
      py::gil_scoped_release no_gil;
      results = graph_->Call(inputs);
    }
    if (!results) return py::none();
    py::list out(result_.size());
    size_t tensor = 0;
    for (size_t i = 0; i < result_.size(); ++i)
      out[i] = result_[i] ? py::reinterpret_borrow<py::object>(*result_[i])
                          : py::reinterpret_steal<py::object>(THPVariable_Wrap((*results)[tensor++]));
    return out;
  }

 private:
  CompiledGraph::Tensors Run(const py::function& function, const CompiledGraph::Tensors& placeholders) {
    py::tuple arguments(is_tensor_.size());
    size_t tensor = 0, other = 0;
    for (size_t i = 0; i < is_tensor_.size(); ++i)
      arguments[i] =
          is_tensor_[i] ? py::reinterpret_steal<py::object>(THPVariable_Wrap(placeholders[tensor++])) : others_[other++];
    py::object returned = function(*arguments);
    CompiledGraph::Tensors results;
    for (const py::handle& r : py::sequence(std::move(returned))) {
      if (IsTensor(r)) {
        results.push_back(THPVariable_Unpack(r.ptr()));
        result_.push_back(std::nullopt);
      } else {
        result_.push_back(py::reinterpret_borrow<py::object>(r));
      }
    }
    return results;
  }

  std::vector<bool> is_tensor_;
  std::vector<py::object> others_;
  std::vector<std::optional<py::object>> result_;  // what is returned in each place; nullopt: the next tensor
  std::unique_ptr<CompiledGraph> graph_;
};

}  // namespace

void InitCompile(py::module_& m) {
  py::object error =
      py::reinterpret_steal<py::object>(PyErr_NewException("torch_tpu._C.CaptureError", PyExc_RuntimeError, nullptr));
  m.attr("CaptureError") = error;
  py::class_<Captured>(m, "Captured").def("call", &Captured::Call);
  m.def("capture", [error](const py::function& function, const py::sequence& arguments) {
    return std::make_unique<Captured>(function, arguments, error);
  });
}

}  // namespace tpu::bindings
