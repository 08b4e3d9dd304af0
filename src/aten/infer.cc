// SPDX-License-Identifier: Apache-2.0
#include "aten/infer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "aten/tensor.h"
#include "engine/counters.h"

namespace tpu::aten {
namespace {

using c10::IValue;
using torch::jit::Stack;

// The tensor's geometry as the key has it: strides of contiguous tensors are the default ones, offsets are 0.
at::Tensor AsMeta(const at::Tensor& t) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), t.unsafeGetTensorImpl()->unsafe_storage().nbytes(),
      c10::DataPtr(nullptr, c10::Device(c10::kMeta)), c10::GetAllocator(c10::kMeta), true);
  auto meta = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)),
                                                       c10::DispatchKeySet(c10::DispatchKey::Meta), t.dtype());
  auto* impl = meta.unsafeGetTensorImpl();
  if (t.is_contiguous())
    impl->set_sizes_contiguous(t.sizes());
  else
    impl->set_sizes_and_strides(t.sizes(), t.strides(), 0);
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (t.is_conj()) meta._set_conj(true);
  if (t.is_neg()) meta._set_neg(true);
  return meta;
}

at::Tensor ToMeta(const at::Tensor& t, bool python) {
  if (!t.defined()) return t;
  // Wrapped numbers stay on the CPU for Python's meta kernels: they receive them as numbers.
  if (python && !IsOurs(t) && t.unsafeGetTensorImpl()->is_wrapped_number()) return t;
  return AsMeta(t);
}

IValue ToMeta(const IValue& v, bool python) {
  if (v.isTensor()) return ToMeta(v.toTensor(), python);
  if (v.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : v.toTensorVector()) list.push_back(ToMeta(t, python));
    return list;
  }
  if (v.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& t : v.toOptionalTensorList())
      list.push_back(t && t->defined() ? std::optional<at::Tensor>(ToMeta(*t, python)) : t);
    return list;
  }
  if (v.isDevice()) return c10::Device(c10::kMeta);
  if (v.isGenerator()) return IValue();
  return v;
}

// The functional operator's arguments on meta tensors.
Stack MetaStack(const InferContext& c) {
  Stack stack;
  const auto& arguments = c.form->functional->schema().arguments();
  for (const ArgPlan& plan : c.form->args) {
    const c10::Argument& schema = arguments[plan.position];
    if (plan.stack >= 0 && c.arguments[plan.stack].isNone() && c.form->takes_dtype_of_out(plan)) {
      stack.emplace_back(c.arguments[c.form->out_args[0]].toTensor().scalar_type());
    } else if (plan.stack >= 0) {
      stack.push_back(ToMeta(c.arguments[plan.stack], c.form->structured == nullptr));
    } else if (schema.name() == "device") {
      stack.emplace_back(c10::Device(c10::kMeta));
    } else if (schema.name() == "dtype" && !c.form->out_args.empty()) {
      // The out= form of a factory has no dtype of its own: the destination's.
      stack.emplace_back(c.arguments[c.form->out_args[0]].toTensor().scalar_type());
    } else if (schema.default_value()) {
      stack.push_back(*schema.default_value());
    } else {
      stack.emplace_back();
    }
  }
  return stack;
}

Status Describe(const at::Tensor& t, graph::RecordResult* r) {
  if (!t.defined()) {
    r->defined = false;
    return {};
  }
  r->dtype = FromScalarType(t.scalar_type());
  if (r->dtype == DType::kInvalid) return {ErrorKind::kNotImplemented, "a result type the device does not have"};
  if (t.dim() > kMaxRank) return {ErrorKind::kNotImplemented, "a result of more than 8 dimensions"};
  r->rank = static_cast<uint8_t>(t.dim());
  for (int i = 0; i < r->rank; ++i) {
    r->sizes[i] = t.size(i);
    r->strides[i] = t.stride(i);
  }
  return {};
}

