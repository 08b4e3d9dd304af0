// SPDX-License-Identifier: Apache-2.0
#include "engine/launch.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "base/inline_vector.h"
#include "base/settings.h"
#include "engine/counters.h"
#include "engine/executables.h"
#include "engine/memory.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "engine/timing.h"
#include "engine/traps.h"
#include "pjrt/buffer.h"
#include "pjrt/event.h"

namespace tpu::engine {
namespace {

// Programs this small with ready arguments run inside Execute on every CPU engine: their results need no look.
constexpr size_t kInlineBytes = 1024;

// ---- launches whose results are not ready yet; consumer only, but for `g_oldest`

struct Waiter {
  std::mutex mu;
  std::condition_variable cv;
  bool done = false;
};
struct Unfinished {
  uint64_t position;
  pjrt::Event event;
  const Program* program;
  int64_t bytes, temp_bytes;
  int device;
  std::shared_ptr<Waiter> waiter;
};
std::deque<Unfinished>& UnfinishedLaunches() {
  static auto* q = new std::deque<Unfinished>;
  return *q;
}
int64_t g_unfinished_bytes = 0;
constexpr uint64_t kNone = ~uint64_t{0};
std::atomic<uint64_t> g_oldest{kNone};  // position of the oldest unfinished launch

void FinishOldest() {
  auto& q = UnfinishedLaunches();
  Unfinished& u = q.front();
  if (Status s = u.event.error(); !s.ok())
    RememberFailure(std::make_shared<Failure>(std::move(s).WithContext(u.program->name)));
  g_unfinished_bytes -= u.bytes;
  if (u.temp_bytes) ReleaseReserved(u.device, u.temp_bytes);
  NoteRetired(u.position);
  q.pop_front();
  g_oldest.store(q.empty() ? kNone : q.front().position, std::memory_order_release);
}

void WaitOldestLocked() {
  for (;;) {
    auto outcome = UnfinishedLaunches().front().event.WaitFor(std::chrono::milliseconds(50));
    if (!outcome.ok() || *outcome == pjrt::WaitOutcome::kReady) break;
  }
  FinishOldest();
}

void Track(const LaunchCall& call, pjrt::Event event) {
  auto& q = UnfinishedLaunches();
  int64_t bytes = call.program->reserve_bytes;
  q.push_back({call.position, std::move(event), call.program, bytes, call.program->temp_bytes, call.devices[0], nullptr});
  g_unfinished_bytes += bytes;
  if (q.size() == 1) g_oldest.store(call.position, std::memory_order_release);
}

// ---- the packed host argument, kept by content

struct HostArgument {
  int words = 0;
  int8_t device = 0;
  std::vector<uint32_t> content;
  pjrt::Buffer buffer;
};
constexpr size_t kHostArguments = 256;
HostArgument* HostArguments() {
  static auto* table = new HostArgument[kHostArguments];
  return table;
}

Result<PJRT_Buffer*> HostArgumentBuffer(const uint32_t* words, int n, int device) {
  uint64_t h = static_cast<uint64_t>(n) * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(device);
  for (int i = 0; i < n; ++i) {
    h = (h ^ words[i]) * 0xD6E8FEB86659FD93ull;
    h ^= h >> 32;
  }
  HostArgument& a = HostArguments()[h % kHostArguments];
  if (a.words == n && a.device == device && a.buffer && !std::memcmp(a.content.data(), words, sizeof(uint32_t) * n)) {
    CountRelaxed(g_counters.host_argument_hits);
    return a.buffer.get();
  }
  CountRelaxed(g_counters.host_argument_uploads);
  // Copied, never zero-copy: the kept content must not change under a program in flight.
  auto buffer = Runtime::Started().client().BufferFromHost(words, TensorType(DType::kU32, {n}), device,
                                                           pjrt::HostBufferSemantics::kImmutableOnlyDuringCall);
  if (!buffer.ok()) return buffer.status();
  a.words = n;
  a.device = static_cast<int8_t>(device);
  a.content.assign(words, words + n);
  a.buffer = std::move(*buffer);
  return a.buffer.get();
}

// Zeros for an undefined value, for one call.
Result<pjrt::Buffer> Zeros(const TensorType& type, int device) {
  void* zeros = std::calloc(1, std::max<size_t>(type.bytes(), 1));
  if (!zeros) return Status(ErrorKind::kOutOfMemory, "no host memory for zeros");
  auto buffer = Runtime::Started().client().BufferFromHost(zeros, type, device, pjrt::HostBufferSemantics::kImmutableOnlyDuringCall);
  std::free(zeros);
  return buffer;
}

void Poison(Value* v, const std::shared_ptr<Failure>& failure) {
  v->failure = failure;
  v->state.store(ValueState::kPoisoned, std::memory_order_release);
}

void PoisonOutputs(const LaunchCall& call, const std::shared_ptr<Failure>& failure) {
  size_t n = call.program->outputs.size() * call.num_devices;
  for (size_t i = 0; i < n; ++i) Poison(call.outputs[i], failure);
}

std::shared_ptr<Failure> RootFailure(const Program& program, Status status) {
  auto failure = std::make_shared<Failure>(std::move(status).WithContext(program.name));
  RememberFailure(failure);
  return failure;
}

// Which aliased arguments keep their buffer in this call.
void Veto(const LaunchCall& call, PJRT_Buffer* const* buffers, size_t num_buffers, InlineVector<int64_t, 4>* vetoed) {
  const pjrt::EngineProfile& profile = Runtime::Started().profile();
  for (const lower::Lowered::Alias& alias : call.program->aliases) {
    Value* v = call.args[alias.argument];
    bool veto = v->refs.load(std::memory_order_acquire) != 1 || !profile.DonationHelps(v->bytes());
    for (size_t i = 0; i < num_buffers && !veto; ++i)
      veto = static_cast<int>(i) != alias.argument && buffers[i] == buffers[alias.argument];
    if (veto) vetoed->push_back(alias.argument);
    CountRelaxed(veto ? g_counters.vetoed : g_counters.donated);
  }
}

// One device's arguments as buffers.
struct Arguments {
  InlineVector<PJRT_Buffer*, 16> buffers;
  std::vector<pjrt::Buffer> zeros;
  size_t bytes = 0;
  bool all_ready = true;

