// SPDX-License-Identifier: Apache-2.0
#include "engine/capture.h"

#include <algorithm>
#include <utility>

#include "engine/counters.h"
#include "engine/host_words.h"
#include "engine/memory.h"
#include "engine/queue.h"
#include "engine/region.h"
#include "engine/runtime.h"

namespace tpu::engine {

Callable::~Callable() {
  for (Value* v : constants_) v->DecRef();
}

Status Callable::Run(const Call& call, std::vector<Value*>* made) const {
  std::vector<ValueRef> inputs;
  for (Value* v : call.inputs) inputs.emplace_back(v);
  if (!program_) return {};
  if (QueueStopped()) return RefuseAfterShutdown();
  if (AnyTraced())
    for (const ValueRef& v : inputs) TPU_RETURN_IF_ERROR(WaitUntilSealed(v.get()));
  if (!QueueHasRoom()) TPU_RETURN_IF_ERROR(WaitForRoom());
  TPU_RETURN_IF_ERROR(Reserve(call.device, program_->reserve_bytes));

  std::vector<uint32_t> words;
  const uint32_t* host_words = words_.data();
  if (!draws_.empty()) {
    std::vector<uint64_t> raw = raw_;
    for (const RandomDraw& d : draws_) call.draw(call.context, d.count, &raw[d.raw], &raw[d.raw + 1]);
    words.resize(static_cast<size_t>(program_->host_words));
    PackHostWords(*program_, raw.data(), words.data());
    host_words = words.data();
  }

  // One reference for each argument: an input's own one is its last use's, so that the worker can give its buffer away.
  std::vector<Value*> args;
  for (int32_t source : sources_) {
    Value* v = source >= 0 ? inputs[static_cast<size_t>(source)].get() : constants_[static_cast<size_t>(~source)];
    v->IncRef();
    args.push_back(v);
  }
  inputs.clear();

  std::vector<Value*> outputs, published;
  for (const TensorType& type : program_->outputs) outputs.push_back(NewValue(type, call.device, ValueState::kPending));
  std::vector<Cell*> cells;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Value* v = outputs[static_cast<size_t>(outputs_[i])];
    v->IncRef();
    made->push_back(call.cells[i] ? nullptr : v);
    if (!call.cells[i]) continue;
    cells.push_back(call.cells[i]);
    published.push_back(v);
  }
  CountRelaxed(g_counters.composed);
  Enqueue({program_, args.data(), outputs.data(), host_words, call.device, cells.data(), published.data(),
           static_cast<int>(cells.size())});
  return {};
}

Capture::Capture() {
  SealTraces();
  outer_ = ExchangeScopedTrace(&trace_);
}

Capture::~Capture() { ExchangeScopedTrace(outer_); }

Value* Capture::AddInput(const TensorType& type, int device) {
  Value* v = NewValue(type, device, ValueState::kTraced);
  TPU_CHECK(trace_.NumberOf(v) == num_inputs_++);
  return v;
}

int Capture::InputOf(const Value* value) const {
  int32_t number;
  return trace_.Holds(value, &number) && number >= 0 && number < num_inputs_ ? number : -1;
}

bool Capture::Makes(const Value* value) const {
  int32_t number;
  return trace_.Holds(value, &number) && number < 0;
}

Result<std::unique_ptr<Callable>> Capture::Finish(std::span<Value* const> values) {
  if (!broken().empty()) return RuntimeError(broken());
  auto callable = std::make_unique<Callable>();
  if (trace_.size() == 0 || values.empty()) return callable;
  std::vector<int32_t> made;
  for (const Value* v : values) {
    int32_t number = 0;
    TPU_CHECK(trace_.Holds(v, &number) && number < 0);
    made.push_back(~number);
  }
  auto program = trace_.ProgramFor(made);
  if (!program.ok()) return program.status();
  callable->program_ = *program;
  const auto& live = (*program)->composition->live;
  for (int32_t m : made)
    callable->outputs_.push_back(static_cast<int32_t>(std::lower_bound(live.begin(), live.end(), m) - live.begin()));
  for (uint16_t argument : (*program)->arguments) {
    if (argument < num_inputs_) {
      callable->sources_.push_back(argument);
    } else {
      Value* constant = trace_.argument(argument);
      constant->IncRef();
      callable->sources_.push_back(~static_cast<int32_t>(callable->constants_.size()));
      callable->constants_.push_back(constant);
    }
  }
  callable->raw_ = trace_.raw();
  for (const Trace::RandomDraw& d : trace_.draws()) callable->draws_.push_back({d.raw, d.count});
  if (callable->draws_.empty()) {
    callable->words_.resize(static_cast<size_t>((*program)->host_words));
    PackHostWords(**program, callable->raw_.data(), callable->words_.data());
  }
  return callable;
}

}  // namespace tpu::engine
