// SPDX-License-Identifier: Apache-2.0
#include "engine/trace.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/settings.h"
#include "engine/capture.h"
#include "engine/counters.h"
#include "engine/executables.h"
#include "engine/host_words.h"
#include "engine/launch.h"
#include "engine/queue.h"
#include "engine/region.h"
#include "engine/runtime.h"

namespace tpu::engine {
namespace {

// A scoped trace of more than this is several programs: compile time grows with the program.
constexpr size_t kScopedRecords = 64;
// From this many records on the backward pass (its own thread) is a program of its own: one of both is slower on CPUs.
constexpr size_t kRecordsOfAPass = 64;
// A word of a region's key that is neither a program's address nor a value's number.
constexpr uint64_t kRepeatsRaws = 1ull << 63;

std::mutex g_fused_mu;
Trace& FusedTrace() {
  static auto* trace = new Trace(Trace::kFused);
  return *trace;
}
thread_local Trace* t_scoped = nullptr;
thread_local uint64_t t_loop = 0;  // the ScopedTrace that is open on this thread, by number
std::atomic<int> g_open{0};  // traces that hold records

uint64_t ThreadId() {
  static std::atomic<uint64_t> next{1};
  static thread_local uint64_t id = next.fetch_add(1);
  return id;
}

bool FusedMode() {
  static const auto& mode = GetSettings().eager_mode;
  return (*mode.load(std::memory_order_acquire))[0] == 'f';
}

// Sealing holds the trace's lock, and perhaps Python's: it waits for nothing but the queue, which needs neither.
void MakeRoom() {
  while (!QueueHasRoom() && !QueueStopped())
    if (!Drain(nullptr)) AwaitConsumer(RoomyPosition());
}

// The period of the sequence's end: the least p with the last p elements equal to the p before them; 0: none.
size_t PeriodOf(const std::vector<const Program*>& parts) {
  std::vector<const Program*> reversed(parts.rbegin(), parts.rend());
  std::vector<size_t> border(reversed.size(), 0);  // the prefix function: a border of 2p elements means period p
  for (size_t i = 1, k = 0; i < reversed.size(); ++i) {
    while (k && reversed[i] != reversed[k]) k = border[k - 1];
    k += reversed[i] == reversed[k];
    border[i] = k;
  }
  size_t n = reversed.size();
  if (!n) return 0;
  size_t period = n - border[n - 1];
  return period * 2 <= n ? period : 0;
}

}  // namespace

Trace::Trace(Kind kind) : kind_(kind) {
  if (capturing()) g_open.fetch_add(1);
}

Trace::~Trace() {
  Seal();
  if (capturing()) {
    PoisonLeaked();
    g_open.fetch_sub(1);
  }
  Clear();
}

// ---- values by number

Trace::Slot& Trace::Find(const Value* value) {
  auto h = reinterpret_cast<uintptr_t>(value) / sizeof(Value) * 0x9E3779B97F4A7C15ull >> 20;
  for (;; ++h) {
    Slot& s = slots_[h & (slots_.size() - 1)];
    if (s.epoch != epoch_ || s.value == value) return s;
  }
}

void Trace::Grow() {
  std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::max<size_t>(64, slots_.size() * 2)));
  for (const Slot& s : old)
    if (s.epoch == epoch_) Find(s.value) = s;
}

void Trace::Insert(const Value* value, int32_t number) {
  if ((arguments_.size() + made_.size() + 1) * 2 > slots_.size()) Grow();
  Find(value) = {value, epoch_, number};
}

int32_t Trace::NumberOf(Value* value) {
  if (!slots_.empty())
    if (const Slot& s = Find(value); s.epoch == epoch_) return s.number;
  auto number = static_cast<int32_t>(arguments_.size());
  value->IncRef();
  arguments_.push_back(value);
  Insert(value, number);
  return number;
}

// ---- recording

