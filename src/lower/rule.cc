// SPDX-License-Identifier: Apache-2.0
#include "lower/rule.h"

#include <string>
#include <unordered_map>

#include "base/hash.h"
#include "base/log.h"
#include "base/status.h"

namespace tpu::lower {
namespace {

struct Table {
  std::vector<const Rule*> rules;
  std::unordered_map<uint64_t, const Rule*> by_op;

  void Add(std::span<const Rule> family) {
    for (const Rule& rule : family) {
      rules.push_back(&rule);
      bool fresh = by_op.emplace(HashName(QualifiedName(rule).c_str()), &rule).second;
      if (!fresh) WriteLogLine("two rules for " + QualifiedName(rule));
      TPU_CHECK(fresh && "two rules for one operator");
    }
  }
};

const Table& GetTable() {
  static const Table* table = [] {
    auto* t = new Table;
    using Family = std::span<const Rule> (*)();
    for (Family family :
         {PointwiseRules, CompareRules, ReduceRules, ShapeRules, IndexRules, MatmulRules, AttentionRules, ConvolutionRules,
          PoolingRules, NormalizeRules, LossRules, AmpRules, CreateRules, RandomRules, SortRules, CopyRules, NonzeroRules}) {
      t->Add(family());
    }
    return t;
  }();
  return *table;
}

}  // namespace

std::string QualifiedName(const Rule& rule) {
  std::string name = rule.name;
  return name.find("::") == std::string::npos ? "aten::" + name : name;
}

const std::vector<const Rule*>& AllRules() { return GetTable().rules; }

const Rule* FindRule(uint64_t op) {
  const Table& table = GetTable();
  auto it = table.by_op.find(op);
  return it == table.by_op.end() ? nullptr : it->second;
}

}  // namespace tpu::lower
