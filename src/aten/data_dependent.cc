// SPDX-License-Identifier: Apache-2.0
// Operators whose result sizes depend on values: nonzero, and boolean masks in indexing. The program makes the largest
// result there can be and a count; the tensor is a prefix of it whose size only the host knows.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#define AT_PER_OPERATOR_HEADERS
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <algorithm>
#include <bit>

#include "aten/copy.h"
#include "aten/errors.h"
#include "aten/recorder.h"
#include "aten/tensor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

// Below this a result may keep all of its padding.
constexpr size_t kTrimBytes = 16 << 10;

template <class Signature>
auto Op(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

Tensor EmptyOnDevice(c10::IntArrayRef sizes, c10::ScalarType dtype, const Tensor& like) {
  return MakeTensor(sizes, nullptr, dtype, like.device().index(), nullptr);
}

// Sizes that results are padded to: few of them, so that few programs are compiled.
int64_t Bucket(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1)))); }

// ---- nonzero
struct Coordinates {
  Tensor rows;  // [at least count, ndim] on the device; rows after `count` are zeros
  int64_t count = 0;
};

Coordinates FindNonzero(const Tensor& self) {
  if (self.numel() == 0) return {EmptyOnDevice({0, self.dim()}, c10::kLong, self), 0};
  static auto padded = Op<std::tuple<Tensor, Tensor>(const Tensor&)>("torch_tpu::nonzero_padded", "");
  auto [rows, count] = padded.call(self);
  return {rows, count.item<int64_t>()};
}

// The first `n` rows of `padded`, without most of the padding when it is more than half.
Tensor Prefix(const Tensor& padded, int64_t n) {
  const int64_t rows = padded.size(0), kept = Bucket(n);
  Tensor base = padded;
  if (kept * 2 <= rows && padded.nbytes() > kTrimBytes) {
    Tensor part = padded.narrow(0, 0, kept);
    if (engine::Runtime::Started().profile().host_addressable) {
      base = ToDevice(HostView(part), padded.device().index());
    } else {
      base = EmptyOnDevice(part.sizes(), part.scalar_type(), part);
      RecordCopy(base, part);
    }
  }
  return base.narrow(0, 0, n);
}

Tensor Nonzero(const Tensor& self) {
  at::AutoDispatchBelowADInplaceOrView below;
  if (self.dim() == 0) return EmptyOnDevice({self.item().toBool() ? 1 : 0, 0}, c10::kLong, self);
  Coordinates found = FindNonzero(self);
  return Prefix(found.rows, found.count);
}

Tensor& Into(Tensor& out, const Tensor& result) {
  at::native::resize_output(out, result.sizes());
  out.copy_(result);
  return out;
}

Tensor& NonzeroOut(const Tensor& self, Tensor& out) {
  TORCH_CHECK(out.scalar_type() == c10::kLong, "nonzero: Expected out tensor to have scalar type Long but got scalar type ",
              out.scalar_type());
  TORCH_CHECK(self.device() == out.device(), "expected self and out to be on the same device, but got out on ", out.device(),
              " and self on ", self.device());
  at::AutoDispatchBelowADInplaceOrView below;
  return Into(out, Nonzero(self));
}

// ---- masks in indexing
bool IsMask(const Tensor& t) { return t.defined() && (t.scalar_type() == c10::kBool || t.scalar_type() == c10::kByte); }

using Indices = std::vector<Tensor>;  // undefined where nothing is indexed

Indices ToIndices(const IValue& v) {
  Indices out;
  if (v.isTensorList()) return v.toTensorVector();
  for (const std::optional<Tensor>& t : v.toOptionalTensorVector()) out.push_back(t ? *t : Tensor());
  return out;
}

// Nothing to prepare: index tensors on the device, no mask.
bool IsPlain(const Indices& indices) {
  return std::none_of(indices.begin(), indices.end(), [](const Tensor& t) { return t.defined() && (IsMask(t) || !IsOurs(t)); });
}

IValue ToList(const Indices& indices) {
  c10::List<std::optional<Tensor>> list;
  for (const Tensor& t : indices) list.push_back(t.defined() ? std::optional<Tensor>(t) : std::nullopt);
  return list;
}