  std::shared_ptr<Failure> Gather(const LaunchCall& call, int d, Status* error) {
    const Program& p = *call.program;
    size_t n = p.arguments.size();
    for (size_t i = 0; i < n; ++i) {
      Value* v = call.args[d * n + i];
      switch (v->state.load(std::memory_order_acquire)) {
        case ValueState::kPoisoned:
          return v->failure;
        case ValueState::kUndefined: {
          auto z = Zeros(v->type, v->device);
          if (!z.ok()) {
            *error = z.status();
            return nullptr;
          }
          zeros.push_back(std::move(*z));
          buffers.push_back(zeros.back().get());
          break;
        }
        case ValueState::kPending:
          CheckFailed(__FILE__, __LINE__, "a consumer came before its producer");
        case ValueState::kReady:
          buffers.push_back(v->buffer);
          all_ready &= v->known_ready;
          break;
      }
      bytes += v->bytes();
    }
    if (p.host_words) {
      auto h = HostArgumentBuffer(call.host_words, p.host_words, call.devices[d]);
      if (!h.ok())
        *error = h.status();
      else
        buffers.push_back(*h);
    }
    return nullptr;
  }
};

void FinishLaunch(const LaunchCall& call, PJRT_Buffer* const* outs, size_t argument_bytes, bool all_ready) {
  Program& p = *call.program;
  const PJRT_Api* api = Runtime::Started().client().api();
  size_t n = p.outputs.size(), produced = n + !p.traps.empty();
  if (!p.traps.empty()) EnsureTrapRoom();
  bool inherits = false;
  for (size_t i = 0; i < p.arguments.size() * call.num_devices; ++i) inherits |= call.args[i]->traps != 0;
  std::shared_ptr<Failure> failed;
  if (__builtin_expect(inherits, 0))
    failed = InheritTraps(call.args, p.arguments.size() * call.num_devices, call.outputs, n * call.num_devices);
  bool ready = all_ready && argument_bytes + static_cast<size_t>(p.reserve_bytes) <= kInlineBytes;
  for (int d = 0; d < call.num_devices; ++d) {
    PJRT_Buffer* const* device_outs = outs + d * produced;
    for (size_t i = 0; i < n; ++i) {
      Value* v = call.outputs[d * n + i];
      v->buffer = device_outs[i];
      v->maker = &p;
    }
    if (!ready && produced) {
      pjrt::Buffer last(api, device_outs[produced - 1]);
      auto event = last.ReadyEvent();
      last.release();
      ready = event.ok() && event->IsReady() && event->error().ok();
      if (event.ok() && !ready) Track(call, std::move(*event));
    }
    if (!p.traps.empty()) {
      pjrt::Buffer trap(api, device_outs[n]);
      Status error;
      if (ready || trap.IsReady(&error)) {
        if (auto f = ReadTrap(trap, p)) failed = std::move(f);
      } else {
        KeepTrap(std::move(trap), &p, call.outputs + d * n, n);
      }
    }
  }
  if (ready) {
    if (p.temp_bytes) ReleaseReserved(call.devices[0], p.temp_bytes);
    NoteRetired(call.position);
  }
  for (size_t i = 0; i < n * call.num_devices; ++i) {
    Value* v = call.outputs[i];
    v->known_ready = ready;
    if (failed)
      Poison(v, failed);
    else
      v->state.store(ValueState::kReady, std::memory_order_release);
  }
}

}  // namespace

void Launch(const LaunchCall& call) noexcept {
  Program& p = *call.program;
  const Runtime& runtime = Runtime::Started();
  Status error;
  InlineVector<PJRT_Buffer*, 8> outs;
  size_t produced = p.outputs.size() + !p.traps.empty();
  outs.Extend(produced * call.num_devices);
  Arguments first;
  std::vector<Arguments> others(call.num_devices - 1);
  std::shared_ptr<Failure> inherited = first.Gather(call, 0, &error);
  for (int d = 1; d < call.num_devices && !inherited && error.ok(); ++d) inherited = others[d - 1].Gather(call, d, &error);
  if (!inherited && error.ok() && !p.executable) error = Reload(&p);
  if (!inherited && error.ok()) {
    InlineVector<int64_t, 4> vetoed;
    if (!p.aliases.empty()) Veto(call, first.buffers.data(), first.buffers.size(), &vetoed);
    CountRelaxed(g_counters.launches);
    if (__builtin_expect(call.num_devices == 1, 1)) {
      error = p.executable.Execute(first.buffers.data(), first.buffers.size(), vetoed.data(), vetoed.size(),
                                   runtime.client().devices()[call.devices[0]].device, outs.data());
    } else {
      std::vector<PJRT_Buffer* const*> lists{first.buffers.data()};
      std::vector<PJRT_Buffer**> out_lists;
      for (Arguments& a : others) lists.push_back(a.buffers.data());
      for (int d = 0; d < call.num_devices; ++d) out_lists.push_back(outs.data() + d * produced);
      pjrt::ExecuteCall execute;
      execute.argument_lists = lists.data();
      execute.num_devices = static_cast<size_t>(call.num_devices);
      execute.num_args = first.buffers.size();
      execute.non_donatable = vetoed.data();
      execute.num_non_donatable = vetoed.size();
      execute.output_lists = out_lists.data();
      error = p.executable.Execute(execute);
    }
  }
  if (__builtin_expect(inherited || !error.ok(), 0)) {
    if (p.temp_bytes) ReleaseReserved(call.devices[0], p.temp_bytes);
    PoisonOutputs(call, inherited ? inherited : RootFailure(p, std::move(error)));
    NoteRetired(call.position);
    return;
  }
  FinishLaunch(call, outs.data(), first.bytes, first.all_ready);
  if (!UnfinishedLaunches().empty()) Retire();
}

void Retire() {
  auto& q = UnfinishedLaunches();
  while (!q.empty() && q.front().event.IsReady()) FinishOldest();
  PollTraps();
  int64_t limit = GetSettings().max_in_flight_bytes.load(std::memory_order_relaxed);
  while (!q.empty() && g_unfinished_bytes > limit) WaitOldestLocked();
}

bool LaunchesDone(uint64_t position) { return g_oldest.load(std::memory_order_acquire) >= position; }

bool WaitOldestLaunch() {
  std::shared_ptr<Waiter> waiter;
  if (!TryLockQueue()) return true;
  auto& q = UnfinishedLaunches();
  while (!q.empty() && q.front().event.IsReady()) FinishOldest();
  if (!q.empty()) {
    Unfinished& u = q.front();
    if (!u.waiter) {
      u.waiter = std::make_shared<Waiter>();
      (void)u.event.OnReady([w = u.waiter](Status) {
        std::lock_guard<std::mutex> lock(w->mu);
        w->done = true;
        w->cv.notify_all();
      });
    }
    waiter = u.waiter;
  }
  UnlockQueue();
  if (!waiter) return false;
  std::unique_lock<std::mutex> lock(waiter->mu);
  waiter->cv.wait_for(lock, std::chrono::milliseconds(50), [&] { return waiter->done; });
  return true;
}

void DropHostArguments() {
  for (size_t i = 0; i < kHostArguments; ++i) HostArguments()[i] = HostArgument();
}

}  // namespace tpu::engine
