// SPDX-License-Identifier: Apache-2.0
// Analyse against brute force: what lowering reads through an Access is what strided indexing reads.
#include "graph/access.h"

#include <gtest/gtest.h>

#include <map>

#include "random_views.h"

namespace tpu::graph {
namespace {

constexpr int kViews = 20000;

// The flat elements of the base that a read through `a` gives, as the lowering of each mode does it; starts that a
// dynamic slice would clamp are failures.
std::vector<int64_t> ReadThrough(const Access& a, const OwnedView& v, const TensorType& base, const int64_t* starts) {
  std::vector<int64_t> flat;
  int64_t numel = v.numel(), base_numel = base.numel();
  switch (a.mode) {
    case AccessMode::kWhole:
    case AccessMode::kReshape:
      EXPECT_EQ(numel, base_numel);
      for (int64_t i = 0; i < numel; ++i) flat.push_back(i);
      break;
    case AccessMode::kFlat:
      EXPECT_TRUE(starts[0] >= 0 && starts[0] + numel <= base_numel);
      for (int64_t i = 0; i < numel; ++i) flat.push_back(starts[0] + i);
      break;
    case AccessMode::kGather:
      EXPECT_EQ(starts[0], v.offset);
      return Oracle(v);
    case AccessMode::kSlice: {
      std::vector<int64_t> window(a.window, a.window + a.window_rank), begin(window.size(), 0);
      int64_t window_numel = 1;
      for (int64_t w : window) window_numel *= w;
      EXPECT_EQ(window_numel, base_numel);
      int n = 0;
      for (size_t j = 0; j < window.size(); ++j) {
        int64_t span = 1;
        int walking = 0;
        for (size_t i = 0; i < v.sizes.size(); ++i) {
          if (a.map[i] != static_cast<int8_t>(j)) continue;
          span = (v.sizes[i] - 1) * a.step[i] + 1;
          ++walking;
        }
        EXPECT_LE(walking, 1) << "two dimensions of the view walk one of the window: no slice does that";
        EXPECT_EQ(a.span(v.view(), static_cast<int>(j)), span);
        if (span != window[j]) begin[j] = starts[n++];
        EXPECT_TRUE(begin[j] >= 0 && begin[j] + span <= window[j]) << "a dynamic slice would be clamped";
      }
      EXPECT_EQ(n, a.num_starts(v.view()));
      std::vector<int64_t> strides = RowMajor(window);
      ForEachIndex(v.sizes, [&](const std::vector<int64_t>& index) {
        int64_t at = 0;
        for (size_t j = 0; j < window.size(); ++j) at += begin[j] * strides[j];
        for (size_t i = 0; i < index.size(); ++i)
          if (a.map[i] >= 0) at += index[i] * a.step[i] * strides[static_cast<size_t>(a.map[i])];
        flat.push_back(at);
      });
      break;
    }
    case AccessMode::kEmpty:
      EXPECT_EQ(numel, 0);
      break;
  }
  return flat;
}

struct Found {
  Access access;
  int64_t starts[kMaxRank];
};
Found Analysed(const OwnedView& v, const TensorType& base) {
  Found f;
  std::fill(f.starts, f.starts + kMaxRank, -1);
  Analyse(v.view(), base, &f.access, f.starts);
  return f;
}

void ExpectReads(const OwnedView& v, const TensorType& base) {
  Found f = Analysed(v, base);
  EXPECT_LE(f.access.num_starts(v.view()), kMaxRank);
  ASSERT_EQ(ReadThrough(f.access, v, base, f.starts), Oracle(v))
      << v.ToString() << " of " << base.ToHlo() << ", mode " << static_cast<int>(f.access.mode);
}

TEST(AccessTest, ChainsOfViewsReadTheirElements) {
  RandomViews random(1);
  std::map<AccessMode, int> modes;
  for (int i = 0; i < kViews && !HasFailure(); ++i) {
    TensorType base = random.Base();
    OwnedView v = random.Chain(base);
    ExpectReads(v, base);
    ++modes[Analysed(v, base).access.mode];
  }
  // Each way is taken often, and the slow one seldom: no view operation but a reshape of a stepped view needs it.
  EXPECT_GT(modes[AccessMode::kWhole], kViews / 50);
  EXPECT_GT(modes[AccessMode::kReshape], kViews / 50);
  EXPECT_GT(modes[AccessMode::kSlice], kViews / 10);
  EXPECT_LT(modes[AccessMode::kGather], kViews / 20);
}

TEST(AccessTest, ArbitraryStridesReadTheirElements) {
  RandomViews random(2);
  std::map<AccessMode, int> modes;
  for (int i = 0; i < kViews && !HasFailure(); ++i) {
    TensorType base = random.Base();
    OwnedView v = random.Strided(base);
    ExpectReads(v, base);
    ++modes[Analysed(v, base).access.mode];
  }
  EXPECT_GT(modes[AccessMode::kGather], kViews / 50);
  EXPECT_GT(modes[AccessMode::kFlat], 10);
}

TEST(AccessTest, NoViewReadsPastTheEnd) {
  // Elements outside of the base: never as a slice that fits by accident.
  TensorType base(DType::kF32, {4, 6});
  for (int64_t offset = 0; offset < 40; ++offset) {
    OwnedView v{DType::kF32, {2, 3}, {6, 1}, offset};
    Found f = Analysed(v, base);
    if (v.last() < 24) {
      EXPECT_EQ(ReadThrough(f.access, v, base, f.starts), Oracle(v));
    } else {
      EXPECT_NE(f.access.mode, AccessMode::kSlice) << offset;
    }
  }
}

// The offset is not part of the key, so all rows, and all windows of rows, are one program.
TEST(AccessTest, RowsAndBatchesAreOneAccess) {
  TensorType base(DType::kF32, {10, 4, 3});
  auto same = [](const Access& a, const Access& b) {
    return a.mode == b.mode && a.window_rank == b.window_rank && std::equal(a.window, a.window + a.window_rank, b.window) &&
           std::equal(a.map, a.map + kMaxRank, b.map) && std::equal(a.step, a.step + kMaxRank, b.step);
  };
  for (int64_t rows : {1, 3}) {
    OwnedView first{DType::kF32, {rows, 4, 3}, {12, 3, 1}, 0};
    for (int64_t i = 0; i + rows <= 10; ++i) {
      OwnedView v = first;
      v.offset = 12 * i;
      Found f = Analysed(v, base);
      EXPECT_EQ(f.access.mode, AccessMode::kSlice);
      EXPECT_TRUE(same(f.access, Analysed(first, base).access)) << i;
      EXPECT_EQ(f.access.num_starts(v.view()), 1);
      EXPECT_EQ(f.starts[0], i);
    }
  }
}

TEST(AccessTest, NoElementsReadNothing) {
  TensorType base(DType::kF32, {4, 6});
  EXPECT_EQ(Analysed({DType::kF32, {0, 6}, {6, 1}, 24}, base).access.mode, AccessMode::kEmpty);
  TensorType empty(DType::kF32, {0, 6});
  EXPECT_EQ(Analysed({DType::kF32, {0, 6}, {6, 1}, 0}, empty).access.mode, AccessMode::kWhole);
  EXPECT_EQ(Analysed({DType::kF32, {6, 0}, {1, 6}, 0}, empty).access.mode, AccessMode::kEmpty);
}

TEST(AccessTest, ReinterpretKeepsBytesAndRefusesWhatDoesNotDivide) {
  RandomViews random(3);
  constexpr DType kTypes[] = {DType::kU8, DType::kI16, DType::kF32, DType::kF64, DType::kC128};
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    TensorType base = random.Base().With(kTypes[random.Pick(0, 4)]);
    DType to = kTypes[random.Pick(0, 4)];
    TensorType seen = Reinterpret(base, to);
    if (seen.dtype == DType::kInvalid) {
      EXPECT_NE(base.bytes() % ItemSize(to), 0u);
      ++refused;
      continue;
    }
    EXPECT_EQ(seen.dtype, to);
    ASSERT_EQ(seen.bytes(), base.bytes()) << base.ToHlo() << " as " << seen.ToHlo();
  }
  EXPECT_GT(refused, 50);
}

TEST(AccessTest, ViewsOfAnotherTypeReadTheirElements) {
  RandomViews random(4);
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    TensorType base = random.Base();
    DType to = random.Pick(0, 1) ? DType::kI16 : DType::kF64;
    TensorType seen = Reinterpret(base, to);
    if (seen.dtype == DType::kInvalid) continue;
    OwnedView v = random.Pick(0, 1) ? random.Chain(seen) : random.Strided(seen);
    Found f = Analysed(v, base);
    ASSERT_EQ(ReadThrough(f.access, v, seen, f.starts), Oracle(v)) << v.ToString() << " of " << base.ToHlo();
  }
}

