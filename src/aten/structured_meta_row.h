// SPDX-License-Identifier: Apache-2.0
// How a row of the generated tables calls its function: a boxed argument list to a typed call. One instantiation a
// signature, not an operator.
#pragma once
#include <ATen/core/IListRef.h>

#include <tuple>
#include <utility>

#include "aten/structured_meta.h"

namespace tpu::aten {

// at::_ops signatures count in SymInt where at::meta functions count in int64_t.
template <class T>
struct StaticType {
  using type = T;
};
template <>
struct StaticType<c10::SymInt> {
  using type = int64_t;
};
template <>
struct StaticType<c10::SymIntArrayRef> {
  using type = at::IntArrayRef;
};
template <>
struct StaticType<at::OptionalSymIntArrayRef> {
  using type = at::OptionalIntArrayRef;
};
template <>
struct StaticType<std::optional<c10::SymInt>> {
  using type = std::optional<int64_t>;
};
template <class F>
struct StaticSignatureOf;
template <class R, class... Args>
struct StaticSignatureOf<R(Args...)> {
  using type = R(typename StaticType<Args>::type...);
};
template <class F>
using StaticSignature = typename StaticSignatureOf<F>::type;

// Holds one argument for the length of the call.
template <class T>
struct Unboxed {
  T value;
  explicit Unboxed(c10::IValue& v) : value(v.to<T>()) {}
  const T& get() const { return value; }
};
template <>
struct Unboxed<at::IntArrayRef> {
  std::vector<int64_t> value;
  explicit Unboxed(c10::IValue& v) : value(v.isInt() ? std::vector<int64_t>{v.toInt()} : v.toIntVector()) {}
  at::IntArrayRef get() const { return value; }
};
template <>
struct Unboxed<at::OptionalIntArrayRef> {
  std::optional<std::vector<int64_t>> value;
  explicit Unboxed(c10::IValue& v) {
    if (v.isInt())
      value = std::vector<int64_t>{v.toInt()};
    else if (!v.isNone())
      value = v.toIntVector();
  }
  at::OptionalIntArrayRef get() const { return value ? at::OptionalIntArrayRef(*value) : at::OptionalIntArrayRef(); }
};
template <>
struct Unboxed<at::OptionalTensorRef> {
  at::Tensor value;
  explicit Unboxed(c10::IValue& v) {
    if (v.isTensor()) value = v.toTensor();
  }
  at::OptionalTensorRef get() const { return value.defined() ? at::OptionalTensorRef(value) : at::OptionalTensorRef(); }
};
template <>
struct Unboxed<at::ITensorListRef> {
  std::vector<at::Tensor> value;
  explicit Unboxed(c10::IValue& v) : value(v.toTensorVector()) {}
  at::ITensorListRef get() const { return at::ITensorListRef(value); }
};
template <>
struct Unboxed<at::IOptTensorListRef> {
  c10::List<std::optional<at::Tensor>> value;
  explicit Unboxed(c10::IValue& v) : value(v.toOptionalTensorList()) {}
  at::IOptTensorListRef get() const { return at::IOptTensorListRef(value); }
};
template <>
struct Unboxed<std::string_view> {
  std::string value;
  explicit Unboxed(c10::IValue& v) : value(v.toStringRef()) {}
  std::string_view get() const { return value; }
};
template <>
struct Unboxed<std::optional<std::string_view>> {
  std::optional<std::string> value;
  explicit Unboxed(c10::IValue& v) {
    if (!v.isNone()) value = v.toStringRef();
  }
  std::optional<std::string_view> get() const { return value ? std::optional<std::string_view>(*value) : std::nullopt; }
};
template <>
struct Unboxed<std::optional<at::ArrayRef<double>>> {
  std::optional<std::vector<double>> value;
  explicit Unboxed(c10::IValue& v) {
    if (!v.isNone()) value = v.toDoubleVector();
  }
  std::optional<at::ArrayRef<double>> get() const { return value ? std::optional<at::ArrayRef<double>>(*value) : std::nullopt; }
};

inline void Collect(at::Tensor t, std::vector<at::Tensor>* results) { results->push_back(std::move(t)); }
template <class... T>
void Collect(std::tuple<T...> tuple, std::vector<at::Tensor>* results) {
  std::apply([&](auto&... t) { (results->push_back(std::move(t)), ...); }, tuple);
}

template <class R, class... Args, size_t... I>
R Call(R (*f)(Args...), torch::jit::Stack& s, std::index_sequence<I...>) {
  return f(Unboxed<std::decay_t<Args>>(s[I]).get()...);
}

template <class R, class... Args>
void AddRow(StructuredMetaTable* table, const char* name, R (*f)(Args...)) {
  auto invoke = [](void (*erased)(), torch::jit::Stack& arguments, std::vector<at::Tensor>* results) {
    auto typed = reinterpret_cast<R (*)(Args...)>(erased);
    Collect(Call(typed, arguments, std::index_sequence_for<Args...>()), results);
  };
  table->emplace(name, StructuredMeta{reinterpret_cast<void (*)()>(f), invoke});
}

}  // namespace tpu::aten
