// SPDX-License-Identifier: Apache-2.0
#include "engine/corridor.h"

#include "engine/build.h"
#include "engine/capture.h"
#include "engine/counters.h"
#include "engine/executables.h"
#include "engine/host_words.h"
#include "engine/memory.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "engine/trace.h"

namespace tpu::engine {

namespace {

void TakeArguments(const Program& program, Record* record, InlineVector<Value*, 16>* args) {
  for (uint16_t number : program.arguments) args->push_back(record->values[number]);
  if (__builtin_expect(args->size() != record->values.size(), 0)) {  // some are not read
    for (Value* v : *args) v->IncRef();
    for (Value* v : record->values) v->DecRef();
  }
  record->values.clear();
}

Status SealArguments(const Record& record) {
  for (Value* v : record.values) TPU_RETURN_IF_ERROR(WaitUntilSealed(v));
  return {};
}

// A callable draws when it is called.
void Draw(const Program& program, const CorridorHooks& hooks, const Trace* trace, Record* record) {
  uint64_t seed = 0, offset = 0;
  if (program.random_count && !(trace && trace->capturing())) hooks.draw(hooks.context, program.random_count, &seed, &offset);
  record->raw.push_back(seed);
  record->raw.push_back(offset);
}

}  // namespace

Status RunRecord(Record* record, const CorridorHooks& hooks, CorridorResult* result) {
  if (__builtin_expect(QueueStopped(), 0)) return RefuseAfterShutdown();
  CountRelaxed(g_counters.records);

  // seal: strict eager, a graph of one. key:
  Fingerprint fingerprint = record->key.fingerprint();
  Program* program = FindProgram(fingerprint, record->key);
  if (__builtin_expect(program == nullptr, 0)) {
    auto built = BuildProgram(fingerprint, record->key, hooks);
    if (!built.ok()) return built.status();
    program = *built;
  }
  result->program = program;
  if (__builtin_expect(program->unsupported, 0)) return {};

  // lower, compile: on this thread, so that what they find is raised at the call. A trace does so when it is sealed.
  Trace* trace = CurrentTrace();
  if (__builtin_expect(!trace, 1)) {
    if (__builtin_expect(!program->loaded.load(std::memory_order_acquire), 0)) TPU_RETURN_IF_ERROR(EnsureLoaded(program));
    if (__builtin_expect(AnyTraced(), 0)) TPU_RETURN_IF_ERROR(SealArguments(*record));
    if (__builtin_expect(!QueueHasRoom(), 0)) TPU_RETURN_IF_ERROR(WaitForRoom());
  }

  // run: reserve, draw random numbers, make the results.
  int device = record->device;
  if (!trace || !trace->capturing()) TPU_RETURN_IF_ERROR(Reserve(device, program->reserve_bytes));
  if (__builtin_expect(program->random, 0)) Draw(*program, hooks, trace, record);

  // bind: the results are pending values; targets swap them in, the rest goes to the caller.
  InlineVector<Value*, 4> outputs, published;
  InlineVector<Cell*, 4> cells;
  for (size_t i = 0; i < program->outputs.size(); ++i) {
    Value* v = NewValue(program->outputs[i], device, trace ? ValueState::kTraced : ValueState::kPending);
    outputs.push_back(v);
    v->IncRef();
    int target = program->output_target[i];
    result->outputs.push_back(target < 0 ? v : nullptr);
    if (target >= 0) {
      cells.push_back(record->targets[target]);
      published.push_back(v);
    }
  }
  if (__builtin_expect(trace != nullptr, 0)) {
    return AppendTo(trace, {program, record, outputs.data(), cells.data(), published.data(), static_cast<int>(cells.size())});
  }
  InlineVector<uint32_t, 64> words;
  if (program->host_words) PackHostWords(*program, record->raw.data(), words.Extend(static_cast<size_t>(program->host_words)));
  // A value that only this record still holds must look so to the worker: the record's references go to the entry.
  InlineVector<Value*, 16> args;
  TakeArguments(*program, record, &args);
  Enqueue({program, args.data(), outputs.data(), words.data(), device, cells.data(), published.data(),
           static_cast<int>(cells.size())});
  return {};
}

}  // namespace tpu::engine
