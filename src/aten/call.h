// SPDX-License-Identifier: Apache-2.0
// Call: from a dispatcher call to a Record. In a header for the recorder's hot path alone.
#pragma once
#include <ATen/Context.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/op_registration/adaption.h>

#include <vector>

#include "aten/op_form.h"
#include "aten/tensor.h"
#include "engine/corridor.h"
#include "lower/lowering.h"

namespace tpu::aten {

// One call: fills the Record from the stack.
class Call {
 public:
  Call(const OpForm& form, const c10::IValue* arguments) : form_(form), arguments_(arguments) {}

  engine::Record record;
  const char* refusal = nullptr;  // why this call cannot be recorded: the fallback takes it
  std::vector<int16_t> updated;  // of form.updated_args, those that this call updates

  void Fill() {
    record.key.Numerics(NumericsWord());
    bool sized = form_.rule->size_of_scalars != nullptr;
    if (__builtin_expect(!form_.updated_args.empty(), 0)) FindUpdated();
    record.key.Record(form_.op_hash, static_cast<int>(form_.args.size()) + sized,
                      static_cast<int>(form_.mutated_args.size() + form_.out_args.size() + updated.size()),
                      updated.empty() ? 0 : form_.num_returns);
    for (const ArgPlan& plan : form_.args) AddArgument(plan);
    if (__builtin_expect(sized, 0))
      record.key.Int(form_.rule->size_of_scalars(scalars_.data(), static_cast<int>(scalars_.size())));
    for (int16_t a : form_.mutated_args) AddMutated(a);
    for (int16_t u : updated) AddMutated(u);
    for (int16_t o : form_.out_args) AddOut(arguments_[o].toTensor());
    if (record.device < 0) record.device = CurrentDevice();
  }

 private:
  void FindUpdated() {
    if (!arguments_[form_.args[form_.updates_if].stack].toBool()) return;
    for (int16_t u : form_.updated_args) {
      const c10::IValue& v = arguments_[form_.args[u].stack];
      if (v.isTensor() && v.toTensor().defined()) updated.push_back(u);
    }
  }

  uint64_t NumericsWord() {
    lower::Numerics n;
    if (form_.rule->precision) {
      auto p = at::globalContext().float32MatmulPrecision();
      n.matmul_precision = p == at::Float32MatmulPrecision::HIGHEST ? lower::Numerics::kHighest
                           : p == at::Float32MatmulPrecision::HIGH  ? lower::Numerics::kHigh
                                                                    : lower::Numerics::kDefault;
    }
    n.deterministic = at::globalContext().deterministicAlgorithms();
    return n.Encode(0);
  }

  void AddArgument(const ArgPlan& plan) {
    if (__builtin_expect(plan.use == ArgUse::kDevice, 0)) {
      const c10::IValue& v = arguments_[plan.stack];
      if (record.device < 0 && v.isDevice()) record.device = DeviceIndexOf(v.toDevice());
      record.key.None();
      return;
    }
    if (plan.use == ArgUse::kMissing || plan.use == ArgUse::kIgnored || plan.use == ArgUse::kGenerator) {
      record.key.None();
      return;
    }
    const c10::IValue& v = arguments_[plan.stack];
    if (plan.use == ArgUse::kTensor) {
      if (__builtin_expect(v.isTensor(), 1)) return AddTensor(v.toTensor(), plan);
      record.key.None();
      return;
    }
    if (v.isNone()) {
      if (__builtin_expect(form_.takes_dtype_of_out(plan), 0))
        record.key.DTypeArg(FromScalarType(arguments_[form_.out_args[0]].toTensor().scalar_type()));
      else
        record.key.None();
      return;
    }
    switch (plan.use) {
      case ArgUse::kTensorList:
        AddTensorList(v, plan);
        break;
      case ArgUse::kScalar:
      case ArgUse::kClassifiedScalar:
      case ArgUse::kRuntimeFloat:
        AddScalar(v, plan);
        break;
      case ArgUse::kStructuralScalar:
        if (v.isDouble())
          record.key.Double(v.toDouble());
        else if (v.isInt())
          record.key.Int(v.toInt());
        else if (v.isBool())
          record.key.Bool(v.toBool());
        else
          Refuse("a complex structural argument");
        break;
      case ArgUse::kInt:
        record.key.Int(v.isSymInt() ? v.toSymInt().guard_int(__FILE__, __LINE__) : v.toInt());
        break;
      case ArgUse::kDouble:
        record.key.Double(v.isInt() ? static_cast<double>(v.toInt()) : v.toDouble());
        break;
      case ArgUse::kBool:
        record.key.Bool(v.toBool());
        break;
      case ArgUse::kString:
        record.key.Text(v.toStringRef());
        break;
      case ArgUse::kDType:
        record.key.DTypeArg(FromScalarType(v.toScalarType()));
        break;
      case ArgUse::kIntList:
        AddInts(v, graph::Tag::kIntList);
        break;
      case ArgUse::kBoolList:
        AddInts(v, graph::Tag::kBoolList);
        break;
      case ArgUse::kDoubleList: {
        auto list = v.toListRef();
        record.key.ListHeader(graph::Tag::kDoubleList, list.size());
        for (const c10::IValue& e : list) record.key.Word(e.toDouble());
        break;
      }
      default:
        Refuse("an argument of a kind that keys do not hold");
    }
  }

