// SPDX-License-Identifier: Apache-2.0
// Bytes between host and device. A storage's bytes are its base value's bytes (dense, row-major over memory order), so a
// strided host tensor over those bytes is exact for every view, whatever its dtype.
#pragma once
#include <ATen/core/Tensor.h>

#include "base/tensor_type.h"
#include "engine/value.h"

namespace tpu::aten {

// A CPU tensor over the bytes of a device tensor: its sizes, strides, dtype and conj/neg bits. Waits for the value. Zero
// copy where the engine's memory is the host's; holds a reference of the value as long as it lives.
// Requires of the caller: never written to.
at::Tensor HostView(const at::Tensor& device_tensor);

// True when `t` covers every byte of its storage exactly once; `type` receives the dense value's type, in memory order.
bool CoversStorage(const at::Tensor& t, TensorType* type);
// The type of the dense value behind a dense tensor: dimensions by falling stride, flat above kMaxRank.
TensorType DenseType(const at::Tensor& t);
// Same sizes, same steps wherever a dimension has more than one element.
bool SameLayout(const at::Tensor& a, const at::Tensor& b);

// A device tensor with the values, sizes and (where dense, else contiguous) strides of a CPU tensor. Copies.
at::Tensor ToDevice(const at::Tensor& cpu, int device);

// dst <- src between tensors of ours: shares the value where it can, records a copy else. Equal devices or not.
// Requires: sizes broadcast; no conj or neg bit on dst.
void CopyOnDevice(const at::Tensor& dst, const at::Tensor& src);

// The operator _copy_from with the device on either side or both.
at::Tensor CopyFrom(const at::Tensor& self, const at::Tensor& dst, bool non_blocking);

// A private host copy of a whole base value, for kernels that write on the host: tensors over it alias each other as the
// device tensors do. Commit makes what was written the new value.
class HostBase {
 public:
  // The storage of `t`, read. Waits.
  explicit HostBase(const at::Tensor& t);
  bool Holds(const at::Tensor& t) const;
  // A CPU tensor with the geometry and bits of `t`. Requires: Holds(t).
  at::Tensor View(const at::Tensor& t) const;
  void Commit();

 private:
  c10::Storage storage_;
  c10::Storage host_;
  TensorType type_;
};

}  // namespace tpu::aten
