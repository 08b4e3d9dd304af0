// SPDX-License-Identifier: Apache-2.0
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include "aten/compiled_graph.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "aten/errors.h"
#include "aten/generator.h"
#include "aten/tensor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

c10::Storage NewStorage(size_t bytes, int device, engine::Value* value) {
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                            NewDataPtr(bytes, device, value), DeviceAllocator(),
                                                            /*resizable=*/true));
}

engine::Cell* CellOfImpl(const c10::TensorImpl& impl) { return CellOf(impl.unsafe_storage()); }

void DrawDefault(void* context, int64_t count, uint64_t* seed, uint64_t* offset) {
  RandomDraw draw = Draw(std::nullopt, *static_cast<const int*>(context), count);
  *seed = draw.seed;
  *offset = draw.offset;
}

}  // namespace

CompiledGraph::Geometry CompiledGraph::Geometry::Of(const at::Tensor& t) {
  return {t.scalar_type(), t.sizes().vec(), t.strides().vec(), t.storage_offset(), t.is_conj(), t.is_neg()};
}

bool CompiledGraph::Geometry::Matches(const c10::TensorImpl& impl) const {
  const c10::DispatchKeySet keys = impl.key_set();
  return impl.dtype() == c10::scalarTypeToTypeMeta(dtype) && impl.sizes() == sizes && impl.strides() == strides &&
         impl.storage_offset() == offset && keys.has(c10::DispatchKey::Conjugate) == conj &&
         keys.has(c10::DispatchKey::Negative) == neg;
}

at::Tensor CompiledGraph::Geometry::Over(const c10::Storage& storage) const {
  at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(dtype));
  t.unsafeGetTensorImpl()->set_storage_offset(offset);
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  if (conj) t._set_conj(true);
  if (neg) t._set_neg(true);
  return t;
}

std::unique_ptr<CompiledGraph> CompiledGraph::Capture(const Tensors& inputs,
                                                      const std::function<Tensors(const Tensors&)>& function,
                                                      std::string* why) {
  engine::Runtime::Require(&ThrowIfError);
  auto graph = std::make_unique<CompiledGraph>();
  graph->device_ = inputs.empty() ? CurrentDevice() : inputs[0].device().index();
  engine::Capture capture;
  Tensors placeholders;
  std::vector<engine::ValueRef> values;
  for (const at::Tensor& t : inputs) {
    TORCH_CHECK(IsOurs(t) && t.device().index() == graph->device_, "the inputs of a compiled graph lie on one tpu device");
    engine::Cell* cell = CellOf(t);
    engine::ValueRef value(cell->Load());
    graph->inputs_.push_back({Geometry::Of(t), cell->bytes, value->type});
    engine::Value* placeholder = capture.AddInput(value->type, graph->device_);
    placeholder->IncRef();
    values.emplace_back(placeholder);
    placeholders.push_back(graph->inputs_.back().geometry.Over(NewStorage(cell->bytes, graph->device_, placeholder)));
  }
  Tensors results;
  try {
    at::AutoDispatchBelowAutograd no_autograd;
    results = function(placeholders);
  } catch (...) {
    *why = capture.broken();
    throw;
  }
  *why = capture.broken();
  if (!why->empty()) return nullptr;

  // Values that leave: those in the storages of inputs that were written, and those of results.
  std::vector<engine::Value*> leaving;
  std::vector<engine::ValueRef> held;
  auto leave = [&](engine::ValueRef value, int input) {
    leaving.push_back(value.get());
    held.push_back(std::move(value));
    graph->written_.push_back(input);
    return static_cast<int>(leaving.size()) - 1;
  };
  for (size_t i = 0; i < placeholders.size(); ++i) {
    engine::ValueRef value(CellOf(placeholders[i])->Load());
    if (value.get() == values[i].get()) continue;
    if (!capture.Makes(value.get())) {
      *why = "an input gets another tensor's contents without an operation";
      return nullptr;
    }
    leave(std::move(value), static_cast<int>(i));
  }
  std::vector<engine::Cell*> cells;  // parallel to homes_
  for (const at::Tensor& t : results) {
    Output out;
    if (t.defined()) {
      TORCH_CHECK(IsOurs(t), "a compiled graph returned a tensor of ", t.device());
      engine::Cell* cell = CellOf(t);
      out.geometry = Geometry::Of(t);
      out.home = static_cast<int>(std::find(cells.begin(), cells.end(), cell) - cells.begin());
      for (size_t i = 0; i < placeholders.size(); ++i)
        if (t.is_same(placeholders[i])) out.input = static_cast<int>(i);
      if (out.home == static_cast<int>(cells.size())) {
        Home home;
        for (size_t i = 0; i < placeholders.size(); ++i)
          if (CellOf(placeholders[i]) == cell) home.input = static_cast<int>(i);
        home.bytes = cell->bytes;
        engine::ValueRef value(cell->Load());
        if (home.input < 0 && capture.Makes(value.get()))
          home.made = leave(std::move(value), -1);
        else if (home.input < 0)
          home.constant = std::move(value);
        if (home.constant.get() && capture.InputOf(home.constant.get()) >= 0) {
          *why = "a result shares an input's contents without its storage";
          return nullptr;
        }
        cells.push_back(cell);
        graph->homes_.push_back(std::move(home));
      }
    }
    graph->outputs_.push_back(std::move(out));
  }
  graph->callable_ = ValueOrThrow(capture.Finish(leaving));
  return graph;
}

std::optional<CompiledGraph::Tensors> CompiledGraph::Call(const Tensors& inputs) const {
  if (inputs.size() != inputs_.size()) return std::nullopt;
  std::vector<engine::ValueRef> values;
  std::vector<engine::Cell*> cells;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& t = inputs[i];
    if (!IsOurs(t) || t.device().index() != device_ || !inputs_[i].geometry.Matches(*t.unsafeGetTensorImpl())) return std::nullopt;
    engine::Cell* cell = CellOfImpl(*t.unsafeGetTensorImpl());
    engine::ValueRef value(cell->Load());
    if (cell->bytes != inputs_[i].storage_bytes || !(value->type == inputs_[i].base)) return std::nullopt;
    cells.push_back(cell);
    values.push_back(std::move(value));
  }
  std::vector<engine::Value*> given, made;
  for (engine::ValueRef& v : values) given.push_back(v.release());
  std::vector<engine::Cell*> targets;
  for (int input : written_) targets.push_back(input < 0 ? nullptr : cells[static_cast<size_t>(input)]);
  int device = device_;
  ThrowIfError(callable_->Run({given, targets, device_, &device, &DrawDefault}, &made));

  std::vector<c10::Storage> storages;
  for (const Home& home : homes_) {
    if (home.input >= 0) {
      storages.push_back(inputs[static_cast<size_t>(home.input)].storage());
      continue;
    }
    engine::Value* value = home.made >= 0 ? made[static_cast<size_t>(home.made)] : home.constant.get();
    if (home.made < 0) value->IncRef();
    storages.push_back(NewStorage(home.bytes, device_, value));
  }
  Tensors results;
  for (const Output& out : outputs_) {
    if (out.input >= 0)
      results.push_back(inputs[static_cast<size_t>(out.input)]);
    else if (out.home >= 0)
      results.push_back(out.geometry.Over(storages[static_cast<size_t>(out.home)]));
    else
      results.emplace_back();
  }
  return results;
}

}  // namespace tpu::aten
