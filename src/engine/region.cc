// SPDX-License-Identifier: Apache-2.0
#include "engine/region.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "engine/build.h"
#include "engine/executables.h"

namespace tpu::engine {
namespace {

struct Table {
  std::mutex mu;
  std::unordered_multimap<uint64_t, std::unique_ptr<Region>> regions;
  std::unordered_map<uint64_t, bool> ends;  // by rolling fingerprint; false: a longer region goes on
};
Table& T() {
  static auto* table = new Table;
  return *table;
}

bool Serves(const Program& program, const std::vector<int32_t>& live) {
  const auto& made = program.composition->live;
  return std::includes(made.begin(), made.end(), live.begin(), live.end());
}

}  // namespace

Region& RegionOf(const Fingerprint& fingerprint, const std::vector<uint64_t>& key) {
  Table& t = T();
  std::lock_guard<std::mutex> lock(t.mu);
  auto [begin, end] = t.regions.equal_range(fingerprint.lo);
  for (auto it = begin; it != end; ++it)
    if (it->second->key == key) return *it->second;
  auto region = std::make_unique<Region>();
  region->key = key;
  return *t.regions.emplace(fingerprint.lo, std::move(region))->second;
}

Result<Program*> ProgramOf(Region& region, Composition composition) {
  std::lock_guard<std::mutex> lock(region.mu);
  for (Program* p : region.programs)
    if (Serves(*p, composition.live)) return p;
  if (!region.programs.empty()) {  // one that serves both
    std::vector<int32_t> both;
    const auto& last = region.programs.back()->composition->live;
    std::set_union(last.begin(), last.end(), composition.live.begin(), composition.live.end(), std::back_inserter(both));
    composition.live = std::move(both);
  }
  auto built = BuildComposite(std::move(composition));
  if (!built.ok()) return built.status();
  TPU_RETURN_IF_ERROR(EnsureLoaded(built->get()));
  region.programs.push_back(built->release());
  return region.programs.back();
}

bool EndsAt(const Fingerprint& rolling) {
  std::lock_guard<std::mutex> lock(T().mu);
  auto it = T().ends.find(rolling.lo);
  return it != T().ends.end() && it->second;
}

void LearnEnding(const std::vector<Fingerprint>& rolling) {
  std::lock_guard<std::mutex> lock(T().mu);
  for (size_t i = 0; i + 1 < rolling.size(); ++i) T().ends[rolling[i].lo] = false;
  T().ends.emplace(rolling.back().lo, true);
}

}  // namespace tpu::engine
