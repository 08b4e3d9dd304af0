// SPDX-License-Identifier: Apache-2.0
#include "engine/executables.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/settings.h"
#include "engine/counters.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "graph/key.h"

namespace tpu::engine {
namespace {

std::mutex g_mu;
std::atomic<int64_t> g_loaded{0};
std::vector<Program*>& Loaded() {
  static auto* list = new std::vector<Program*>;
  return *list;
}

}  // namespace

Status Reload(Program* program) {
  graph::Graph graph = graph::Decode(program->key.data(), program->key.size());
  for (const ProgramResult& r : program->results) graph.records[0].results.push_back(r.tensor);
  const Runtime& runtime = Runtime::Started();
  auto lowered = lower::LowerGraph(graph, runtime.profile());
  if (!lowered.ok()) return lowered.status();
  auto executable = runtime.client().Compile(lowered->text, runtime.client().DefaultCompileOptions());
  if (!executable.ok()) return executable.status();
  program->executable = std::move(*executable);
  Count(g_counters.reloads);
  NoteLoaded(program);
  return {};
}

void NoteLoaded(Program* program) {
  program->last_used = std::max(program->last_used, QueuePosition());
  std::lock_guard<std::mutex> lock(g_mu);
  Loaded().push_back(program);
  g_loaded.store(static_cast<int64_t>(Loaded().size()), std::memory_order_relaxed);
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
