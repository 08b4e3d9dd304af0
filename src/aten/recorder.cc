// SPDX-License-Identifier: Apache-2.0
#include "aten/recorder.h"

#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>

#include "aten/call.h"
#include "aten/errors.h"
#include "aten/fallback.h"
#include "aten/generator.h"
#include "aten/infer.h"
#include "aten/op_form.h"
#include "aten/op_kernel.h"
#include "aten/tensor.h"
#include "base/settings.h"
#include "engine/corridor.h"
#include "engine/runtime.h"

namespace tpu::aten {
namespace {

using c10::IValue;
using torch::jit::Stack;

struct DrawContext {
  const OpForm* form;
  const IValue* arguments;
  int device;
};

void DrawNumbers(void* context, int64_t count, uint64_t* seed, uint64_t* offset) {
  auto* c = static_cast<DrawContext*>(context);
  std::optional<at::Generator> generator;
  if (c->form->generator >= 0 && c->arguments[c->form->generator].isGenerator())
    generator = c->arguments[c->form->generator].toGenerator();
  RandomDraw draw = Draw(generator, c->device, count);
  *seed = draw.seed;
  *offset = draw.offset;
}

struct HookContext {
  InferContext infer;
  DrawContext draw;
};

at::Tensor Fresh(const engine::ProgramResult& r, int device, engine::Value* value) {
  return MakeTensor({r.tensor.sizes, r.tensor.rank}, r.contiguous ? nullptr : r.tensor.strides, ToScalarType(r.tensor.dtype),
                    device, value);
}

bool DebugMode() {
  static const auto& mode = GetSettings().eager_mode;
  return __builtin_expect((*mode.load(std::memory_order_acquire))[0] == 'd', 0);
}

// Debug eager: what a value-dependent check or the engine finds is raised at the call.
[[gnu::noinline]] void WaitFor(const at::Tensor& t) {
  if (!t.defined()) return;
  engine::ValueRef value(CellOf(t)->Load());
  ThrowIfError(engine::Wait(value.get()));
}

[[gnu::noinline]] void Resize(const InferContext& c) {
  for (const auto& [k, sizes] : c.resize) at::native::resize_output(c.arguments[c.form->out_args[k]].toTensor(), sizes);
}

// What became of a call.
struct Outcome {
  engine::CorridorResult result;
  int device = -1;
  std::string fallback;  // not empty: the CPU must serve the call, for this reason
};

// False: the out= arguments were resized and the call must be recorded anew.
bool RecordOnce(const OpForm& form, const IValue* arguments, Outcome* outcome) {
  Call call(form, arguments);
  call.Fill();
  if (__builtin_expect(call.refusal != nullptr, 0)) {
    outcome->fallback = call.refusal;
    return true;
  }
  outcome->device = call.record.device;
  HookContext context{{&form, arguments, std::move(call.updated), nullptr, {}}, {&form, arguments, outcome->device}};
  engine::CorridorHooks hooks{
      &context, [](void* c, graph::OpRecord* r) { return InferResults(&static_cast<HookContext*>(c)->infer, r); },
      [](void* c, int64_t n, uint64_t* s, uint64_t* o) { DrawNumbers(&static_cast<HookContext*>(c)->draw, n, s, o); }};
  Status status = engine::RunRecord(&call.record, hooks, &outcome->result);
  if (__builtin_expect(!status.ok(), 0)) {
    if (context.infer.raised) std::rethrow_exception(context.infer.raised);
    if (!context.infer.resize.empty()) {
      Resize(context.infer);
      return false;
    }
    ThrowIfError(status);
  }
  if (__builtin_expect(outcome->result.program->unsupported, 0)) outcome->fallback = outcome->result.program->why;
  return true;
}

// Carries a call of `form` through the corridor. False: the fallback must serve it.
bool Run(const OpForm& form, const IValue* arguments, Outcome* outcome) {
  if (__builtin_expect(!form.rule, 0)) {
    outcome->fallback = form.no_rule;
    return false;
  }
  engine::Runtime::Require(&ThrowIfError);
  for (int tries = 0; !RecordOnce(form, arguments, outcome); ++tries)
    TORCH_CHECK(tries < 2, form.name, ": cannot resize its out= arguments");
  return outcome->fallback.empty();
}

// Replaces the form's arguments on the stack by its results.
void Bind(const OpForm& form, Stack* stack, const Outcome& outcome) {
  size_t begin = stack->size() - form.num_stack_args;
  const engine::Program& program = *outcome.result.program;
  std::vector<at::Tensor> results;
  for (int k = 0; k < form.num_returns; ++k) {  // further results are updates of arguments
    const engine::ProgramResult& r = program.results[k];
    if (r.target >= 0) {
      size_t at = form.out_args.empty() ? form.args[form.mutated_args[r.target]].stack : form.out_args[r.target];
      results.push_back((*stack)[begin + at].toTensor());
    } else {
      results.push_back(r.output < 0 ? at::Tensor() : Fresh(r, outcome.device, outcome.result.outputs[r.output]));
    }
  }
  stack->resize(begin);
  for (at::Tensor& t : results) stack->emplace_back(std::move(t));
}

// Arguments of a typed kernel as IValues that hold no reference of their own: taking a second reference to a tensor that
// Python knows costs torch a trip through the GIL's bookkeeping.
template <size_t N>
class BorrowedArguments {
 public:
  template <class... Args>
  explicit BorrowedArguments(const Args&... args) : values_{Borrow(args)...} {}
  ~BorrowedArguments() {
    for (IValue& v : values_)
      if (v.isTensor()) (void)std::move(v).toTensor().unsafeReleaseTensorImpl();
  }
  const IValue* data() const { return values_; }

  // Owned copies, for the boxed path.
  Stack ToStack() const { return Stack(values_, values_ + N); }

 private:
  static IValue Borrow(const at::Tensor& t) {
    return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(t.unsafeGetTensorImpl()));
  }
  static IValue Borrow(const at::Scalar& s) { return s; }

  IValue values_[N];
};

}  // namespace

void RecordForm(const OpForm& form, Stack* stack) {
  Outcome outcome;
  if (__builtin_expect(!Run(form, stack->data() + (stack->size() - form.num_stack_args), &outcome), 0))
    return CpuFallback(*form.op, stack, outcome.fallback);
  Bind(form, stack, outcome);
  if (DebugMode())
    for (size_t i = stack->size() - form.num_returns; i < stack->size(); ++i) WaitFor((*stack)[i].toTensor());
}

template <class... Args>
at::Tensor RecordTyped(const OpForm& form, const Args&... args) {
  BorrowedArguments<sizeof...(Args)> arguments(args...);
  Outcome outcome;
  if (__builtin_expect(!Run(form, arguments.data(), &outcome), 0)) {
    Stack stack = arguments.ToStack();
    CpuFallback(*form.op, &stack, outcome.fallback);
    return std::move(stack.back()).toTensor();
  }
  if (form.mutates()) {  // the caller has the tensor already
    if (DebugMode()) WaitFor(arguments.data()[0].toTensor());
    return {};
  }
  at::Tensor t = Fresh(outcome.result.program->results[0], outcome.device, outcome.result.outputs[0]);
  if (DebugMode()) WaitFor(t);
  return t;
}

using T = at::Tensor;
using N = at::Scalar;
template T RecordTyped(const OpForm&, const T&);
template T RecordTyped(const OpForm&, const T&, const T&);
template T RecordTyped(const OpForm&, const T&, const N&);
template T RecordTyped(const OpForm&, const T&, const T&, const N&);

}  // namespace tpu::aten
