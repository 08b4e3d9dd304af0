// SPDX-License-Identifier: Apache-2.0
#include "engine/build.h"

#include <algorithm>

#include "base/log.h"
#include "base/settings.h"
#include "compile/memory_cache.h"
#include "engine/compose.h"
#include "engine/counters.h"
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

// A result with gaps or overlaps (clone_preserve_strides of a slice) is not what a value can be.
bool IsDense(const graph::RecordResult& r) {
  int8_t order[kMaxRank];
  return !r.defined || graph::CoversStorage({r.dtype, r.rank, r.sizes, r.strides, 0}, r.type().bytes(), order);
}

// The tables that callers and the consumer read, common to programs of one and of several records.
void Describe(lower::Lowered&& lowered, Program* p) {
  p->name = std::move(lowered.name);
  p->text = std::move(lowered.text);
  p->host_fields = std::move(lowered.host_fields);
  p->host_words = lowered.host_words;
  p->random_count = lowered.random_count;
  p->aliases = std::move(lowered.aliases);
  p->traps = std::move(lowered.traps);
  for (int a : lowered.arguments) p->arguments.push_back(static_cast<uint16_t>(a));
  for (const auto& o : lowered.outputs) {
    p->outputs.push_back(o.type);
    p->reserve_bytes += static_cast<int64_t>(o.type.bytes());
  }
}

// Where the outputs go.
void DescribeResults(const graph::OpRecord& record, const std::vector<lower::Lowered::Output>& outputs, Program* p) {
  p->random = lower::FindRule(record.op)->random;
  for (const graph::RecordResult& r : record.results) {
    ProgramResult result;
    result.tensor = r;
    result.contiguous = IsContiguous(r);
    if (const graph::Target* target = record.target(p->results.size()))
      result.target = static_cast<int16_t>(target - record.targets.data());
    p->results.push_back(result);
  }
  for (const auto& o : outputs) {
    p->results[o.result].output = static_cast<int16_t>(p->output_target.size());
    p->output_target.push_back(p->results[o.result].target);
  }
}

std::unique_ptr<Program> Unsupported(std::string why) {
  auto p = std::make_unique<Program>();
  p->unsupported = true;
  p->why = std::move(why);
  return p;
}

Result<std::unique_ptr<Program>> Lower(const graph::Graph& graph) {
  auto lowered = lower::LowerGraph(graph, Runtime::Started().profile());
  if (!lowered.ok()) {
    if (lowered.status().kind() == ErrorKind::kNotImplemented) return Unsupported(lowered.status().message());
    return lowered.status();
  }
  auto p = std::make_unique<Program>();
  DescribeResults(graph.records[0], lowered->outputs, p.get());
  Describe(std::move(*lowered), p.get());
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
  } else {
    const graph::OpRecord& r = graph.records[0];
    for (size_t k = 0; k < r.results.size(); ++k)
      if (!r.target(k) && !IsDense(r.results[k])) unsupported = "a result with gaps";
  }
  return Cache().FindOrBuild(fingerprint, key.words(), key.size(), [&]() -> Result<std::unique_ptr<Program>> {
    if (!unsupported.empty()) return Unsupported(unsupported);
    return Lower(graph);
  });
}

Result<std::unique_ptr<Program>> BuildComposite(Composition composition) {
  auto p = std::make_unique<Program>();
  p->composition = std::make_unique<const Composition>(std::move(composition));
  auto lowered = lower::LowerGraph(GraphOf(*p), Runtime::Started().profile());
  if (!lowered.ok()) return lowered.status();
  Describe(std::move(*lowered), p.get());
  p->checked = CheckedOutputs(*p->composition);
  return p;
}

graph::Graph GraphOf(const Program& program) {
  if (program.composition) return Compose(*program.composition);
  graph::Graph graph = graph::Decode(program.key.data(), program.key.size());
  for (const ProgramResult& r : program.results) graph.records[0].results.push_back(r.tensor);
  return graph;
}

std::string ExplainLastMiss() { return LastMiss(); }
size_t CachedPrograms() { return Cache().size(); }

}  // namespace tpu::engine