void Trace::SealBefore(const TracedRecord& r) {
  const uint64_t thread = ThreadId();
  if (capturing()) {
    if (parts_.empty()) return;
    if (r.record->device != device_) (void)Break("work on several devices");
    return;
  }
  const bool other_thread = std::exchange(last_thread_, thread) != thread;
  if (parts_.empty()) return;
  static const auto& limit = GetSettings().fused_records;
  const auto most = static_cast<size_t>(std::max<int64_t>(1, limit.load(std::memory_order_relaxed)));
  const bool full = parts_.size() >= (kind_ == kScoped ? kScopedRecords : seal_at_ ? std::min(seal_at_, most) : most);
  if (full && kind_ == kFused && !seal_at_) {
    seal_at_ = PeriodOf(parts_);
    sealed_at_ = 0;
  } else if (full && ++sealed_at_ == 3) {
    seal_at_ = 0;  // learned by now, or not to be learned
  }
  // Not when its last record comes: what the caller is about to drop would count as alive.
  const bool ended = kind_ == kFused && EndsAt(rolling_.back());
  if (full || ended || r.record->device != device_ || (other_thread && parts_.size() >= kRecordsOfAPass)) Seal();
}

bool Trace::IsOutside(Cell* cell) const {
  ValueRef old(cell->Load());
  int32_t number;
  return old->state.load(std::memory_order_acquire) != ValueState::kUndefined && !Holds(old.get(), &number);
}

void Trace::PoisonLeaked() {
  auto failure =
      std::make_shared<Failure>(RuntimeError("this tensor belongs to a compiled graph's capture, which has no contents"));
  for (const auto* values : {&arguments_, &made_}) {
    for (Value* v : *values) {
      if (v->state.load(std::memory_order_acquire) != ValueState::kTraced || v->refs.load(std::memory_order_acquire) == 1)
        continue;
      Poison(v, failure);
    }
  }
}

Value* Trace::Foreign(const TracedRecord& r) {
  for (uint16_t argument : r.program->arguments) {
    Value* v = r.record->values[argument];
    if (v->state.load(std::memory_order_acquire) == ValueState::kTraced && (slots_.empty() || Find(v).epoch != epoch_))
      return v;
  }
  return nullptr;
}

// Sharing them makes the kernels of a foreach operator equal, and equal kernels are compiled once.
int32_t Trace::RepeatedRaws(const TracedRecord& r) {
  const auto& raw = r.record->raw;
  const bool looped = std::exchange(last_loop_, t_loop) == t_loop && t_loop;
  if (!looped || parts_.size() < 2 || raw.empty() || r.program->random || raw_.size() - first_raw_.back() != raw.size() ||
      !std::equal(raw.begin(), raw.end(), raw_.end() - static_cast<int64_t>(raw.size())))
    return -1;
  return same_raws_.back() >= 0 ? same_raws_.back() : static_cast<int32_t>(parts_.size()) - 2;
}

void Trace::Append(const TracedRecord& r) {
  SealBefore(r);
  if (parts_.empty()) {
    g_open.fetch_add(1);
    device_ = r.record->device;
  }
  auto add = [this](uint64_t word) {
    key_.push_back(word);
    hasher_.Add(word);
  };
  parts_.push_back(r.program);
  add(reinterpret_cast<uintptr_t>(r.program));
  for (uint16_t argument : r.program->arguments) {
    int32_t number = NumberOf(r.record->values[argument]);
    operands_.push_back(number);
    add(static_cast<uint64_t>(static_cast<int64_t>(number)));
  }
  same_raws_.push_back(RepeatedRaws(r));
  if (same_raws_.back() >= 0) add(kRepeatsRaws);
  first_raw_.push_back(raw_.size());
  raw_.insert(raw_.end(), r.record->raw.begin(), r.record->raw.end());
  if (capturing() && r.program->random) draws_.push_back({raw_.size() - 2, r.program->random_count});
  for (size_t i = 0; i < r.program->outputs.size(); ++i) {
    Insert(r.outputs[i], ~static_cast<int32_t>(made_.size()));
    made_.push_back(r.outputs[i]);
  }
  for (int i = 0; i < r.num_cells; ++i) r.cells[i]->Swap(r.values[i]);
  if (kind_ == kFused) rolling_.push_back(hasher_.Finish());
}