void CheckMaskSizes(const Tensor& self, const Tensor& mask, int64_t first) {
  for (int64_t j = 0; j < mask.dim(); ++j) {
    const int64_t d = first + j;
    TORCH_CHECK_INDEX(d < self.dim(), "too many indices for tensor of dimension ", self.dim());
    TORCH_CHECK_INDEX(mask.size(j) == self.size(d), "The shape of the mask ", mask.sizes(), " at index ", j,
                      " does not match the shape of the indexed tensor ", self.sizes(), " at index ", d);
  }
}

// What masks among `indices` mean, before anything is launched.
struct Masks {
  int count = 0;        // masks
  int others = 0;       // index tensors that are not masks
  int position = 0;     // of the last mask in `indices`
  int64_t first = 0;    // dimension of self where it begins
};

// Brings CPU indices to the device and checks types and shapes, as at::native::index does.
Masks Inspect(const Tensor& self, Indices* indices) {
  // A mask without dimensions selects along none: ATen's expansion drops it too.
  std::erase_if(*indices, [](const Tensor& t) { return IsMask(t) && t.dim() == 0; });
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices->size()) <= self.dim(), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", indices->size(), ")");
  Masks masks;
  int64_t dim = 0;
  for (size_t i = 0; i < indices->size(); ++i) {
    Tensor& t = (*indices)[i];
    if (!t.defined()) {
      ++dim;
      continue;
    }
    const auto dtype = t.scalar_type();
    TORCH_CHECK_INDEX(IsMask(t) || dtype == c10::kLong || dtype == c10::kInt,
                      "tensors used as indices must be long, int, byte or bool tensors");
    TORCH_CHECK(t.is_cpu() || t.device() == self.device(), "indices should be either on ", c10::kCPU,
                " or on the same device as the indexed tensor (", self.device(), ")");
    if (t.is_cpu()) t = t.to(self.device());
    if (!IsMask(t)) {
      ++masks.others;
      ++dim;
      continue;
    }
    if (dtype == c10::kByte) {
      TORCH_WARN("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
    }
    CheckMaskSizes(self, t, dim);
    ++masks.count;
    masks.position = static_cast<int>(i);
    masks.first = dim;
    dim += t.dim();
  }
  return masks;
}

// Every mask becomes one index tensor for each of its dimensions. `rows`, when not null, receives how many rows the
// (only) mask selects, and the index tensors are longer: padded with zeros up to a bucket.
Indices Expand(const Indices& indices, int64_t* rows) {
  Indices out;
  for (const Tensor& t : indices) {
    if (!IsMask(t)) {
      out.push_back(t);
      continue;
    }
    Tensor coordinates;
    if (rows) {
      Coordinates found = FindNonzero(t);
      *rows = found.count;
      coordinates = found.rows.narrow(0, 0, std::min(found.rows.size(0), Bucket(found.count)));
    } else {
      coordinates = Nonzero(t);
    }
    for (int64_t j = 0; j < coordinates.size(1); ++j) out.push_back(coordinates.select(1, j));
  }
  return out;
}

Tensor RecordIndex(const c10::OperatorHandle& op, const Tensor& self, const Indices& indices) {
  Stack stack;
  stack.emplace_back(self);
  stack.emplace_back(ToList(indices));
  Record(op, &stack);
  return stack.back().toTensor();
}

const c10::OperatorHandle& IndexOp() {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::index", "Tensor");
  return op;
}

Tensor IndexTensor(const Tensor& self, Indices indices) {
  at::AutoDispatchBelowADInplaceOrView below;
  TORCH_CHECK(IsOurs(self), "indices should be either on ", c10::kCPU, " or on the same device as the indexed tensor (",
              self.device(), ")");
  const Masks masks = Inspect(self, &indices);
  if (!masks.count) return RecordIndex(IndexOp(), self, indices);

  // One mask in front, alone: the padding of its coordinates can stay in the result, out of sight.
  if (masks.count == 1 && masks.others == 0 && masks.first == 0) {
    int64_t rows = 0;
    Indices expanded = Expand(indices, &rows);
    if (rows == 0 || self.numel() == 0) {
      std::vector<int64_t> sizes{rows};
      for (int64_t d = indices[masks.position].dim(); d < self.dim(); ++d) sizes.push_back(self.size(d));
      return EmptyOnDevice(sizes, self.scalar_type(), self);
    }
    Tensor padded = RecordIndex(IndexOp(), self, expanded);
    return padded.size(0) == rows ? padded : padded.narrow(0, 0, rows);
  }
  return RecordIndex(IndexOp(), self, Expand(indices, nullptr));
}

