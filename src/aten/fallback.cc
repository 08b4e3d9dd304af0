// SPDX-License-Identifier: Apache-2.0
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#define AT_PER_OPERATOR_HEADERS
#include "aten/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/op_registration/adaption.h>

#include <deque>
#include <map>
#include <mutex>

#include "aten/copy.h"
#include "aten/errors.h"
#include "aten/generator.h"
#include "aten/host_kernels.h"
#include "aten/storage_ops.h"
#include "aten/tensor.h"
#include "base/log.h"
#include "base/settings.h"
#include "engine/capture.h"
#include "engine/counters.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

// ---- policy
struct Registry {
  std::mutex mu;
  std::map<std::string, uint64_t> counts;
};
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

// Counts, warns or refuses.
void Announce(const std::string& name, const std::string& why) {
  if (engine::Capturing()) ThrowIfError(engine::BreakCapture(name + " has no program (" + why + ")"));
  const std::string& mode = *GetSettings().fallback.load(std::memory_order_acquire);
  TORCH_CHECK_NOT_IMPLEMENTED(mode != "forbid", name, " has no program for the tpu device (", why,
                              ") and the setting fallback=forbid keeps it from running on the CPU");
  engine::Count(engine::g_counters.fallbacks);
  bool first = false;
  {
    Registry& registry = TheRegistry();
    std::lock_guard<std::mutex> lock(registry.mu);
    first = registry.counts[name]++ == 0;
  }
  if (GetSettings().explain.load(std::memory_order_relaxed)) WriteLogLine("fallback " + name + ": " + why);
  // After the lock: a warning may run Python, and may throw.
  if (first && mode == "warn") TORCH_WARN("torch_tpu: ", name, " runs on the CPU (", why, ")");
}

// Operators that write to arguments whose schema does not say so.
bool WritesSilently(const std::string& op, const std::string& argument) {
  return (op == "aten::native_batch_norm" || op == "aten::batch_norm_update_stats") &&
         (argument == "running_mean" || argument == "running_var");
}

// Arguments that PyTorch itself wants on the CPU, whatever the device of the others.
bool WantedOnCpu(const std::string& argument) {
  return argument == "scalars" || argument == "input_lengths" || argument == "target_lengths";
}

