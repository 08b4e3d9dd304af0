// SPDX-License-Identifier: Apache-2.0
#include "engine/traps.h"

#include <sched.h>

#include <chrono>
#include <map>
#include <mutex>

#include "engine/queue.h"
#include "engine/runtime.h"

namespace tpu::engine {
namespace {

constexpr int kSlots = 64;  // a bit each in Value::traps

struct Kept {
  pjrt::Buffer trap;
  const Program* program = nullptr;
  bool resolved = false;
};

struct State {
  std::mutex mu;
  uint32_t epoch = 1;  // all traps of earlier epochs are resolved
  int used = 0;
  Kept kept[kSlots];
  // Failures by (epoch, slot), for values that still carry the bit.
  std::map<std::pair<uint32_t, int>, std::shared_ptr<Failure>> failed;
  std::atomic<int> open{0};
};
State& S() {
  static auto* state = new State;
  return *state;
}

// Requires: mu held. `failure` may be null: the check has passed.
void SettleLocked(int slot, std::shared_ptr<Failure> failure) {
  Kept& k = S().kept[slot];
  if (failure) S().failed[{S().epoch, slot}] = std::move(failure);
  k.resolved = true;
  k.trap.reset();
  S().open.fetch_sub(1, std::memory_order_relaxed);
}

std::shared_ptr<Failure> Fail(Status status) {
  auto failure = std::make_shared<Failure>(std::move(status));
  RememberFailure(failure);
  return failure;
}

// Resolves the slot when its trap is ready; else gives the event to wait for. Requires: mu held, not resolved.
bool TryResolveLocked(int slot, pjrt::Event* wait_for) {
  Kept& k = S().kept[slot];
  auto event = k.trap.ReadyEvent();
  if (!event.ok()) {
    // Nobody can tell whether the check has passed.
    SettleLocked(slot, Fail(std::move(event).status().WithContext(k.program->name)));
    return true;
  }
  if (!event->IsReady()) {
    *wait_for = std::move(*event);
    return false;
  }
  if (Status s = event->error(); !s.ok())  // the whole launch failed, and its own event says so
    SettleLocked(slot, std::make_shared<Failure>(std::move(s).WithContext(k.program->name)));
  else
    SettleLocked(slot, ReadTrap(k.trap, *k.program));
  return true;
}

// Waits for one slot without the lock, or until the epoch is over.
void WaitForSlot(uint32_t epoch, int slot) {
  for (;;) {
    pjrt::Event event;
    {
      std::lock_guard<std::mutex> lock(S().mu);
      if (S().epoch != epoch || S().kept[slot].resolved || TryResolveLocked(slot, &event)) return;
    }
    if (!event.WaitFor(std::chrono::milliseconds(50)).ok()) sched_yield();
  }
}

std::shared_ptr<Failure> FailureOf(uint32_t epoch, uint64_t bits) {
  std::lock_guard<std::mutex> lock(S().mu);
  if (S().failed.empty()) return nullptr;
  for (int slot = 0; slot < kSlots; ++slot)
    if (bits >> slot & 1)
      if (auto it = S().failed.find({epoch, slot}); it != S().failed.end()) return it->second;
  return nullptr;
}

}  // namespace

std::shared_ptr<Failure> ReadTrap(const pjrt::Buffer& trap, const Program& program) {
  std::vector<int32_t> codes(program.traps.size());
  const void* host = nullptr;
  if (Runtime::Started().profile().host_addressable) {
    auto pointer = trap.HostPointer();
    if (pointer.ok()) host = *pointer;
  }
  if (host) {
    __builtin_memcpy(codes.data(), host, codes.size() * sizeof(int32_t));
  } else {
    auto event = trap.CopyToHost(codes.data(), codes.size() * sizeof(int32_t));
    Status copied = event.ok() ? FinishHostCopy(&*event) : event.status();
    if (!copied.ok()) return Fail(std::move(copied).WithContext(program.name));
  }
  for (size_t i = 0; i < codes.size(); ++i) {
    if (!codes[i]) continue;
    std::string message = program.traps[i].message;
    int64_t bad = codes[i] > 0 ? codes[i] - 1ll : codes[i];
    if (size_t at = message.find("%v"); at != std::string::npos) message.replace(at, 2, std::to_string(bad));
    return Fail(Status(program.traps[i].kind, std::move(message)));
  }
  return nullptr;
}

void EnsureTrapRoom(int count) {
  if (S().used + count <= kSlots) return;
  for (int slot = 0; slot < S().used; ++slot) WaitForSlot(S().epoch, slot);
  std::lock_guard<std::mutex> lock(S().mu);
  ++S().epoch;
  S().used = 0;
}

void KeepTrap(pjrt::Buffer trap, const Program* program, Value* const* outputs, size_t num_outputs) {
  std::lock_guard<std::mutex> lock(S().mu);
  int slot = S().used++;
  TPU_CHECK(slot < kSlots);
  S().kept[slot].trap = std::move(trap);
  S().kept[slot].program = program;
  S().kept[slot].resolved = false;
  S().open.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < num_outputs; ++i) {
    if (!IsChecked(*program, i)) continue;
    outputs[i]->trap_epoch = S().epoch;
    outputs[i]->traps |= uint64_t{1} << slot;
  }
}

std::shared_ptr<Failure> InheritTraps(Value* const* args, size_t num_args, Value* const* outputs, size_t num_outputs) {
  uint64_t bits = 0;
  for (size_t i = 0; i < num_args; ++i) {
    Value* v = args[i];
    if (!v->traps) continue;
    if (auto f = FailureOf(v->trap_epoch, v->traps)) return f;
    if (v->trap_epoch == S().epoch) bits |= v->traps;
  }
  for (size_t i = 0; i < num_outputs; ++i) {
    outputs[i]->trap_epoch = S().epoch;
    outputs[i]->traps |= bits;
  }
  return nullptr;
}

void PollTraps() {
  if (!S().open.load(std::memory_order_relaxed)) return;
  std::lock_guard<std::mutex> lock(S().mu);
  pjrt::Event ignored;
  for (int slot = 0; slot < S().used; ++slot)
    if (!S().kept[slot].resolved) (void)TryResolveLocked(slot, &ignored);
}

std::shared_ptr<Failure> ResolveTraps(const Value* value) {
  if (!value->traps) return nullptr;
  for (int slot = 0; slot < kSlots; ++slot)
    if (value->traps >> slot & 1) WaitForSlot(value->trap_epoch, slot);
  return FailureOf(value->trap_epoch, value->traps);
}

void ResolveAllTraps() {
  if (!S().open.load(std::memory_order_acquire)) return;
  uint32_t epoch;
  int used;
  {
    std::lock_guard<std::mutex> lock(S().mu);
    epoch = S().epoch;
    used = S().used;
  }
  for (int slot = 0; slot < used; ++slot) WaitForSlot(epoch, slot);
}

}  // namespace tpu::engine