void BoxedIndex(const c10::OperatorHandle& op, Stack* stack) {
  const Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
  Indices indices = ToIndices(torch::jit::peek(*stack, 1, 2));
  if (IsOurs(self) && IsPlain(indices)) return Record(op, stack);
  torch::jit::drop(*stack, 2);
  torch::jit::push(*stack, IndexTensor(self, std::move(indices)));
}

void BoxedIndexOut(const c10::OperatorHandle& op, Stack* stack) {
  const Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
  Indices indices = ToIndices(torch::jit::peek(*stack, 1, 3));
  Tensor out = torch::jit::peek(*stack, 2, 3).toTensor();
  if (IsOurs(self) && IsPlain(indices)) return Record(op, stack);
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "index_out: self (", self.scalar_type(), ") and result (",
              out.scalar_type(), ") must have the same scalar type");
  at::AutoDispatchBelowADInplaceOrView below;
  torch::jit::drop(*stack, 3);
  Into(out, IndexTensor(self, std::move(indices)));
  torch::jit::push(*stack, out);
}

// self[..., mask, ...] = values where one value serves every selected row: no row has to be counted, so nothing waits.
// Returns false when it is not that case.
bool PutMasked(Tensor& self, const Indices& indices, const Masks& masks, const Tensor& values, bool accumulate) {
  if (masks.count != 1 || masks.others || accumulate) return false;
  const Tensor& index = indices[masks.position];
  const int64_t rest = self.dim() - masks.first - index.dim();
  // The rows are dimension `masks.first` of the result; `values` is aligned with its end.
  if (values.dim() > rest && values.numel() != 1) {
    if (masks.first || values.dim() != rest + 1 || values.size(0) != 1) return false;
  }
  Tensor mask = index.scalar_type() == c10::kBool ? index : index.to(c10::kBool);
  for (int64_t d = 0; d < rest; ++d) mask = mask.unsqueeze(-1);
  if (values.numel() == 1) {
    self.masked_fill_(mask, values.dim() ? values.reshape({}) : values);
    return true;
  }
  Tensor rows = values.dim() > rest ? values.squeeze(0) : values;
  if (rows.is_cpu()) rows = rows.to(self.device());
  self.copy_(rows.where(mask, self));
  return true;
}

// index_put_ and _index_put_impl_.
void BoxedIndexPut(const c10::OperatorHandle& op, Stack* stack) {
  const size_t n = op.schema().arguments().size();
  Tensor self = torch::jit::peek(*stack, 0, n).toTensor();
  Indices indices = ToIndices(torch::jit::peek(*stack, 1, n));
  const Tensor values = torch::jit::peek(*stack, 2, n).toTensor();
  const bool accumulate = torch::jit::peek(*stack, 3, n).toBool();
  TORCH_CHECK(IsOurs(self), "indices should be either on ", c10::kCPU, " or on the same device as the indexed tensor (",
              self.device(), ")");
  if (!IsPlain(indices)) {
    at::AutoDispatchBelowADInplaceOrView below;
    TORCH_CHECK(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ",
                self.scalar_type(), " for the destination and ", values.scalar_type(), " for the source.");
    const Masks masks = Inspect(self, &indices);
    if (masks.count && PutMasked(self, indices, masks, values, accumulate)) {
      torch::jit::drop(*stack, n);
      torch::jit::push(*stack, self);
      return;
    }
    (*stack)[stack->size() - n + 1] = ToList(Expand(indices, nullptr));
  }
  Record(op, stack);
  stack->back() = self;
}

