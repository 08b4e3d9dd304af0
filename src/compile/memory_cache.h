// SPDX-License-Identifier: Apache-2.0
// The in-memory cache: fingerprint -> entry, for the life of the process. Entries have stable addresses and are never
// removed, so the thread-local tables in front of the shards stay valid without any protocol.
#pragma once
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/status.h"

namespace tpu::compile {

// Entry has `Fingerprint fingerprint` and `std::vector<uint64_t> key`.
template <class Entry>
class MemoryCache {
 public:
  // The hot path: no lock, no allocation. Null on a miss of the thread's own table and of the shards.
  // The full key is compared when a thread first sees an entry; after that the 128-bit fingerprint stands for it.
  Entry* Find(const Fingerprint& f, const uint64_t* words, size_t size) {
    Entry*& slot = Local()[f.lo & (kLocal - 1)];
    if (__builtin_expect(slot && slot->fingerprint == f, 1)) return slot;
    Shard& shard = shards_[f.hi & (kShards - 1)];
    std::lock_guard<std::mutex> lock(shard.mu);
    auto it = shard.entries.find(f.lo);
    if (it == shard.entries.end() || !Same(*it->second, f, words, size)) return nullptr;
    return slot = it->second.get();
  }

  // Single flight: of several threads that miss the same key one builds, the others wait for it. A failed build is not
  // kept: the next waiter tries for itself, and its own error is its answer. `build` runs without a lock.
  // Requires: the caller holds no lock that `build` takes (GIL: build takes none).
  Result<Entry*> FindOrBuild(const Fingerprint& f, const uint64_t* words, size_t size,
                             const std::function<Result<std::unique_ptr<Entry>>()>& build) {
    Shard& shard = shards_[f.hi & (kShards - 1)];
    std::unique_lock<std::mutex> lock(shard.mu);
    for (;;) {
      auto it = shard.entries.find(f.lo);
      if (it != shard.entries.end()) {
        // Two keys with one fingerprint: 2^-64 for a pair. Refused rather than served wrongly.
        if (!Same(*it->second, f, words, size)) return RuntimeError("two cache keys collide; please report this program");
        return it->second.get();
      }
      if (shard.building.count(f.lo) == 0) break;
      shard.done.wait(lock);
    }
    shard.building[f.lo] = true;
    lock.unlock();
    // Also when the build throws (no memory), so that nobody waits for it.
    struct Done {
      Shard& shard;
      std::unique_lock<std::mutex>& lock;
      uint64_t key;
      ~Done() {
        lock.lock();
        shard.building.erase(key);
        shard.done.notify_all();
      }
    };
    Result<std::unique_ptr<Entry>> built = [&] {
      Done done{shard, lock, f.lo};
      return build();
    }();
    if (!built.ok()) return built.status();
    Entry* entry = built->get();
    entry->fingerprint = f;
    entry->key.assign(words, words + size);
    shard.entries.emplace(f.lo, std::move(*built));
    return entry;
  }

  size_t size() {
    size_t n = 0;
    for (Shard& s : shards_) {
      std::lock_guard<std::mutex> lock(s.mu);
      n += s.entries.size();
    }
    return n;
  }

 private:
  static constexpr size_t kLocal = 4096, kShards = 16;
  struct Shard {
    std::mutex mu;
    std::condition_variable done;
    std::unordered_map<uint64_t, std::unique_ptr<Entry>> entries;
    std::unordered_map<uint64_t, bool> building;
  };

  static bool Same(const Entry& e, const Fingerprint& f, const uint64_t* words, size_t size) {
    return e.fingerprint == f && e.key.size() == size && std::memcmp(e.key.data(), words, size * sizeof(uint64_t)) == 0;
  }
  // One cache a process: the table belongs to the type.
  static Entry** Local() {
    static thread_local std::unique_ptr<Entry*[]> table(new Entry*[kLocal]());
    return table.get();
  }

  Shard shards_[kShards];
};

}  // namespace tpu::compile