// ---- sealing

std::vector<int32_t> Trace::LiveValues() const {
  std::vector<int32_t> live;
  for (size_t i = 0; i < made_.size(); ++i)
    if (made_[i]->refs.load(std::memory_order_acquire) > 1) live.push_back(static_cast<int32_t>(i));
  return live;
}

Program* Trace::ComposedProgram() {
  Region& region = RegionOf(hasher_.Finish(), key_);
  ++region.seen;
  if (region.refused || (kind_ == kFused && region.seen < 2)) return nullptr;
  const bool first = region.programs.empty();
  auto program = ProgramOf(region, {parts_, operands_, LiveValues(), static_cast<int>(arguments_.size()), same_raws_});
  if (!program.ok()) {
    Log(LogLevel::kWarning, "a region of records runs one by one: " + program.status().message());
    region.refused = true;
    return nullptr;
  }
  if (first && kind_ == kFused) LearnEnding(rolling_);
  return *program;
}

void Trace::Seal() {
  if (parts_.empty() || capturing()) return;
  Program* program = parts_.size() == 1 ? nullptr : ComposedProgram();
  if (program)
    RunComposed(program);
  else
    RunParts();
  Clear();
}

Result<Program*> Trace::ProgramFor(std::vector<int32_t> made) {
  std::sort(made.begin(), made.end());
  made.erase(std::unique(made.begin(), made.end()), made.end());
  Region& region = RegionOf(hasher_.Finish(), key_);
  ++region.seen;
  return ProgramOf(region, {parts_, operands_, std::move(made), static_cast<int>(arguments_.size()), same_raws_});
}

Status Trace::Break(std::string why) {
  if (broken_.empty()) broken_ = std::move(why);
  return RuntimeError("not possible in a compiled graph: " + broken_);
}

bool Trace::Holds(const Value* value, int32_t* number) const {
  if (slots_.empty()) return false;
  const Slot& s = const_cast<Trace*>(this)->Find(value);
  *number = s.number;
  return s.epoch == epoch_;
}

void Trace::RunComposed(Program* program) {
  CountRelaxed(g_counters.composed);
  std::vector<Value*> args, outputs;
  for (uint16_t argument : program->arguments) args.push_back(std::exchange(arguments_[argument], nullptr));
  for (int32_t made : program->composition->live) outputs.push_back(std::exchange(made_[static_cast<size_t>(made)], nullptr));
  std::vector<uint32_t> words(static_cast<size_t>(program->host_words));
  PackHostWords(*program, raw_.data(), words.data());
  Hand({program, args.data(), outputs.data(), words.data(), device_, nullptr, nullptr, 0});
}

void Trace::Hand(const Submission& s) {
  for (size_t o = 0; o < s.program->outputs.size(); ++o) s.outputs[o]->CountBytes();
  MakeRoom();
  Enqueue(s);
}

