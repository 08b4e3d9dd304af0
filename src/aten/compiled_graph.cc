// SPDX-License-Identifier: Apache-2.0
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include "aten/compiled_graph.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

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
  std::vector<engine::Cell*> real;                 // parallel to input_storages_
  std::vector<engine::ValueRef> before;
  std::vector<c10::Storage> storages;
  for (const at::Tensor& t : inputs) {
    TORCH_CHECK(IsOurs(t) && t.device().index() == graph->device_, "the inputs of a compiled graph lie on one tpu device");
    engine::Cell* cell = CellOf(t);
    const auto number = static_cast<int>(std::find(real.begin(), real.end(), cell) - real.begin());
    if (number == static_cast<int>(real.size())) {
      engine::ValueRef value(cell->Load());
      real.push_back(cell);
      graph->input_storages_.push_back({static_cast<int>(graph->inputs_.size()), cell->bytes, value->type});
      engine::Value* placeholder = capture.AddInput(value->type, graph->device_);
      placeholder->IncRef();
      before.emplace_back(placeholder);
      storages.push_back(NewStorage(cell->bytes, graph->device_, placeholder));
    }
    graph->inputs_.push_back({Geometry::Of(t), number});
    placeholders.push_back(graph->inputs_.back().geometry.Over(storages[static_cast<size_t>(number)]));
  }
  Tensors results;
  try {
    // Not a guard of dispatch keys: objects of torch that the function makes, and that an exception keeps alive, would put
    // them back later.
    at::NoGradGuard no_grad;
    results = function(placeholders);
    for (at::Tensor& t : results)
      if (t.defined() && t._is_zerotensor()) t = t.clone();
  } catch (...) {
    *why = capture.broken();
    throw;
  }
  *why = capture.broken();
  if (!why->empty()) return nullptr;

  // Values that leave: those in the storages of inputs that were written, and those of results.
  std::vector<engine::Value*> leaving;
  std::vector<engine::ValueRef> held;
  auto leave = [&](engine::ValueRef value, int storage) -> Source {
    Source source;
    source.storage = capture.InputOf(value.get());
    if (capture.Makes(value.get())) {
      source.made = static_cast<int>(leaving.size());
      leaving.push_back(value.get());
      held.push_back(std::move(value));
      graph->written_.push_back(storage);
    } else if (source.storage < 0) {
      source.constant = std::move(value);
    }
    return source;
  };
  std::vector<engine::Cell*> cells;  // of the placeholders' storages, then parallel to homes_
  for (size_t i = 0; i < storages.size(); ++i) {
    engine::Cell* cell = CellOf(storages[i]);
    cells.push_back(cell);
    Home home;
    home.storage = static_cast<int>(i);
    graph->homes_.push_back(std::move(home));
    engine::ValueRef value(cell->Load());
    if (value.get() == before[i].get()) continue;
    graph->input_storages_[i].written = true;
    Source source = leave(std::move(value), static_cast<int>(i));
    if (source.made < 0) graph->shared_writes_.push_back({static_cast<int>(i), std::move(source)});
  }
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
        home.bytes = cell->bytes;
        home.contents = leave(engine::ValueRef(cell->Load()), -1);
        cells.push_back(cell);
        graph->homes_.push_back(std::move(home));
      }
    }
    graph->outputs_.push_back(std::move(out));
  }
  graph->callable_ = ValueOrThrow(capture.Finish(leaving));
  return graph;
}

bool CompiledGraph::Fits(const Tensors& inputs, std::vector<engine::Cell*>* cells) const {
  if (inputs.size() != inputs_.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& t = inputs[i];
    if (!IsOurs(t) || t.device().index() != device_ || !inputs_[i].geometry.Matches(*t.unsafeGetTensorImpl())) return false;
    engine::Cell* cell = CellOfImpl(*t.unsafeGetTensorImpl());
    const auto number = static_cast<size_t>(inputs_[i].storage);
    if (number == cells->size())
      cells->push_back(cell);
    else if ((*cells)[number] != cell)
      return false;
  }
  for (size_t i = 0; i < input_storages_.size(); ++i) {
    if ((*cells)[i]->bytes != input_storages_[i].bytes) return false;
    if (input_storages_[i].written && std::count(cells->begin(), cells->end(), (*cells)[i]) != 1) return false;
  }
  return true;
}

// One reference for the caller.
engine::Value* CompiledGraph::Take(const Source& source, const std::vector<engine::Value*>& made,
                                   const std::vector<engine::ValueRef>& before) {
  if (source.made >= 0) return made[static_cast<size_t>(source.made)];
  engine::Value* value = source.storage >= 0 ? before[static_cast<size_t>(source.storage)].get() : source.constant.get();
  value->IncRef();
  return value;
}

std::optional<CompiledGraph::Tensors> CompiledGraph::Call(const Tensors& inputs) const {
  std::vector<engine::Cell*> cells;
  if (!Fits(inputs, &cells)) return std::nullopt;
  std::vector<engine::ValueRef> before;
  bool shares = !shared_writes_.empty();
  for (const Home& home : homes_) shares |= home.contents.storage >= 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    before.emplace_back(cells[i]->Load());
    if (!(before.back()->type == input_storages_[i].base)) return std::nullopt;
  }
  std::vector<engine::Value*> given, made;
  for (engine::ValueRef& v : before) {
    given.push_back(v.get());
    if (shares)
      v->IncRef();
    else
      (void)v.release();  // the last holder, which lets the worker give a buffer away
  }
  std::vector<engine::Cell*> targets;
  for (int storage : written_) targets.push_back(storage < 0 ? nullptr : cells[static_cast<size_t>(storage)]);
  int device = device_;
  ThrowIfError(callable_->Run({given, targets, device_, &device, &DrawDefault}, &made));
  for (const SharedWrite& w : shared_writes_) cells[static_cast<size_t>(w.storage)]->Swap(Take(w.contents, made, before));

  std::vector<c10::Storage> storages;
  for (const Home& home : homes_) {
    if (home.storage >= 0)
      storages.push_back(inputs[static_cast<size_t>(input_storages_[static_cast<size_t>(home.storage)].input)].storage());
    else
      storages.push_back(NewStorage(home.bytes, device_, Take(home.contents, made, before)));
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
