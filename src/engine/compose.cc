// SPDX-License-Identifier: Apache-2.0
#include "engine/compose.h"

#include <algorithm>
#include <utility>

#include "engine/build.h"

namespace tpu::engine {
namespace {

class Composer {
 public:
  explicit Composer(const Composition& c) : c_(c) { whole_.arguments.resize(static_cast<size_t>(c.num_arguments)); }

  graph::Graph Run() {
    for (const Program* part : c_.parts) Add(*part);
    // Results are numbered behind the arguments, of which there are no more now.
    const auto num_arguments = static_cast<int>(whole_.arguments.size());
    for (graph::OpRecord& r : whole_.records)
      ForEachOperand(r, [&](graph::Operand& o) {
        if (o.value >= kResult) o.value += num_arguments - kResult;
      });
    std::vector<int> live;
    for (int32_t made : c_.live) live.push_back(result_of_[static_cast<size_t>(made)]);
    std::sort(live.begin(), live.end());
    whole_.live = std::move(live);
    return std::move(whole_);
  }

 private:
  static constexpr int kResult = 1 << 24;  // added to the numbers of results until the arguments are all known

  template <class F>
  static void ForEachOperand(graph::OpRecord& r, F f) {
    for (graph::Argument& a : r.args)
      for (graph::Operand& o : a.tensors)
        if (o.value >= 0) f(o);
    for (graph::Target& t : r.targets)
      if (t.operand.value >= 0) f(t.operand);
  }

  void Add(const Program& part) {
    graph::Graph one = GraphOf(part);
    graph::OpRecord& record = one.records[0];
    std::vector<int> number(one.arguments.size(), -1);
    for (uint16_t argument : part.arguments) {
      const int32_t operand = c_.operands[next_operand_++];
      if (operand >= 0) whole_.arguments[static_cast<size_t>(operand)] = one.arguments[argument];
      number[argument] = operand >= 0 ? operand : kResult + result_of_[static_cast<size_t>(~operand)];
    }
    // Only its type counts where the contents are not read: any number that no program takes will do.
    for (size_t i = 0; i < number.size(); ++i) {
      if (number[i] >= 0) continue;
      number[i] = static_cast<int>(whole_.arguments.size());
      whole_.arguments.push_back(one.arguments[i]);
    }
    ForEachOperand(record, [&](graph::Operand& o) { o.value = number[static_cast<size_t>(o.value)]; });
    std::vector<int> of_output(part.outputs.size(), 0);
    for (size_t k = 0; k < part.results.size(); ++k)
      if (part.results[k].output >= 0)
        of_output[static_cast<size_t>(part.results[k].output)] = num_results_ + static_cast<int>(k);
    result_of_.insert(result_of_.end(), of_output.begin(), of_output.end());
    num_results_ += static_cast<int>(part.results.size());
    record.same_raws = c_.same_raws[whole_.records.size()];
    whole_.records.push_back(std::move(record));
  }

  const Composition& c_;
  graph::Graph whole_;
  std::vector<int> result_of_;  // of each value made: its number among the results of all records
  size_t next_operand_ = 0;
  int num_results_ = 0;
};

}  // namespace

std::vector<bool> CheckedOutputs(const Composition& c) {
  std::vector<bool> made, live;
  size_t next = 0;
  for (const Program* part : c.parts) {
    bool checked = !part->traps.empty();
    for (size_t i = 0; i < part->arguments.size(); ++i)
      if (int32_t operand = c.operands[next++]; operand < 0) checked = checked || made[static_cast<size_t>(~operand)];
    made.insert(made.end(), part->outputs.size(), checked);
  }
  for (int32_t number : c.live) live.push_back(made[static_cast<size_t>(number)]);
  return live;
}

graph::Graph Compose(const Composition& composition) { return Composer(composition).Run(); }

}  // namespace tpu::engine