void Trace::RunParts() {
  // A reference for each use before the first entry may run; the trace's own one is the last use's.
  std::vector<uint8_t> used(arguments_.size(), 0);
  auto value_of = [&](int32_t number) {
    return number >= 0 ? arguments_[static_cast<size_t>(number)] : made_[static_cast<size_t>(~number)];
  };
  for (int32_t number : operands_) {
    if (number >= 0 && !std::exchange(used[static_cast<size_t>(number)], 1)) continue;
    value_of(number)->IncRef();
  }
  size_t operand = 0, made = 0;
  std::vector<Value*> args;
  std::vector<uint32_t> words;
  for (size_t i = 0; i < parts_.size(); ++i) {
    auto* program = const_cast<Program*>(parts_[i]);
    args.clear();
    for (size_t a = 0; a < program->arguments.size(); ++a) args.push_back(value_of(operands_[operand++]));
    Value** outputs = made_.data() + made;
    made += program->outputs.size();
    if (!program->loaded.load(std::memory_order_acquire)) {
      if (Status status = EnsureLoaded(program); !status.ok()) {
        auto failure = std::make_shared<Failure>(std::move(status));
        RememberFailure(failure);
        for (size_t o = 0; o < program->outputs.size(); ++o) {
          Poison(outputs[o], failure);
          outputs[o]->DecRef();
        }
        for (Value* v : args) v->DecRef();
        continue;
      }
    }
    words.resize(static_cast<size_t>(program->host_words));
    PackHostWords(*program, raw_.data() + first_raw_[i], words.data());
    Hand({program, args.data(), outputs, words.data(), device_, nullptr, nullptr, 0});
  }
  std::fill(made_.begin(), made_.end(), nullptr);
  for (size_t a = 0; a < used.size(); ++a)
    if (used[a]) arguments_[a] = nullptr;
}

void Trace::Clear() {
  if (!parts_.empty()) g_open.fetch_sub(1);
  for (Value* v : arguments_)
    if (v) v->DecRef();
  for (Value* v : made_)
    if (v) v->DecRef();
  for (auto* list : {&arguments_, &made_}) list->clear();
  hasher_ = Hasher();
  key_.clear();
  parts_.clear();
  operands_.clear();
  raw_.clear();
  first_raw_.clear();
  same_raws_.clear();
  last_loop_ = 0;
  rolling_.clear();
  ++epoch_;
}

// ---- the traces of the process

namespace {
// Drops the references that the trace would have taken.
void Abandon(const TracedRecord& r) {
  for (size_t i = 0; i < r.program->outputs.size(); ++i) r.outputs[i]->DecRef();
  for (int i = 0; i < r.num_cells; ++i) r.values[i]->DecRef();
}
}  // namespace

Trace* CurrentTrace() {
  if (t_scoped) return t_scoped;
  return __builtin_expect(FusedMode(), 0) ? &FusedTrace() : nullptr;
}

Status AppendTo(Trace* trace, const TracedRecord& r) {
  for (int i = 0; i < r.num_cells; ++i)
    if (Status s = CheckWrite(r.cells[i]); !s.ok()) return Abandon(r), s;
  std::unique_lock<std::mutex> lock;
  if (trace != t_scoped) lock = std::unique_lock<std::mutex>(g_fused_mu);
  while (Value* foreign = trace->Foreign(r)) {
    if (lock) lock.unlock();
    if (Status s = WaitUntilSealed(foreign); !s.ok()) return Abandon(r), s;
    if (lock.mutex()) lock.lock();
  }
  trace->Append(r);
  return {};
}

void SealTraces() {
  if (t_scoped) t_scoped->Seal();
  if (!AnyTraced()) return;
  std::lock_guard<std::mutex> lock(g_fused_mu);
  FusedTrace().Seal();
}

bool AnyTraced() { return g_open.load(std::memory_order_relaxed) != 0; }

Trace* ExchangeScopedTrace(Trace* trace) { return std::exchange(t_scoped, trace); }

bool Capturing() { return t_scoped && t_scoped->capturing(); }

Status CheckWrite(Cell* cell) {
  if (!Capturing() || !t_scoped->IsOutside(cell)) return {};
  return t_scoped->Break("a tensor that is not an input is written");
}

Status BreakCapture(std::string why) { return t_scoped->Break(std::move(why)); }

ScopedTrace::ScopedTrace() {
  static std::atomic<uint64_t> next{1};
  outer_loop_ = std::exchange(t_loop, next.fetch_add(1, std::memory_order_relaxed));
  if (CurrentTrace()) return;
  active_ = true;
  outer_ = ExchangeScopedTrace(&trace_);
}

ScopedTrace::~ScopedTrace() {
  t_loop = outer_loop_;
  if (!active_) return;
  trace_.Seal();
  t_scoped = outer_;
}

}  // namespace tpu::engine
