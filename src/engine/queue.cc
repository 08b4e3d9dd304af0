// SPDX-License-Identifier: Apache-2.0
#include "engine/queue.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/cpu.h"
#include "base/settings.h"
#include "engine/counters.h"
#include "engine/executables.h"
#include "engine/host_argument.h"
#include "engine/host_heap.h"
#include "engine/launch.h"
#include "engine/memory.h"
#include "engine/runtime.h"

namespace tpu::engine {
namespace {

constexpr uint64_t kRing = 2048;   // slots
constexpr int64_t kMaxInFlight = 1024;  // the setting's upper bound: the rest is room for threads that hold tickets
// On one CPU nobody runs beside the caller: it runs the entries itself in batches of this size.
constexpr uint64_t kInlineBatch = 32;

constexpr uint64_t kNobody = ~uint64_t{0};
constexpr size_t kInlineValues = 12, kInlineHostWords = 16;

// One slot. Written by the thread that holds the ticket, read by the consumer after `sequence` says so. A binary operator
// lies in one cache line: lines travel from the producer's core to the worker's.
struct alignas(64) Entry {
  std::atomic<uint64_t> sequence{0};  // ticket + 1 once committed
  Program* program;
  void* heap;  // null, or a block that holds values and host words in place of the slot
  int64_t device;
  Value* inline_values[kInlineValues];  // arguments, then outputs
  uint32_t inline_host_words[kInlineHostWords];

