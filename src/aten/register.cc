// SPDX-License-Identifier: Apache-2.0
// Registration: every ATen operator that PyTorch does not decompose gets the recorder under its own name. The bare
// backend fallback would see structured operators only as their out= forms, and others decomposed too early.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include "aten/register.h"

#include <torch/library.h>

#include <unordered_map>

#include "aten/copy.h"
#include "aten/errors.h"
#include "aten/op_kernel.h"
#include "aten/recorder.h"
#include "aten/tensor.h"
#include "base/hash.h"
#include "engine/trace.h"

namespace tpu::aten {
namespace {

using c10::DispatchKey;

class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(const OpForm* form) : form_(form) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) { RecordForm(*form_, stack); }

 private:
  const OpForm* form_;
};

// foreach operators: core's own loop over the tensors, which is what every backend has that registers nothing; its records
// become one program. Made before the operator is registered.
class ForeachKernel final : public c10::OperatorKernel {
 public:
  explicit ForeachKernel(const c10::OperatorHandle& op) : loop_(op.getComputedKernelForDispatchKey(DispatchKey::PrivateUse1)) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    engine::ScopedTrace trace;
    loop_.callBoxed(op, keys, stack);
  }

 private:
  c10::SafeKernelFunction loop_;
};

bool IsForeach(const c10::OperatorHandle& op) {
  return op.operator_name().name.rfind("aten::_foreach_", 0) == 0 &&
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
}

// Typed kernels for the signatures that small hot operators have; the boxed one for all others.
torch::CppFunction KernelFor(const OpForm* form) {
  using T = at::Tensor;
  using N = at::Scalar;
  const c10::FunctionSchema& schema = form->op->schema();
  std::string signature;
  for (const c10::Argument& a : schema.arguments()) {
    auto kind = a.real_type()->kind();
    signature += kind == c10::TypeKind::TensorType ? 'T' : kind == c10::TypeKind::NumberType ? 'N' : '?';
  }
  bool one_tensor = schema.returns().size() == 1 && schema.returns()[0].real_type()->kind() == c10::TypeKind::TensorType;
  bool in_place = form->mutated_args == std::vector<int16_t>{0} && form->updated_args.empty() && form->out_args.empty();
  if (form->rule && one_tensor && !form->mutates()) {
    if (signature == "T") return torch::CppFunction([form](const T& a) -> T { return RecordTyped(*form, a); });
    if (signature == "TT") return torch::CppFunction([form](const T& a, const T& b) -> T { return RecordTyped(*form, a, b); });
    if (signature == "TN") return torch::CppFunction([form](const T& a, const N& s) -> T { return RecordTyped(*form, a, s); });
    if (signature == "TTN")
      return torch::CppFunction([form](const T& a, const T& b, const N& s) -> T { return RecordTyped(*form, a, b, s); });
  }
  if (form->rule && one_tensor && in_place) {
    if (signature == "T") return torch::CppFunction([form](T& a) -> T& { return RecordTyped(*form, a), a; });
    if (signature == "TT") return torch::CppFunction([form](T& a, const T& b) -> T& { return RecordTyped(*form, a, b), a; });
    if (signature == "TN") return torch::CppFunction([form](T& a, const N& s) -> T& { return RecordTyped(*form, a, s), a; });
    if (signature == "TTN")
      return torch::CppFunction([form](T& a, const T& b, const N& s) -> T& { return RecordTyped(*form, a, b, s), a; });
  }
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(form));
}

// Never destroyed: kernels point into it, and the dispatcher outlives static destructors.
std::unordered_map<std::string, std::unique_ptr<OpForm>>& Forms() {
  static auto* forms = new std::unordered_map<std::string, std::unique_ptr<OpForm>>;
  return *forms;
}

// Filled by RegisterOperators, read-only afterwards.
const OpForm& FormOf(const c10::OperatorHandle& op) {
  auto it = Forms().find(c10::toString(op.operator_name()));
  TORCH_INTERNAL_ASSERT(it != Forms().end(), op.operator_name(), " was not known when operators were registered");
  return *it->second;
}

// True for operators that kernels of ours hand on to the recorder.
bool OwnKernel(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(DispatchKey::PrivateUse1) || op.operator_name().name.rfind("torch_tpu::", 0) == 0;
}

bool Wanted(const c10::OperatorHandle& op, const OpForm& form) {
  if (OwnKernel(op)) return false;
  // Autograd decomposes these; a kernel here would switch that off.
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) return false;
  const std::string& name = op.operator_name().name;
  // In-place metadata: squeeze_, t_, transpose_ go through the composite of as_strided_. copy_ goes to _copy_from.
  if (name == "aten::as_strided_" || name == "aten::copy_") return false;
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd)) return form.rule != nullptr;
  return op.hasKernelForDispatchKey(DispatchKey::CPU) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional);
}

}  // namespace

void RegisterOperators() {
  static auto* library = new torch::Library(torch::Library::IMPL, "aten", DispatchKey::PrivateUse1, __FILE__, __LINE__);
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0 && name.name.rfind("torch_tpu::", 0) != 0) continue;
    auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !op->hasSchema()) continue;
    if (IsForeach(*op)) {
      library->impl(c10::toString(name).c_str(),
                    torch::CppFunction::makeFromBoxedFunctor(std::make_unique<ForeachKernel>(*op)));
      continue;
    }
    auto form = MakeForm(*op);
    bool wanted = Wanted(*op, *form);
    if (!wanted && !OwnKernel(*op)) continue;
    std::string full = c10::toString(name);
    const OpForm* stable = Forms().emplace(full, std::move(form)).first->second.get();
    if (!wanted) continue;
    library->impl(full.c_str(), KernelFor(stable));
  }
}

void Record(const c10::OperatorHandle& op, torch::jit::Stack* stack) { RecordForm(FormOf(op), stack); }

void RecordCopy(const at::Tensor& dst, const at::Tensor& src) {
  // aten::copy's rule with dst as its target: copy_ itself never reaches a backend.
  static const OpForm* form = [] {
    auto functional = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy", "");
    auto* f = MakeForm(functional).release();
    f->name = "aten::copy_";
    f->op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
    f->mutated_args.push_back(0);
    return f;
  }();
  torch::jit::Stack stack;
  stack.emplace_back(dst);
  stack.emplace_back(src);
  stack.emplace_back(false);
  RecordForm(*form, &stack);
}

}  // namespace tpu::aten
