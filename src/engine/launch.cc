// SPDX-License-Identifier: Apache-2.0
#include "engine/launch.h"

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/inline_vector.h"
#include "base/settings.h"
#include "engine/counters.h"
#include "engine/executables.h"
#include "engine/host_argument.h"
#include "engine/memory.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "engine/timing.h"
#include "engine/traps.h"
#include "pjrt/buffer.h"
#include "pjrt/event.h"

namespace tpu::engine {
namespace {

// ---- launches whose results are not ready yet; consumer only, but for `g_oldest`

struct Waiter {
  std::mutex mu;
  std::condition_variable cv;
  bool done = false;
};
constexpr int kParents = 4;
struct Unfinished {
  uint64_t position;
  pjrt::Event event;
  const Program* program;
  int64_t bytes, temp_bytes;
  int device;
  std::shared_ptr<Waiter> waiter;
  uint32_t parents[kParents];  // Value::made_at of arguments that were not ready either; 0: none
};
std::deque<Unfinished>& UnfinishedLaunches() {
  static auto* q = new std::deque<Unfinished>;
  return *q;
}
int64_t g_unfinished_bytes = 0;
constexpr uint64_t kNone = ~uint64_t{0};
std::atomic<uint64_t> g_oldest{kNone};  // position of the oldest unfinished launch

// ---- launches that failed after Execute had returned. A failure travels through the plugin to all that depends on it;
// here they find its one root.

constexpr size_t kFailedLaunches = 1024;
std::mutex g_failed_mu;
std::deque<std::pair<uint32_t, std::shared_ptr<Failure>>>& FailedLaunches() {
  static auto* list = new std::deque<std::pair<uint32_t, std::shared_ptr<Failure>>>;
  return *list;
}

void NoteFailed(const Unfinished& u, Status status) {
  std::shared_ptr<Failure> root;
  for (uint32_t parent : u.parents)
    if (parent && !root) root = FailureOfLaunch(parent);
  if (!root) {
    root = std::make_shared<Failure>(std::move(status).WithContext(u.program->name));
    RememberFailure(root);
  }
  std::lock_guard<std::mutex> lock(g_failed_mu);
  auto& list = FailedLaunches();
  list.emplace_back(MadeAt(u.position), std::move(root));
  if (list.size() > kFailedLaunches) list.pop_front();
}

// Requires: the oldest launch's event is ready.
void FinishOldest() {
  auto& q = UnfinishedLaunches();
  Unfinished& u = q.front();
  if (Status s = u.event.error(); !s.ok()) NoteFailed(u, std::move(s));
  g_unfinished_bytes -= u.bytes;
  if (u.temp_bytes) ReleaseReserved(u.device, u.temp_bytes);
  NoteRetired(u.position);
  q.pop_front();
  g_oldest.store(q.empty() ? kNone : q.front().position, std::memory_order_release);
}

void FinishReady() {
  auto& q = UnfinishedLaunches();
  while (!q.empty() && q.front().event.IsReady()) FinishOldest();
}

// Arguments that the plugin may still be computing. Null-terminated unless full.
bool UnfinishedParents(const LaunchCall& call, uint32_t (&parents)[kParents]) {
  int n = 0;
  std::fill(parents, parents + kParents, 0);
  size_t num_args = call.program->arguments.size() * static_cast<size_t>(call.num_devices);
  for (size_t i = 0; i < num_args && n < kParents; ++i)
    if (!call.args[i]->known_ready) {
      uint32_t made_at = call.args[i]->made_at.load(std::memory_order_relaxed);
      if (made_at) parents[n++] = made_at;
    }
  return n > 0;
}

void Track(const LaunchCall& call, pjrt::Event event, int64_t temp_bytes, const uint32_t (&parents)[kParents]) {
  auto& q = UnfinishedLaunches();
  int64_t bytes = call.program->reserve_bytes;
  q.push_back({call.position, std::move(event), call.program, bytes, temp_bytes, call.devices[0], nullptr, {}});
  std::copy(parents, parents + kParents, q.back().parents);
  g_unfinished_bytes += bytes;
  if (q.size() == 1) g_oldest.store(call.position, std::memory_order_release);
}

// Zeros for an undefined value, for one call.
Result<pjrt::Buffer> Zeros(const TensorType& type, int device) {
  void* zeros = std::calloc(1, std::max<size_t>(type.bytes(), 1));
  if (!zeros) return Status(ErrorKind::kOutOfMemory, "no host memory for zeros");
  auto buffer =
      Runtime::Started().client().BufferFromHost(zeros, type, device, pjrt::HostBufferSemantics::kImmutableOnlyDuringCall);
  std::free(zeros);
  return buffer;
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
        case ValueState::kTraced:
        case ValueState::kPending:
          CheckFailed(__FILE__, __LINE__, "a consumer came before its producer");
        case ValueState::kReady:
          buffers.push_back(v->buffer);
          break;
      }
    }
    if (p.host_words) {
      auto h = HostArgumentBuffer(call.host_words, p.host_words, call.devices[d], call.position);
      if (!h.ok())
        *error = h.status();
      else
        buffers.push_back(*h);
    }
    return nullptr;
  }
};

