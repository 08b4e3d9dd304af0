// SPDX-License-Identifier: Apache-2.0
#include "engine/executables.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/settings.h"
#include "engine/build.h"
#include "engine/counters.h"
#include "engine/queue.h"
#include "engine/runtime.h"

namespace tpu::engine {
namespace {

std::mutex g_mu;
std::atomic<int64_t> g_loaded{0};
std::vector<Program*>& Loaded() {
  static auto* list = new std::vector<Program*>;
  return *list;
}

void NoteLoaded(Program* program) {
  program->last_used = std::max(program->last_used, QueuePosition());
  std::lock_guard<std::mutex> lock(g_mu);
  Loaded().push_back(program);
  g_loaded.store(static_cast<int64_t>(Loaded().size()), std::memory_order_relaxed);
}

Result<pjrt::LoadedExecutable> Compile(Program* program) {
  const Runtime& runtime = Runtime::Started();
  std::string text = std::exchange(program->text, {});
  if (text.empty()) {
    auto lowered = lower::LowerGraph(GraphOf(*program), runtime.profile());
    if (!lowered.ok()) return lowered.status();
    text = std::move(lowered->text);
  }
  if (GetSettings().explain.load(std::memory_order_relaxed) > 1) WriteLogLine(text);
  auto executable = runtime.client().Compile(text, runtime.client().DefaultCompileOptions());
  if (!executable.ok()) return std::move(executable).status().WithContext("compiling " + program->name);
  return executable;
}

// One of these for each of a few programs: who compiles one program holds up few others.
std::mutex& CompileMutex(const Program* program) {
  constexpr size_t kMutexes = 64;
  static auto* mutexes = new std::mutex[kMutexes];
  return mutexes[reinterpret_cast<uintptr_t>(program) / sizeof(Program) % kMutexes];
}

}  // namespace

Status EnsureLoaded(Program* program) {
  std::lock_guard<std::mutex> lock(CompileMutex(program));
  if (program->loaded.load(std::memory_order_acquire)) return {};
  Count(g_counters.compiles);
  auto executable = Compile(program);
  if (!executable.ok()) return executable.status();
  program->temp_bytes = executable->memory_stats().temp_bytes;
  program->reserve_bytes += program->temp_bytes;
  program->executable = std::move(*executable);
  NoteLoaded(program);
  program->loaded.store(true, std::memory_order_release);
  return {};
}

Status Reload(Program* program) {
  auto executable = Compile(program);
  if (!executable.ok()) return executable.status();
  Count(g_counters.reloads);
  program->executable = std::move(*executable);
  NoteLoaded(program);
  return {};
}

bool EvictionWanted() {
  static const auto& limit = GetSettings().max_executables;
  return g_loaded.load(std::memory_order_relaxed) > std::max<int64_t>(limit.load(std::memory_order_relaxed), 16);
}

void Evict() {
  std::vector<Program*> victims;
  {
    std::lock_guard<std::mutex> lock(g_mu);
    auto& list = Loaded();
    size_t n = list.size() / 8 + 1;
    std::nth_element(list.begin(), list.begin() + static_cast<ptrdiff_t>(n), list.end(),
                     [](const Program* a, const Program* b) { return a->last_used < b->last_used; });
    victims.assign(list.begin(), list.begin() + static_cast<ptrdiff_t>(n));
    list.erase(list.begin(), list.begin() + static_cast<ptrdiff_t>(n));
    g_loaded.store(static_cast<int64_t>(list.size()), std::memory_order_relaxed);
  }
  for (Program* p : victims) p->executable = pjrt::LoadedExecutable();
  g_counters.evictions.fetch_add(victims.size(), std::memory_order_relaxed);
}

int64_t LoadedExecutables() { return g_loaded.load(std::memory_order_relaxed); }

}  // namespace tpu::engine