// The functional form: a copy, then in place. A record of its own where nothing has to be prepared.
void BoxedIndexPutFunctional(const c10::OperatorHandle& op, Stack* stack) {
  Indices indices = ToIndices(torch::jit::peek(*stack, 1, 4));
  if (IsPlain(indices)) return Record(op, stack);
  at::AutoDispatchBelowADInplaceOrView below;
  static const auto in_place = c10::Dispatcher::singleton().findSchemaOrThrow("aten::index_put_", "");
  torch::jit::peek(*stack, 0, 4) = torch::jit::peek(*stack, 0, 4).toTensor().clone();
  BoxedIndexPut(in_place, stack);
}

void BoxedIndexPutOut(const c10::OperatorHandle&, Stack* stack) {
  static const auto functional = c10::Dispatcher::singleton().findSchemaOrThrow("aten::index_put", "");
  at::AutoDispatchBelowADInplaceOrView below;
  Tensor out = torch::jit::pop(*stack).toTensor();
  BoxedIndexPutFunctional(functional, stack);
  Into(out, stack->back().toTensor());
  stack->back() = out;
}

// ---- masked_select
Tensor MaskedSelect(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == c10::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.device() == mask.device(), "Expected all tensors to be on the same device, but found at least two devices, ",
              self.device(), " and ", mask.device(), "!");
  at::AutoDispatchBelowADInplaceOrView below;
  auto shape = at::infer_size_dimvector(self.sizes(), mask.sizes());
  Tensor m = mask.expand(shape), x = self.expand(shape);
  if (m.dim() == 0) {
    m = m.unsqueeze(0);
    x = x.unsqueeze(0);
  }
  return IndexTensor(x, {m});
}

Tensor& MaskedSelectOut(const Tensor& self, const Tensor& mask, Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "masked_select(): self and result must have the same scalar type");
  at::AutoDispatchBelowADInplaceOrView below;
  return Into(out, MaskedSelect(self, mask));
}

// ---- equal
bool Equal(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
              other.device());
  if (self.sizes() != other.sizes()) return false;
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "Expected object of data type ", self.scalar_type(),
              " but got data type ", other.scalar_type(), " for argument 'other' in call to equal");
  if (self.numel() == 0) return true;
  at::AutoDispatchBelowADInplaceOrView below;
  return self.eq(other).all().item<bool>();
}

// ---- our own operator
std::tuple<Tensor, Tensor> NonzeroPaddedMeta(const Tensor& self) {
  auto options = self.options().dtype(c10::kLong);
  return {at::detail::empty_meta({self.numel(), self.dim()}, options), at::detail::empty_meta({}, options)};
}

void BoxedRecord(const c10::OperatorHandle& op, Stack* stack) { Record(op, stack); }

}  // namespace

TORCH_LIBRARY(torch_tpu, m) {
  // Coordinates of the non-zero elements in order, padded with zeros to the element count, and how many there are.
  m.def("nonzero_padded(Tensor self) -> (Tensor indices, Tensor count)");
}
TORCH_LIBRARY_IMPL(torch_tpu, Meta, m) { m.impl("nonzero_padded", &NonzeroPaddedMeta); }
TORCH_LIBRARY_IMPL(torch_tpu, PrivateUse1, m) {
  m.impl("nonzero_padded", torch::CppFunction::makeFromBoxedFunction<&BoxedRecord>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero", &Nonzero);
  m.impl("nonzero.out", &NonzeroOut);
  m.impl("masked_select", &MaskedSelect);
  m.impl("masked_select.out", &MaskedSelectOut);
  m.impl("index.Tensor", torch::CppFunction::makeFromBoxedFunction<&BoxedIndex>());
  m.impl("index.Tensor_out", torch::CppFunction::makeFromBoxedFunction<&BoxedIndexOut>());
  m.impl("index_put_", torch::CppFunction::makeFromBoxedFunction<&BoxedIndexPut>());
  m.impl("_index_put_impl_", torch::CppFunction::makeFromBoxedFunction<&BoxedIndexPut>());
  m.impl("index_put", torch::CppFunction::makeFromBoxedFunction<&BoxedIndexPutFunctional>());
  m.impl("index_put.out", torch::CppFunction::makeFromBoxedFunction<&BoxedIndexPutOut>());
  m.impl("equal", &Equal);
}

}  // namespace tpu::aten
