// SPDX-License-Identifier: Apache-2.0
// CompiledGraph: a function of tensors, captured once and then called without it.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/capture.h"

namespace tpu::aten {

class CompiledGraph {
 public:
  using Tensors = std::vector<at::Tensor>;
  // Runs `function` on placeholders like `inputs` (all "tpu" tensors of one device) and keeps what it does to them. Its
  // results may be undefined, new, or (views of) inputs. Throws what the function throws; `*why` says, when it is not
  // empty, that the reason was something that no capture can do.
  static std::unique_ptr<CompiledGraph> Capture(const Tensors& inputs, const std::function<Tensors(const Tensors&)>& function,
                                                std::string* why);

  // Nothing when an input differs from the captured one in dtype, sizes, strides, offset or the storage behind it, or shares
  // a storage that is written with another one than at the capture.
  std::optional<Tensors> Call(const Tensors& inputs) const;

 private:
  struct Geometry {
    c10::ScalarType dtype;
    std::vector<int64_t> sizes, strides;
    int64_t offset = 0;
    bool conj = false, neg = false;

    static Geometry Of(const at::Tensor& t);
    bool Matches(const c10::TensorImpl& impl) const;
    at::Tensor Over(const c10::Storage& storage) const;
  };
  struct Input {
    Geometry geometry;
    int storage;  // the number of its storage among those of the inputs
  };
  // A storage that inputs lie in.
  struct InputStorage {
    int input;           // the first one
    size_t bytes;
    TensorType base;     // of the value in it
    bool written = false;
  };
  // Contents: one of these.
  struct Source {
    int made = -1;               // a value of the callable
    int storage = -1;            // what an input's storage holds before the call
    engine::ValueRef constant;   // a value from outside of the graph
  };
  // A storage that results lie in.
  struct Home {
    int storage = -1;  // an input's own
    size_t bytes = 0;  // else a fresh one of this size, with
    Source contents;
  };
  // An input's storage that gets contents without a program: values are immutable, so they are shared.
  struct SharedWrite {
    int storage;
    Source contents;
  };
  struct Output {
    int home = -1;   // -1: undefined
    int input = -1;  // the input itself
    Geometry geometry;
  };

  bool Fits(const Tensors& inputs, std::vector<engine::Cell*>* cells) const;
  static engine::Value* Take(const Source& source, const std::vector<engine::Value*>& made,
                             const std::vector<engine::ValueRef>& before);

  int device_ = 0;
  std::vector<Input> inputs_;
  std::vector<InputStorage> input_storages_;
  std::vector<SharedWrite> shared_writes_;
  std::vector<Home> homes_;
  std::vector<Output> outputs_;
  std::vector<int> written_;           // for each value made: the input storage that gets it, or -1
  std::unique_ptr<engine::Callable> callable_;
};

}  // namespace tpu::aten