// ---- random numbers
// One counter draw decides the whole stream of a CPU generator, which keeps only 32 bits of its seed: mix well.
uint64_t MixSeed(const RandomDraw& draw) {
  uint64_t z = draw.seed + 0x9E3779B97F4A7C15ull * (draw.offset + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

at::Generator CpuGenerator(const std::optional<at::Generator>& generator, int device) {
  return at::detail::createCPUGenerator(MixSeed(Draw(generator, device, 4)));
}

// For operators that are random without a generator argument: they draw from the process's CPU generator.
class SeededDefaultGenerator {
 public:
  explicit SeededDefaultGenerator(uint64_t seed) : generator_(at::detail::getDefaultCPUGenerator()) {
    std::lock_guard<std::mutex> lock(generator_.mutex());
    state_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  ~SeededDefaultGenerator() {
    std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state_);
  }

 private:
  at::Generator generator_;
  Tensor state_;
};

bool TakesGenerator(const c10::Argument& argument) {
  if (argument.type()->kind() == c10::TypeKind::GeneratorType) return true;
  auto optional = argument.type()->cast<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

// ---- one call
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, std::string name, Stack* stack)
      : op_(op),
        name_(std::move(name)),
        schema_(op.schema()),
        stack_(stack),
        first_(stack->size() - schema_.arguments().size()),
        original_(stack->begin() + static_cast<ptrdiff_t>(first_), stack->end()),
        device_(FindDevice()) {}

  void Run() {
    RefuseViews();
    CheckDevices();
    for (size_t i = 0; i < original_.size(); ++i) Convert(schema_.arguments()[i], &(*stack_)[first_ + i]);
    Call();
    WriteBack();
    BringResults();
  }

 private:
  enum class Role { kRead, kInPlace, kOut };
  struct Copied {
    Tensor device, host;
  };

  template <class Visit>
  static bool AnyTensor(const IValue& v, const Visit& visit) {
    if (v.isTensor()) return visit(v.toTensor());
    if (v.isTensorList()) {
      for (const Tensor& t : v.toTensorVector())
        if (visit(t)) return true;
    } else if (v.isOptionalTensorList()) {
      for (const std::optional<Tensor>& t : v.toOptionalTensorVector())
        if (t && visit(*t)) return true;
    }
    return false;
  }

  // The first tensor of ours decides, whatever its position (2 // t); then a device or a generator.
  int FindDevice() {
    int device = -1;
    for (const IValue& v : original_) {
      AnyTensor(v, [&](const Tensor& t) {
        if (!IsOurs(t)) return false;
        device = t.device().index();
        return true;
      });
      any_ours_ = device >= 0;
      if (any_ours_) return device;
    }
    for (const IValue& v : original_) {
      if (v.isDevice() && v.toDevice().type() == kDeviceType) return DeviceIndexOf(v.toDevice());
      if (v.isGenerator() && v.toGenerator().device().type() == kDeviceType) return v.toGenerator().device().index();
    }
    return CurrentDevice();
  }

  void RefuseViews() const {
    for (const c10::Argument& r : schema_.returns())
      TORCH_CHECK_NOT_IMPLEMENTED(!r.alias_info() || r.alias_info()->isWrite(), name_,
                                  " returns a view, which cannot be made on the CPU for a tensor of the tpu device");
  }

  // The dispatcher's generated check, which boxed kernels do not have. CPU tensors of no dimensions mix with ours.
  void CheckDevices() const {
    for (size_t i = 0; i < original_.size(); ++i) {
      const std::string& argument = schema_.arguments()[i].name();
      if (WantedOnCpu(argument)) continue;
      AnyTensor(original_[i], [&](const Tensor& t) {
        if (!t.defined() || (t.device().is_cpu() && t.dim() == 0)) return false;
        if (!any_ours_ || (IsOurs(t) && t.device().index() == device_)) return false;
        c10::impl::common_device_check_failure(c10::Device(kDeviceType, static_cast<c10::DeviceIndex>(device_)), t,
                                               name_.c_str(), argument.c_str());
        return true;
      });
    }
  }

  // ---- arguments
  void Convert(const c10::Argument& argument, IValue* v) {
    Role role = Role::kRead;
    if (argument.is_out())
      role = Role::kOut;
    else if ((argument.alias_info() && argument.alias_info()->isWrite()) ||
             WritesSilently(op_.operator_name().name, argument.name()))
      role = Role::kInPlace;

    if (v->isTensor()) {
      *v = ToHost(v->toTensor(), role);
    } else if (v->isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& t : v->toTensorVector()) list.push_back(ToHost(t, role));
      *v = std::move(list);
    } else if (v->isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (const std::optional<Tensor>& t : v->toOptionalTensorVector())
        list.push_back(t ? std::optional<Tensor>(ToHost(*t, role)) : std::nullopt);
      *v = std::move(list);
    } else if (v->isDevice()) {
      if (v->toDevice().type() == kDeviceType) *v = c10::Device(c10::kCPU);
    } else if (v->isGenerator()) {
      // Raises for a generator of another device, as every operator does.
      *v = CpuGenerator(v->toGenerator(), device_);
      has_generator_ = true;
    } else if (v->isNone() && TakesGenerator(argument)) {
      *v = CpuGenerator(std::nullopt, device_);
      has_generator_ = true;
    }
  }

  Tensor ToHost(const Tensor& t, Role role) {
    if (!IsOurs(t)) return t;
    if (role == Role::kRead) {
      // The CPU kernel is called below the keys that would resolve the bits.
      Tensor host = HostView(t);
      return t.is_conj() || t.is_neg() ? host.resolve_conj().resolve_neg() : host;
    }
    for (const Copied& c : copied_)
      if (c.device.is_same(t)) return c.host;
    if (role == Role::kInPlace && !t.is_conj() && !t.is_neg()) {
      // Tensors that share a storage have to share the copy too.
      HostBase* base = nullptr;
      for (HostBase& b : bases_)
        if (b.Holds(t)) base = &b;
      if (!base) base = &bases_.emplace_back(t);
      Tensor host = base->View(t);
      in_place_.push_back({t, host});
      return host;
    }
    // An out= kernel may resize what it is given, at any time: it gets memory of its own. It writes all of it.
    at::assert_no_internal_overlap(t);
    Tensor host = at::detail::empty_strided_cpu(t.sizes(), t.strides(), t.scalar_type());
    if (role == Role::kInPlace) host.copy_(HostView(t));
    copied_.push_back({t, host});
    return host;
  }

  // ---- the call
  void Call() {
    at::AutoDispatchBelowADInplaceOrView below;
    c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    std::optional<SeededDefaultGenerator> seeded;
    if (!has_generator_ && op_.hasTag(at::Tag::nondeterministic_seeded))
      seeded.emplace(MixSeed(Draw(std::nullopt, device_, 4)));
    if (HostKernel kernel = FindHostKernel(name_)) {
      kernel(stack_);
      return;
    }
    TORCH_CHECK_NOT_IMPLEMENTED(op_.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU), name_,
                                " has neither a program for the tpu device nor a CPU kernel");
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
  }

  // ---- results
  void WriteBack() {
    at::AutoDispatchBelowADInplaceOrView below;
    for (HostBase& base : bases_) base.Commit();
    for (const Copied& c : copied_) {
      if (c.device.sizes() != c.host.sizes()) {
        // The CPU kernel has warned already where that is due.
        Resize(c.device, c.host.sizes(), std::nullopt);
        if (c.host.is_non_overlapping_and_dense())
          c.device.unsafeGetTensorImpl()->set_sizes_and_strides(c.host.sizes(), c.host.strides());
      }
      TensorType type;
      if (CoversStorage(c.device, &type) || c.device.is_conj() || c.device.is_neg() || !c.device.numel() ||
          !engine::Runtime::Started().profile().host_addressable) {
        CopyFrom(c.host, c.device, false);
        continue;
      }
      // Part of a storage that the host can see: a copy of its bytes is cheaper than a program for this one geometry.
      HostBase base(c.device);
      base.View(c.device).copy_(c.host);
      base.Commit();
    }
  }

  void BringResults() {
    const size_t n = schema_.returns().size(), begin = stack_->size() - n;
    for (size_t r = 0; r < n; ++r) {
      IValue& v = (*stack_)[begin + r];
      if (const IValue* written = WrittenArgument(schema_.returns()[r])) {
        v = *written;
      } else if (v.isTensor()) {
        v = FromHost(v.toTensor());
      } else if (v.isTensorList()) {
        c10::List<Tensor> list;
        for (const Tensor& t : v.toTensorVector()) list.push_back(FromHost(t));
        v = std::move(list);
      }
    }
  }

  // The argument that this return is, by the schema.
  const IValue* WrittenArgument(const c10::Argument& result) const {
    if (!result.alias_info() || !result.alias_info()->isWrite()) return nullptr;
    for (size_t i = 0; i < original_.size(); ++i) {
      const auto* info = schema_.arguments()[i].alias_info();
      if (info && info->isWrite() && info->beforeSets() == result.alias_info()->beforeSets()) return &original_[i];
    }
    return nullptr;
  }

  Tensor FromHost(const Tensor& t) const {
    if (!t.defined() || !t.device().is_cpu()) return t;  // an operator may answer on "meta"
    for (const auto* list : {&in_place_, &copied_})
      for (const Copied& c : *list)
        if (c.host.is_same(t)) return c.device;
    TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == c10::kStrided, name_, " has a result of layout ", t.layout(),
                                ", and the tpu device has strided tensors only");
    return ToDevice(t, device_);
  }

  const c10::OperatorHandle& op_;
  const std::string name_;
  const c10::FunctionSchema& schema_;
  Stack* stack_;
  const size_t first_;
  const std::vector<IValue> original_;
  bool any_ours_ = false;  // a tensor of ours is among the arguments
  const int device_;
  bool has_generator_ = false;
  std::deque<HostBase> bases_;
  std::vector<Copied> in_place_;  // views of bases_
  std::vector<Copied> copied_;    // memory of their own
};

}  // namespace

void CpuFallback(const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::string& why) {
  std::string name = c10::toString(op.operator_name());
  Announce(name, why);
  HostCall(op, std::move(name), stack).Run();
}

std::vector<std::pair<std::string, uint64_t>> FallbackCounts() {
  Registry& registry = TheRegistry();
  std::lock_guard<std::mutex> lock(registry.mu);
  return {registry.counts.begin(), registry.counts.end()};
}

}  // namespace tpu::aten