  void AddInts(const c10::IValue& v, graph::Tag tag) {
    if (v.isInt()) {  // int[1] given as a number
      record.key.ListHeader(tag, 1);
      record.key.Word(v.toInt());
      return;
    }
    auto list = v.toListRef();
    record.key.ListHeader(tag, list.size());
    for (const c10::IValue& e : list)
      record.key.Word(e.isBool()     ? static_cast<int64_t>(e.toBool())
                      : e.isSymInt() ? e.toSymInt().guard_int(__FILE__, __LINE__)
                                     : e.toInt());
  }

  void AddTensorList(const c10::IValue& v, const ArgPlan& plan) {
    auto list = v.toListRef();
    record.key.ListHeader(graph::Tag::kTensorList, list.size());
    for (const c10::IValue& e : list) {
      if (e.isTensor() && e.toTensor().defined() && !IsOurs(e.toTensor())) {
        if (!(e.toTensor().dim() == 0 && e.toTensor().device().is_cpu())) MixedDevices(e.toTensor(), plan);
        Refuse("a CPU scalar in a list of tensors");
        return;
      }
      if (e.isTensor())
        AddTensor(e.toTensor(), plan);
      else
        record.key.None();
    }
  }

  void AddScalar(const c10::IValue& v, const ArgPlan& plan) {
    DType kind;
    double value = 0;
    if (v.isDouble()) {
      kind = DType::kF64;
      value = v.toDouble();
    } else if (v.isInt()) {
      kind = DType::kI64;
      value = static_cast<double>(v.toInt());
    } else if (v.isBool()) {
      kind = DType::kBool;
      value = v.toBool();
    } else {
      kind = DType::kC128;
    }
    uint8_t scalar_class = 0;
    if (plan.use != ArgUse::kScalar && kind != DType::kC128) {
      scalar_class = form_.rule->classify ? form_.rule->classify(plan.position, value, kind == DType::kI64) : 0;
      if (!scalar_class && plan.is_alpha && value == 1) scalar_class = 1;
    }
    if (__builtin_expect(form_.rule->size_of_scalars != nullptr, 0)) scalars_.push_back(value);
    record.key.Scalar(kind, scalar_class);
    if (scalar_class) return;
    if (kind == DType::kF64) {
      AddRaw(value);
    } else if (kind == DType::kC128) {
      auto c = v.toComplexDouble();
      AddRaw(c.real());
      AddRaw(c.imag());
    } else {
      record.raw.push_back(static_cast<uint64_t>(v.isBool() ? v.toBool() : v.toInt()));
    }
  }

  void AddRaw(double d) {
    uint64_t bits;
    std::memcpy(&bits, &d, sizeof bits);
    record.raw.push_back(bits);
  }

  void AddTensor(const at::Tensor& t, const ArgPlan& plan) {
    if (!t.defined()) return record.key.None();
    c10::TensorImpl* impl = t.unsafeGetTensorImpl();
    if (__builtin_expect(impl->device_type() != kDeviceType, 0)) return AddHostTensor(t, plan);
    int device = impl->device().index();
    if (record.device < 0)
      record.device = device;
    else if (__builtin_expect(record.device != device, 0))
      MixedDevices(t, plan);
    AddOperand(impl);
  }

  void AddOperand(c10::TensorImpl* impl) {
    engine::Cell* cell = CellOf(impl->unsafe_storage());
    int number = record.ArgumentOf(cell);
    const TensorType& base = record.values[number]->type;
    DType dtype = FromScalarType(c10::typeMetaToScalarType(impl->dtype()));
    bool conj = impl->key_set().has(c10::DispatchKey::Conjugate), neg = impl->key_set().has(c10::DispatchKey::Negative);
    auto sizes = impl->sizes();
    if (__builtin_expect(impl->storage_offset() == 0 && dtype == base.dtype && impl->is_contiguous() && SameSizes(sizes, base),
                         1)) {
      record.key.WholeTensor(base, number, conj, neg);
      return;
    }
    if (sizes.size() > static_cast<size_t>(kMaxRank)) return Refuse("a tensor of more than 8 dimensions");
    if (dtype == DType::kInvalid || (base.dtype != dtype && graph::Reinterpret(base, dtype).dtype == DType::kInvalid))
      return Refuse("a view whose bytes do not divide");
    auto strides = impl->strides();
    graph::View view{dtype, static_cast<uint8_t>(sizes.size()), sizes.data(), strides.data(), impl->storage_offset()};
    graph::Access access;
    int64_t starts[kMaxRank];
    graph::Analyse(view, base, &access, starts);
    record.key.Tensor(view, base, access, number, conj, neg);
    int n = access.num_starts(view);
    for (int i = 0; i < n; ++i) record.raw.push_back(static_cast<uint64_t>(starts[i]));
  }