// ---- CoversStorage

TEST(CoversStorageTest, AgreesWithCounting) {
  RandomViews random(5);
  int covering = 0;
  for (int i = 0; i < kViews && !HasFailure(); ++i) {
    TensorType base = random.Base();
    OwnedView v = i % 2 ? random.Chain(base) : random.Strided(base);
    std::vector<int> hits(static_cast<size_t>(base.numel()), 0);
    for (int64_t at : Oracle(v)) ++hits[static_cast<size_t>(at)];
    bool expected = std::all_of(hits.begin(), hits.end(), [](int n) { return n == 1; });
    int8_t order[kMaxRank];
    ASSERT_EQ(CoversStorage(v.view(), base.bytes(), order), expected) << v.ToString() << " of " << base.ToHlo();
    if (!expected) continue;
    ++covering;
    // In the order given, the view's elements are the storage's, one after the other.
    OwnedView dense = v;
    for (size_t d = 0; d < v.sizes.size(); ++d) {
      dense.sizes[d] = v.sizes[static_cast<size_t>(order[d])];
      dense.strides[d] = v.strides[static_cast<size_t>(order[d])];
    }
    std::vector<int64_t> flat = Oracle(dense);
    for (size_t k = 0; k < flat.size(); ++k) ASSERT_EQ(flat[k], static_cast<int64_t>(k)) << v.ToString();
  }
  EXPECT_GT(covering, kViews / 20);
}

TEST(CoversStorageTest, OtherSizesDoNotCover) {
  int8_t order[kMaxRank];
  OwnedView v{DType::kF32, {2, 3}, {3, 1}, 0};
  EXPECT_TRUE(CoversStorage(v.view(), 24, order));
  EXPECT_FALSE(CoversStorage(v.view(), 28, order));
  EXPECT_FALSE(CoversStorage(v.view(), 20, order));
  OwnedView shifted{DType::kF32, {2, 3}, {3, 1}, 1};  // as many elements, but others
  EXPECT_FALSE(CoversStorage(shifted.view(), 24, order));
  Access access;
  int64_t starts[kMaxRank];
  Analyse(shifted.view(), TensorType(DType::kF32, {2, 3}), &access, starts);
  EXPECT_NE(access.mode, AccessMode::kWhole);
  OwnedView empty{DType::kF32, {0, 3}, {3, 1}, 0};
  EXPECT_TRUE(CoversStorage(empty.view(), 0, order));
  EXPECT_FALSE(CoversStorage(empty.view(), 4, order));
}

}  // namespace
}  // namespace tpu::graph
