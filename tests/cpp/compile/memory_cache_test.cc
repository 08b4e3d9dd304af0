// SPDX-License-Identifier: Apache-2.0
// MemoryCache: one build for many that miss, failed builds, keys that collide, tables of threads.
#include "compile/memory_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tpu::compile {
namespace {

using Words = std::vector<uint64_t>;

// The thread's own table belongs to the type, so each test has an entry type of its own.
template <int Test>
struct Entry {
  Fingerprint fingerprint;
  Words key;
  int made_by = -1;
};

template <class E>
E* FindOrBuild(MemoryCache<E>& cache, const Fingerprint& f, const Words& key,
               const std::function<Result<std::unique_ptr<E>>()>& build, Status* error = nullptr) {
  auto found = cache.FindOrBuild(f, key.data(), key.size(), build);
  if (found.ok()) return *found;
  if (error) *error = found.status();
  return nullptr;
}

template <class F>
void InThreads(int count, F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& t : threads) t.join();
}

TEST(MemoryCacheTest, OneOfManyBuilds) {
  using E = Entry<0>;
  MemoryCache<E> cache;
  Words key{1, 2, 3};
  Fingerprint f{10, 20};
  std::atomic<int> builds{0}, arrived{0};
  E* found[8];
  InThreads(8, [&](int i) {
    EXPECT_EQ(cache.Find(f, key.data(), key.size()), nullptr);
    ++arrived;
    found[i] = FindOrBuild<E>(cache, f, key, [&]() -> Result<std::unique_ptr<E>> {
      ++builds;
      while (arrived < 8) std::this_thread::yield();  // all have missed by now
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return std::make_unique<E>();
    });
    EXPECT_EQ(cache.Find(f, key.data(), key.size()), found[i]);
  });
  EXPECT_EQ(builds, 1);
  EXPECT_EQ(cache.size(), 1u);
  for (E* e : found) EXPECT_EQ(e, found[0]);
  ASSERT_NE(found[0], nullptr);
  EXPECT_TRUE(found[0]->fingerprint == f);
  EXPECT_EQ(found[0]->key, key);
}

TEST(MemoryCacheTest, AFailedBuildFreesTheNextWaiter) {
  using E = Entry<1>;
  MemoryCache<E> cache;
  Words key{1};
  Fingerprint f{1, 1};
  std::atomic<int> builds{0}, failures{0}, arrived{0};
  InThreads(6, [&](int i) {
    ++arrived;
    Status error;
    E* e = FindOrBuild<E>(
        cache, f, key,
        [&]() -> Result<std::unique_ptr<E>> {
          while (arrived < 6) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          if (builds++ < 2) return RuntimeError("build of thread " + std::to_string(i));
          auto made = std::make_unique<E>();
          made->made_by = i;
          return made;
        },
        &error);
    if (e) return;
    ++failures;
    EXPECT_EQ(error.message(), "build of thread " + std::to_string(i)) << "an error of somebody else's build";
  });
  // Two fail, each for itself; the third builds for all the others.
  EXPECT_EQ(builds, 3);
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(MemoryCacheTest, AFailureIsNotKept) {
  using E = Entry<2>;
  MemoryCache<E> cache;
  Words key{1};
  Fingerprint f{1, 1};
  EXPECT_EQ(FindOrBuild<E>(cache, f, key, []() -> Result<std::unique_ptr<E>> { return RuntimeError("no"); }), nullptr);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.Find(f, key.data(), key.size()), nullptr);
  EXPECT_NE(FindOrBuild<E>(cache, f, key, []() -> Result<std::unique_ptr<E>> { return std::make_unique<E>(); }), nullptr);
}

TEST(MemoryCacheTest, KeysThatCollideAreRefused) {
  using E = Entry<3>;
  MemoryCache<E> cache;
  Fingerprint f{7, 7};
  auto build = []() -> Result<std::unique_ptr<E>> { return std::make_unique<E>(); };
  Words first{1, 2}, second{1, 3}, longer{1, 2, 0};
  ASSERT_NE(FindOrBuild<E>(cache, f, first, build), nullptr);
  for (const Words& other : {second, longer}) {
    // From a thread that has not seen the entry: the full key is compared at first sight.
    InThreads(1, [&](int) {
      EXPECT_EQ(cache.Find(f, other.data(), other.size()), nullptr);
      Status error;
      EXPECT_EQ(FindOrBuild<E>(cache, f, other, build, &error), nullptr);
      EXPECT_NE(error.message().find("collide"), std::string::npos);
    });
  }
  // Half of the fingerprint the same is another key: served wrongly never, refused at worst.
  Fingerprint half{7, 7 + 16};
  EXPECT_EQ(cache.Find(half, second.data(), second.size()), nullptr);
  EXPECT_NE(FindOrBuild<E>(cache, f, first, build), nullptr);
}

TEST(MemoryCacheTest, DifferentKeysBuildAtTheSameTime) {
  using E = Entry<4>;
  MemoryCache<E> cache;
  std::atomic<int> inside{0};
  InThreads(4, [&](int i) {
    Words key{static_cast<uint64_t>(i)};
    // The same shard for all: a build must not hold it.
    E* e = FindOrBuild<E>(cache, Fingerprint{static_cast<uint64_t>(i), 16}, key, [&]() -> Result<std::unique_ptr<E>> {
      ++inside;
      while (inside < 4) std::this_thread::yield();  // hangs when builds wait for each other
      return std::make_unique<E>();
    });
    EXPECT_NE(e, nullptr);
  });
  EXPECT_EQ(cache.size(), 4u);
}

TEST(MemoryCacheTest, TheThreadsTableForgetsNothingThatMatters) {
  using E = Entry<5>;
  MemoryCache<E> cache;
  auto build = []() -> Result<std::unique_ptr<E>> { return std::make_unique<E>(); };
  // Two entries of one slot in the table push each other out, and are still found.
  Fingerprint a{5, 1}, b{5 + 4096, 1};
  Words key_a{1}, key_b{2};
  E* ea = FindOrBuild<E>(cache, a, key_a, build);
  E* eb = FindOrBuild<E>(cache, b, key_b, build);
  ASSERT_NE(ea, eb);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cache.Find(a, key_a.data(), 1), ea);
    EXPECT_EQ(cache.Find(b, key_b.data(), 1), eb);
  }
}

TEST(MemoryCacheTest, ManyThreadsAndKeys) {
  using E = Entry<6>;
  MemoryCache<E> cache;
  std::atomic<int> builds{0};
  constexpr int kKeys = 300;
  InThreads(4, [&](int t) {
    for (int n = 0; n < 4000; ++n) {
      auto k = static_cast<uint64_t>((n * 7 + t * 13) % kKeys);
      Words key{k, ~k};
      Fingerprint f{k * 0x9E3779B97F4A7C15ull, k * 0xD6E8FEB86659FD93ull + 1};
      E* e = cache.Find(f, key.data(), key.size());
      if (!e)
        e = FindOrBuild<E>(cache, f, key, [&]() -> Result<std::unique_ptr<E>> {
          ++builds;
          return std::make_unique<E>();
        });
      ASSERT_NE(e, nullptr);
      ASSERT_EQ(e->key, key);
    }
  });
  EXPECT_EQ(builds, kKeys);
}

}  // namespace
}  // namespace tpu::compile
