// SPDX-License-Identifier: Apache-2.0
#include "engine/build.h"

#include <algorithm>

#include "base/log.h"
#include "base/settings.h"
#include "compile/memory_cache.h"
#include "engine/counters.h"
#include "engine/executables.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "lower/lowering.h"

namespace tpu::engine {
namespace {

compile::MemoryCache<Program>& Cache() {
  static auto* cache = new compile::MemoryCache<Program>;
  return *cache;
}

std::string& LastMiss() {
  static thread_local std::string line;
  return line;
}

void Explain(const graph::Graph& graph) {
  const lower::Rule* rule = lower::FindRule(graph.records[0].op);
  LastMiss() = std::string(rule ? rule->name : "?") + ": " + graph::ToString(graph);
  if (!LastMiss().empty() && LastMiss().back() == '\n') LastMiss().pop_back();
  if (GetSettings().explain.load(std::memory_order_relaxed)) WriteLogLine("miss: " + LastMiss());
}

bool IsContiguous(const graph::RecordResult& r) {
  int64_t expect = 1;
  for (int i = r.rank - 1; i >= 0; --i) {
    if (r.strides[i] != expect) return false;
    expect *= std::max<int64_t>(r.sizes[i], 1);
  }
  return true;
}

// The tables that callers and the consumer read.
void Describe(const graph::Graph& graph, lower::Lowered&& lowered, Program* p) {
  p->name = std::move(lowered.name);
  p->host_fields = std::move(lowered.host_fields);
  p->host_words = lowered.host_words;
  p->random_count = lowered.random_count;
  p->aliases = std::move(lowered.aliases);
  p->traps = std::move(lowered.traps);
  for (int a : lowered.arguments) p->arguments.push_back(static_cast<uint16_t>(a));
  const graph::OpRecord& record = graph.records[0];
  for (const graph::RecordResult& r : record.results) {
    ProgramResult result;
    result.tensor = r;
    result.contiguous = IsContiguous(r);
    if (const graph::Target* target = record.target(p->results.size()))
      result.target = static_cast<int16_t>(target - record.targets.data());
    p->results.push_back(result);
  }
  for (const auto& o : lowered.outputs) {
    int16_t target = p->results[o.result].target;
    p->results[o.result].output = static_cast<int16_t>(p->outputs.size());
    p->outputs.push_back(o.type);
    p->output_target.push_back(target);
    p->reserve_bytes += static_cast<int64_t>(o.type.bytes());
  }
}

std::unique_ptr<Program> Unsupported(std::string why) {
  auto p = std::make_unique<Program>();
  p->unsupported = true;
  p->why = std::move(why);
  return p;
}

Result<std::unique_ptr<Program>> Compile(const graph::Graph& graph) {
  const Runtime& runtime = Runtime::Started();
  auto lowered = lower::LowerGraph(graph, runtime.profile());
  if (!lowered.ok()) {
    if (lowered.status().kind() == ErrorKind::kNotImplemented) return Unsupported(lowered.status().message());
    return lowered.status();
  }
  if (GetSettings().explain.load(std::memory_order_relaxed) > 1) WriteLogLine(lowered->text);
  Count(g_counters.compiles);
  auto executable = runtime.client().Compile(lowered->text, runtime.client().DefaultCompileOptions());
  if (!executable.ok()) return std::move(executable).status().WithContext("compiling " + lowered->name);
  auto p = std::make_unique<Program>();
  p->executable = std::move(*executable);
  p->temp_bytes = p->executable.memory_stats().temp_bytes;
  Describe(graph, std::move(*lowered), p.get());
  p->reserve_bytes += p->temp_bytes;
  return p;
}

}  // namespace

Program* FindProgram(const Fingerprint& fingerprint, const graph::KeyWriter& key) {
  return Cache().Find(fingerprint, key.words(), key.size());
}

Result<Program*> BuildProgram(const Fingerprint& fingerprint, const graph::KeyWriter& key, const CorridorHooks& hooks) {
  Count(g_counters.misses);
  graph::Graph graph = graph::Decode(key.words(), key.size());
  Explain(graph);
  std::string unsupported;
  if (!lower::FindRule(graph.records[0].op)) {
    unsupported = "no rule";
  } else if (Status s = hooks.infer(hooks.context, &graph.records[0]); !s.ok()) {
    if (s.kind() != ErrorKind::kNotImplemented) return s;
    unsupported = s.message();
  }
  return Cache().FindOrBuild(fingerprint, key.words(), key.size(), [&]() -> Result<std::unique_ptr<Program>> {
    if (!unsupported.empty()) return Unsupported(unsupported);
    auto p = Compile(graph);
    if (p.ok() && !(*p)->unsupported) NoteLoaded(p->get());
    return p;
  });
}

std::string ExplainLastMiss() { return LastMiss(); }
size_t CachedPrograms() { return Cache().size(); }

}  // namespace tpu::engine