// Rule::keeps_channels_last.
void KeepChannelsLast(const InferContext& c, graph::RecordResult* r) {
  for (const ArgPlan& plan : c.form->args) {
    if (plan.use != ArgUse::kTensor || plan.stack < 0 || !c.arguments[plan.stack].isTensor()) continue;
    const at::Tensor& t = c.arguments[plan.stack].toTensor();
    if (!t.defined() || t.dim() != r->rank) continue;
    const at::MemoryFormat format = t.suggest_memory_format();
    if (format != at::MemoryFormat::ChannelsLast && format != at::MemoryFormat::ChannelsLast3d) continue;
    const c10::IntArrayRef sizes(r->sizes, r->rank);
    const auto strides = r->rank == 4 ? c10::get_channels_last_strides_2d(sizes) : c10::get_channels_last_strides_3d(sizes);
    std::copy(strides.begin(), strides.end(), r->strides);
    return;
  }
}

std::string Sizes(const int64_t* sizes, int rank) {
  std::string s = "[";
  for (int i = 0; i < rank; ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
  return s + "]";
}

Status CheckCast(DType from, const at::Tensor& to) {
  c10::ScalarType source = ToScalarType(from);
  if (c10::canCast(source, to.scalar_type())) return {};
  return RuntimeError(std::string("result type ") + c10::toString(source) + " can't be cast to the desired output type " +
                      c10::toString(to.scalar_type()));
}

Status CheckTargets(InferContext* c, const graph::OpRecord& record) {
  for (size_t k = 0; k < c->form->mutated_args.size(); ++k) {
    const at::Tensor& self = c->arguments[c->form->args[c->form->mutated_args[k]].stack].toTensor();
    const graph::RecordResult& r = record.results[k];
    if (self.sizes() != c10::IntArrayRef(r.sizes, r.rank)) {
      return RuntimeError("output with shape " + Sizes(self.sizes().data(), static_cast<int>(self.dim())) +
                          " doesn't match the broadcast shape " + Sizes(r.sizes, r.rank));
    }
    TPU_RETURN_IF_ERROR(CheckCast(r.dtype, self));
  }
  for (size_t k = 0; k < c->form->out_args.size(); ++k) {
    const at::Tensor& out = c->arguments[c->form->out_args[k]].toTensor();
    const graph::RecordResult& r = record.results[k];
    TPU_RETURN_IF_ERROR(CheckCast(r.dtype, out));
    if (out.sizes() != c10::IntArrayRef(r.sizes, r.rank))
      c->resize.emplace_back(static_cast<int>(k), std::vector<int64_t>(r.sizes, r.sizes + r.rank));
  }
  if (!c->resize.empty()) return RuntimeError("out= must be resized");
  return {};
}

}  // namespace

Status InferResults(InferContext* context, graph::OpRecord* record) {
  engine::Count(engine::g_counters.meta_calls);
  const OpForm& form = *context->form;
  Stack stack = MetaStack(*context);
  std::vector<at::Tensor> results;
  try {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    if (form.structured) {
      form.structured->invoke(form.structured->function, stack, &results);
    } else {
      form.functional->callBoxed(&stack);
      for (const IValue& v : stack) {
        if (!v.isTensor()) return {ErrorKind::kNotImplemented, "a result that is not a tensor"};
        results.push_back(v.toTensor());
      }
    }
  } catch (const c10::NotImplementedError& e) {
    return {ErrorKind::kNotImplemented, std::string("Meta has no result type: ") + e.what_without_backtrace()};
  } catch (...) {
    context->raised = std::current_exception();
    return RuntimeError("Meta refused the arguments");
  }
  for (const at::Tensor& t : results) {
    record->results.emplace_back();
    TPU_RETURN_IF_ERROR(Describe(t, &record->results.back()));
  }
  if (form.rule && form.rule->keeps_channels_last) KeepChannelsLast(*context, &record->results[0]);
  for (int16_t position : context->updated) {
    record->results.emplace_back();
    TPU_RETURN_IF_ERROR(Describe(context->arguments[form.args[position].stack].toTensor(), &record->results.back()));
  }
  return CheckTargets(context, *record);
}

}  // namespace tpu::aten