void FinishLaunch(const LaunchCall& call, PJRT_Buffer* const* outs) {
  Program& p = *call.program;
  const PJRT_Api* api = Runtime::Started().client().api();
  size_t n = p.outputs.size(), produced = n + !p.traps.empty();
  if (!p.traps.empty()) EnsureTrapRoom(call.num_devices);
  bool inherits = false;
  // A synchronous engine too computes later what has to wait for an argument, such as another device's copy.
  bool synchronous = Runtime::Started().profile().synchronous;
  for (size_t i = 0; i < p.arguments.size() * call.num_devices; ++i) {
    inherits |= call.args[i]->traps != 0;
    synchronous &= call.args[i]->known_ready;
  }
  std::shared_ptr<Failure> failed, unchecked;  // of all outputs; of those that a check was made for
  if (__builtin_expect(inherits, 0))
    failed = InheritTraps(call.args, p.arguments.size() * call.num_devices, call.outputs, n * call.num_devices);
  bool all_ready = true;
  int64_t temp_bytes = p.temp_bytes;
  for (int d = 0; d < call.num_devices; ++d) {
    PJRT_Buffer* const* device_outs = outs + d * produced;
    for (size_t i = 0; i < n; ++i) {
      Value* v = call.outputs[d * n + i];
      v->buffer = device_outs[i];
      v->maker = &p;
    }
    if (!produced) continue;
    pjrt::Buffer last(api, device_outs[produced - 1]);
    // However small a program is: which ones run inside Execute is the plugin's secret, unless all do.
    Result<pjrt::Event> event = synchronous ? Result<pjrt::Event>(pjrt::Event()) : last.ReadyEvent();
    if (p.traps.empty()) last.release();
    bool ready = event.ok() && (synchronous || event->IsReady());
    Status error = !event.ok() ? event.status() : ready && !synchronous ? event->error() : Status();
    if (__builtin_expect(!ready || !error.ok(), 0)) {
      uint32_t parents[kParents];
      // Of a failure that an argument may have brought along, retiring in order finds the root.
      if (UnfinishedParents(call, parents) ? event.ok() : error.ok()) {
        ready = false;
        Track(call, std::move(*event), std::exchange(temp_bytes, 0), parents);
      } else if (!failed) {
        failed = RootFailure(p, std::move(error));
      }
    }
    all_ready &= ready;
    if (p.traps.empty() || failed) continue;
    if (!ready)
      KeepTrap(std::move(last), &p, call.outputs + d * n, n);
    else if (auto f = ReadTrap(last, p))
      unchecked = std::move(f);
  }
  if (temp_bytes) ReleaseReserved(call.devices[0], temp_bytes);
  if (all_ready) NoteRetired(call.position);
  for (size_t i = 0; i < n * call.num_devices; ++i) {
    Value* v = call.outputs[i];
    v->known_ready = all_ready;
    if (all_ready) v->made_at.store(0, std::memory_order_relaxed);
    if (failed || (unchecked && IsChecked(p, i % n)))
      Poison(v, failed ? failed : unchecked);
    else
      v->state.store(ValueState::kReady, std::memory_order_release);
  }
}

}  // namespace

void Poison(Value* v, const std::shared_ptr<Failure>& failure) {
  v->failure = failure;
  v->state.store(ValueState::kPoisoned, std::memory_order_release);
}

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
                                   runtime.client().LaunchDevice(call.devices[0]), outs.data());
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
  FinishLaunch(call, outs.data());
  if (!UnfinishedLaunches().empty()) Retire();
}

void Retire() {
  FinishReady();
  PollTraps();
}

bool RoomToLaunch() {
  auto& q = UnfinishedLaunches();
  int64_t limit = GetSettings().max_in_flight_bytes.load(std::memory_order_relaxed);
  if (__builtin_expect(g_unfinished_bytes <= limit || q.empty(), 1)) return true;
  // A wait that cannot begin is an idle loop: the oldest launch finishes some time all the same.
  if (auto outcome = q.front().event.WaitFor(std::chrono::milliseconds(50)); !outcome.ok()) sched_yield();
  FinishReady();
  return g_unfinished_bytes <= limit || q.empty();
}

std::shared_ptr<Failure> FailureOfLaunch(uint32_t made_at) {
  std::lock_guard<std::mutex> lock(g_failed_mu);
  const auto& list = FailedLaunches();
  for (auto it = list.rbegin(); it != list.rend(); ++it)
    if (it->first == made_at) return it->second;
  return nullptr;
}

bool LaunchesDone(uint64_t position) { return g_oldest.load(std::memory_order_acquire) >= position; }

bool WaitOldestLaunch() {
  std::shared_ptr<Waiter> waiter;
  if (!TryLockQueue()) return false;
  FinishReady();
  auto& q = UnfinishedLaunches();
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

}  // namespace tpu::engine