  static bool SameSizes(c10::IntArrayRef sizes, const TensorType& base) {
    if (sizes.size() != base.rank) return false;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] != base.dims[i].size()) return false;
    return true;
  }

  // 0-dim CPU tensors mix with ours everywhere; their value is a host value.
  void AddHostTensor(const at::Tensor& t, const ArgPlan& plan) {
    if (!t.device().is_cpu() || t.dim() != 0) MixedDevices(t, plan);
    DType dtype = FromScalarType(t.scalar_type());
    if (dtype == DType::kInvalid) return Refuse("a CPU scalar of a type the device does not have");
    record.key.HostTensor(dtype, t.unsafeGetTensorImpl()->is_wrapped_number());
    const void* data = t.const_data_ptr();
    switch (dtype) {  // the types of Python's numbers, without a trip through the dispatcher
      case DType::kF64:
        return AddRaw(*static_cast<const double*>(data));
      case DType::kI64:
        return record.raw.push_back(*static_cast<const uint64_t*>(data));
      case DType::kBool:
        return record.raw.push_back(*static_cast<const bool*>(data));
      default:
        break;
    }
    at::Scalar s = t.item();
    if (IsComplex(dtype)) {
      auto c = s.toComplexDouble();
      AddRaw(c.real());
      AddRaw(c.imag());
    } else if (IsFloat(dtype)) {
      AddRaw(s.toDouble());
    } else {
      record.raw.push_back(static_cast<uint64_t>(s.toLong()));
    }
  }

  void AddMutated(int16_t position) {
    const at::Tensor& self = arguments_[form_.args[position].stack].toTensor();
    CheckOverlap(self);
    record.key.TargetArgument(position, Covers(self));
    record.targets.push_back(CellOf(self));
  }

  void AddOut(const at::Tensor& out) {
    TORCH_CHECK(IsOurs(out) || record.device < 0, "Expected out tensor to have device ",
                c10::Device(kDeviceType, record.device), ", but got ", out.device(), " instead");
    if (!IsOurs(out)) return Refuse("an out= tensor on another device");
    if (record.device < 0) record.device = out.device().index();
    TORCH_CHECK(record.device == out.device().index(), "Expected out tensor to have device ",
                c10::Device(kDeviceType, record.device), ", but got ", out.device(), " instead");
    CheckOverlap(out);
    record.key.TargetOperand(Covers(out));
    AddOperand(out.unsafeGetTensorImpl());
    record.targets.push_back(CellOf(out));
  }

  static bool Covers(const at::Tensor& t) {
    if (t.dim() > kMaxRank) return false;
    int8_t order[kMaxRank];
    graph::View view{FromScalarType(t.scalar_type()), static_cast<uint8_t>(t.dim()), t.sizes().data(), t.strides().data(),
                     t.storage_offset()};
    return graph::CoversStorage(view, CellOf(t)->bytes, order);
  }

  // Core's own checks; Meta does not make them.
  void CheckOverlap(const at::Tensor& written) {
    if (!written.unsafeGetTensorImpl()->is_non_overlapping_and_dense_or_false()) at::assert_no_internal_overlap(written);
    engine::Cell* cell = CellOf(written);
    for (const ArgPlan& plan : form_.args) {
      if (plan.use != ArgUse::kTensor) continue;
      const c10::IValue& v = arguments_[plan.stack];
      if (!v.isTensor()) continue;
      const at::Tensor& t = v.toTensor();
      if (&t == &written || !IsOurs(t) || t.is_same(written) || CellOf(t) != cell) continue;
      at::assert_no_partial_overlap(written, t);
    }
  }

  void Refuse(const char* why) {
    if (!refusal) refusal = why;
  }

  [[noreturn]] void MixedDevices(const at::Tensor& t, const ArgPlan& plan) {
    int device = record.device;
    for (const ArgPlan& p : form_.args) {
      if (device >= 0) break;
      if (p.use == ArgUse::kTensor && arguments_[p.stack].isTensor() && IsOurs(arguments_[p.stack].toTensor()))
        device = arguments_[p.stack].toTensor().device().index();
    }
    if (device < 0) device = CurrentDevice();
    c10::impl::common_device_check_failure(c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(device)), t,
                                           form_.name.c_str(),
                                           form_.functional->schema().arguments()[plan.position].name().c_str());
    throw std::logic_error("unreachable");
  }

  const OpForm& form_;
  const c10::IValue* arguments_;
  InlineVector<double, 4> scalars_;  // for Rule::size_of_scalars
};

}  // namespace tpu::aten