  size_t num_values() const { return program->arguments.size() + program->outputs.size(); }
  Value** values() { return __builtin_expect(heap == nullptr, 1) ? inline_values : static_cast<Value**>(heap); }
  uint32_t* host_words() {
    return __builtin_expect(heap == nullptr, 1) ? inline_host_words
                                                : reinterpret_cast<uint32_t*>(static_cast<Value**>(heap) + num_values());
  }
};
static_assert(sizeof(Entry) == 192);

struct State {
  Entry* ring = new Entry[kRing];
  alignas(64) std::atomic<uint64_t> tail{0};     // next ticket
  alignas(64) std::atomic<uint64_t> head{0};     // next to run; written by the lock holder only
  alignas(64) std::atomic<int> busy{0};          // the try-lock: exactly one consumer
  alignas(64) std::atomic<int> asleep{0};        // futex word of the worker
  // Threads that sleep until `head` gets to a position: the lowest such position, and the futex word that wakes them.
  alignas(64) std::atomic<uint64_t> wanted{kNobody};
  std::atomic<int> wakes{0};
  std::atomic<bool> stopped{false};
  bool one_cpu = false;
  std::mutex failures_mu;
  std::deque<std::shared_ptr<Failure>> failures;
  std::atomic<int> num_failures{0};
};
// Never destroyed: the worker outlives static destructors.
State* const g_state = new State;
State& S() { return *g_state; }

void FutexWait(std::atomic<int>* word, int expected, const timespec* timeout = nullptr) {
  syscall(SYS_futex, reinterpret_cast<int*>(word), FUTEX_WAIT_PRIVATE, expected, timeout, nullptr, 0);
}
void FutexWake(std::atomic<int>* word, int threads = 1) {
  syscall(SYS_futex, reinterpret_cast<int*>(word), FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

[[gnu::noinline]] void WakeWaiting() {
  if (S().wanted.exchange(kNobody) == kNobody) return;
  S().wakes.fetch_add(1);
  FutexWake(&S().wakes, INT_MAX);
}

// Sequentially consistent: the worker's last look before it sleeps must not come before its word that it does.
bool HasWork() {
  uint64_t h = S().head.load(std::memory_order_seq_cst);
  return S().ring[h & (kRing - 1)].sequence.load(std::memory_order_seq_cst) == h + 1;
}

void RunEntry(Entry& e, uint64_t position) {
  Program* program = e.program;
  program->last_used = position;
  if (__builtin_expect(EvictionWanted(), 0)) Evict();
  Value** values = e.values();
  auto device = static_cast<int8_t>(e.device);
  Launch({program, values, values + program->arguments.size(), e.host_words(), &device, 1, position});
  for (size_t i = 0, n = e.num_values(); i < n; ++i) values[i]->DecRef();
  std::free(e.heap);
}

// Requires: the lock. `until` as Drain's; at `deadline` (0: at the shutdown) the rest is left to others.
uint64_t RunCommitted(Value* until, int64_t deadline) {
  uint64_t h = S().head.load(std::memory_order_relaxed), n = 0;
  auto leave = [&] { return deadline ? NowNanos() >= deadline : S().stopped.load(std::memory_order_relaxed); };
  for (;;) {
    Entry& e = S().ring[h & (kRing - 1)];
    if (e.sequence.load(std::memory_order_acquire) != h + 1) break;
    if (__builtin_expect(!RoomToLaunch(), 0)) {
      if (leave()) break;
      continue;
    }
    RunEntry(e, h);
    S().head.store(++h, std::memory_order_release);
    if (__builtin_expect(h >= S().wanted.load(std::memory_order_relaxed), 0)) WakeWaiting();
    ++n;
    if (until && until->state.load(std::memory_order_relaxed) != ValueState::kPending) break;
    if (leave()) break;
  }
  return n;
}

void Work() {
  pthread_setname_np(pthread_self(), "tpu-queue");
  int64_t idle_since = NowNanos();
  while (!S().stopped.load(std::memory_order_relaxed)) {
    if (HasWork()) {
      if (TryLockQueue()) {
        RunCommitted(nullptr, 0);
        UnlockQueue();
      } else {
        AwaitConsumer(kNobody - 1);
      }
      idle_since = NowNanos();
      continue;
    }
    int64_t spin = S().one_cpu ? 0 : GetSettings().worker_spin_us.load(std::memory_order_relaxed) * 1000;
    if (spin) {
      for (int i = 0; i < 64 && !HasWork(); ++i) CpuPause();
      if (NowNanos() - idle_since < spin) continue;
    }
    S().asleep.store(1, std::memory_order_seq_cst);
    // An entry committed before `asleep` was seen has nobody to wake us.
    if (!S().one_cpu && HasWork()) {
      S().asleep.store(0, std::memory_order_relaxed);
      continue;
    }
    CountRelaxed(g_counters.worker_sleeps);
    while (S().asleep.load(std::memory_order_seq_cst) == 1 && !S().stopped.load(std::memory_order_relaxed))
      FutexWait(&S().asleep, 1);
    idle_since = NowNanos();
  }
}

void WakeWorker() {
  if (S().asleep.load(std::memory_order_seq_cst) && S().asleep.exchange(0)) {
    Count(g_counters.worker_wakes);
    FutexWake(&S().asleep);
  }
}

// The worker writes `head` at every entry: look at it only when the last look no longer proves that there is room.
thread_local uint64_t t_seen_head = 0;

void Fill(Entry& e, const Submission& s, uint64_t ticket, void* heap) {
  Program* program = s.program;
  e.program = program;
  e.heap = heap;
  e.device = s.device;
  size_t num_args = program->arguments.size(), num_outputs = program->outputs.size();
  Value** values = e.values();
  for (size_t i = 0; i < num_args; ++i) values[i] = s.args[i];
  for (size_t i = 0; i < num_outputs; ++i) {
    values[num_args + i] = s.outputs[i];
    s.outputs[i]->made_at.store(MadeAt(ticket), std::memory_order_relaxed);
    // Not before the ticket is taken: who reads this may queue what depends on it.
    s.outputs[i]->state.store(ValueState::kPending, std::memory_order_release);
  }
  if (auto words = static_cast<size_t>(program->host_words))
    std::memcpy(e.host_words(), s.host_words, words * sizeof(uint32_t));
}

// A block for an entry that does not fit its slot. Allocated before the ticket is taken.
void* PrepareHeap(const Submission& s) {
  size_t num_values = s.program->arguments.size() + s.program->outputs.size();
  auto words = static_cast<size_t>(s.program->host_words);
  if (num_values <= kInlineValues && words <= kInlineHostWords) return nullptr;
  void* block = std::malloc(num_values * sizeof(Value*) + words * sizeof(uint32_t));
  TPU_CHECK(block);
  return block;
}

// A caller that runs entries looks up this often: it may have been interrupted.
constexpr int64_t kSlice = 50'000'000;

bool DrainUntil(Value* until, int64_t deadline) {
  if (!TryLockQueue()) return false;
  uint64_t n = RunCommitted(until, deadline);
  UnlockQueue();
  g_counters.launches_by_caller.fetch_add(n, std::memory_order_relaxed);
  return true;
}

}  // namespace

bool TryLockQueue() { return !S().busy.load(std::memory_order_relaxed) && !S().busy.exchange(1, std::memory_order_acquire); }
void UnlockQueue() {
  S().busy.store(0, std::memory_order_seq_cst);
  // Whoever waits for what has not been run may have to run it now.
  if (S().wanted.load(std::memory_order_seq_cst) != kNobody) WakeWaiting();
}

void AwaitConsumer(uint64_t position) {
  int seen = S().wakes.load();
  uint64_t lowest = S().wanted.load();
  while (position < lowest && !S().wanted.compare_exchange_weak(lowest, position)) {
  }
  if (!S().busy.load() || S().head.load() >= position) return;
  timespec timeout{0, 50'000'000};
  FutexWait(&S().wakes, seen, &timeout);
}

namespace {
uint64_t Capacity() {
  static const auto& limit = GetSettings().max_in_flight;
  return static_cast<uint64_t>(std::clamp<int64_t>(limit.load(std::memory_order_relaxed), 1, kMaxInFlight));
}
}  // namespace

uint64_t RoomyPosition() {
  uint64_t tail = S().tail.load(std::memory_order_relaxed), full = Capacity() - Capacity() / 4;
  return tail > full ? tail - full : 0;
}

bool QueueHasRoom() {
  uint64_t room = Capacity();
  if (S().tail.load(std::memory_order_relaxed) - t_seen_head < room) return true;
  t_seen_head = S().head.load(std::memory_order_acquire);
  return S().tail.load(std::memory_order_relaxed) - t_seen_head < room;
}

void Enqueue(const Submission& s) {
  if (__builtin_expect(s.program->temp_bytes != 0, 0)) AddReserved(s.device, s.program->temp_bytes);
  void* heap = PrepareHeap(s);
  uint64_t ticket = S().tail.fetch_add(1, std::memory_order_seq_cst);
  Entry& e = S().ring[ticket & (kRing - 1)];
  // More threads than kRing - kMaxInFlight took tickets at once: wait for the slot's last entry to have run.
  for (int i = 0; ticket - t_seen_head >= kRing; ++i) {
    t_seen_head = S().head.load(std::memory_order_acquire);
    if (ticket - t_seen_head >= kRing) Backoff(i);
  }
  Fill(e, s, ticket, heap);
  for (int i = 0; i < s.num_cells; ++i) s.cells[i]->Swap(s.values[i]);
  e.sequence.store(ticket + 1, std::memory_order_seq_cst);
  if (S().one_cpu) {
    if (ticket + 1 - S().head.load(std::memory_order_relaxed) >= kInlineBatch) Drain(nullptr);
    return;
  }
  WakeWorker();
}

void StartQueue() {
  S().one_cpu = AvailableCpus() == 1;
  std::thread(Work).detach();
}

void StopQueue(int timeout_ms) {
  S().stopped.store(true, std::memory_order_release);
  int64_t deadline = NowNanos() + timeout_ms * 1'000'000ll;
  uint64_t position = QueuePosition();
  for (int i = 0; S().head.load(std::memory_order_acquire) < position && NowNanos() < deadline; ++i)
    if (!DrainUntil(nullptr, deadline)) Backoff(i);
  while (NowNanos() < deadline && !QueueReached(position))
    if (!WaitOldestLaunch()) Backoff(200);
  S().asleep.store(0);
  FutexWake(&S().asleep);
  WakeWaiting();
}

bool QueueStopped() { return S().stopped.load(std::memory_order_relaxed); }

bool Drain(Value* until) { return DrainUntil(until, NowNanos() + kSlice); }

uint64_t QueuePosition() { return S().tail.load(std::memory_order_acquire); }

bool QueueReached(uint64_t position) {
  if (S().head.load(std::memory_order_acquire) < position) {
    // Somebody has to run them: on one CPU, or while the worker is being woken, that is the one who asks.
    Drain(nullptr);
    if (S().head.load(std::memory_order_acquire) < position) return false;
  }
  if (LaunchesDone(position)) return true;
  if (TryLockQueue()) {
    Retire();
    UnlockQueue();
  }
  return LaunchesDone(position);
}

void DropCaches() {
  for (int i = 0; !TryLockQueue(); ++i) Backoff(i);
  DropHostArguments();
  UnlockQueue();
  TrimHeap();
}

void RememberFailure(std::shared_ptr<Failure> failure) {
  Count(g_counters.failures);
  std::lock_guard<std::mutex> lock(S().failures_mu);
  S().failures.push_back(std::move(failure));
  S().num_failures.fetch_add(1, std::memory_order_release);
  // A program that never synchronizes must not collect failures without end.
  if (S().failures.size() > 1024) {
    S().failures.pop_front();
    S().num_failures.fetch_sub(1, std::memory_order_release);
  }
}

void MarkReported(const std::string& message) {
  std::lock_guard<std::mutex> lock(S().failures_mu);
  for (auto& f : S().failures)
    if (f->status.message().ends_with(message)) f->reported = true;
}

std::shared_ptr<Failure> TakeFailure() {
  if (!S().num_failures.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard<std::mutex> lock(S().failures_mu);
  while (!S().failures.empty()) {
    auto f = std::move(S().failures.front());
    S().failures.pop_front();
    S().num_failures.fetch_sub(1, std::memory_order_release);
    if (!f->reported.exchange(true)) return f;
  }
  return nullptr;
}

}  // namespace tpu::engine
