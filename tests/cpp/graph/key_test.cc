// SPDX-License-Identifier: Apache-2.0
// Key words: what is written comes back from Decode, what differs gives another fingerprint, offsets and values do not.
#include "graph/key.h"

#include <gtest/gtest.h>

#include <limits>

#include "random_views.h"

namespace tpu::graph {
namespace {

Graph Decoded(const KeyWriter& key) { return Decode(key.words(), key.size()); }

void WriteView(KeyWriter* key, const OwnedView& v, const TensorType& base, int value, bool conj = false, bool neg = false) {
  Access access;
  int64_t starts[kMaxRank];
  Analyse(v.view(), base, &access, starts);
  key->Tensor(v.view(), base, access, value, conj, neg);
}

TEST(KeyTest, ViewsComeBack) {
  RandomViews random(11);
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    TensorType base = random.Base();
    OwnedView v = i % 3 ? random.Chain(base) : random.Strided(base);
    Access access;
    int64_t starts[kMaxRank];
    Analyse(v.view(), base, &access, starts);
    KeyWriter key;
    key.Numerics(5);
    key.Record(77, 1, 0);
    key.Tensor(v.view(), base, access, 0, i & 1, i & 2);
    Graph g = Decoded(key);
    ASSERT_EQ(g.records.size(), 1u);
    ASSERT_EQ(g.arguments.size(), 1u);
    const Operand& o = g.records[0].args[0].tensors[0];
    EXPECT_EQ(g.records[0].numerics, 5u);
    EXPECT_EQ(g.records[0].op, 77u);
    EXPECT_TRUE(o.base == base) << o.base.ToHlo() << " for " << base.ToHlo();
    EXPECT_TRUE(g.arguments[0] == base);
    EXPECT_EQ(o.dtype, v.dtype);
    EXPECT_EQ(o.conj, (i & 1) != 0);
    EXPECT_EQ(o.neg, (i & 2) != 0);
    EXPECT_EQ(o.access.mode, access.mode);
    ASSERT_EQ(o.rank, v.sizes.size());
    for (size_t d = 0; d < v.sizes.size(); ++d) {
      EXPECT_EQ(o.sizes[d].size(), v.sizes[d]);
      // Of a size of 1 the stride says nothing.
      if (v.sizes[d] > 1) {
        EXPECT_EQ(o.strides[d], v.strides[d]) << v.ToString();
      }
    }
    if (access.mode == AccessMode::kSlice) {
      ASSERT_EQ(o.access.window_rank, access.window_rank);
      EXPECT_TRUE(std::equal(access.window, access.window + access.window_rank, o.access.window));
      EXPECT_TRUE(std::equal(access.map, access.map + o.rank, o.access.map));
      EXPECT_TRUE(std::equal(access.step, access.step + o.rank, o.access.step));
    }
    int expected = access.num_starts(v.view());
    EXPECT_EQ(g.records[0].num_raw, expected);
    EXPECT_EQ(o.first_start, expected ? 0 : -1);
  }
}

TEST(KeyTest, AttributesComeBack) {
  KeyWriter key;
  key.Numerics(0);
  key.Record(1, 14, 0);
  constexpr int64_t kBig = std::numeric_limits<int64_t>::min();
  key.None();
  key.Int(-3);
  key.Int(kBig);
  key.Int(int64_t{1} << 55);
  key.Bool(true);
  key.Double(-0.0);
  key.DTypeArg(DType::kBF16);
  key.Text("");
  key.Text("nine char");
  key.ListHeader(Tag::kIntList, 2);
  key.Word(int64_t{-1});
  key.Word(int64_t{7});
  key.ListHeader(Tag::kDoubleList, 1);
  key.Word(2.5);
  key.ListHeader(Tag::kBoolList, 0);
  key.Scalar(DType::kC128, 0);
  key.Scalar(DType::kI64, 0);
  Graph g = Decoded(key);
  const auto& a = g.records[0].args;
  ASSERT_EQ(a.size(), 14u);
  EXPECT_EQ(a[0].kind, ArgKind::kNone);
  EXPECT_EQ(a[1].i, -3);
  EXPECT_EQ(a[2].i, kBig);
  EXPECT_EQ(a[3].i, int64_t{1} << 55);
  EXPECT_EQ(a[4].i, 1);
  EXPECT_TRUE(std::signbit(a[5].d));
  EXPECT_EQ(a[6].dtype, DType::kBF16);
  EXPECT_EQ(a[7].text, "");
  EXPECT_EQ(a[8].text, "nine char");
  EXPECT_EQ(a[9].ints, (std::vector<int64_t>{-1, 7}));
  EXPECT_EQ(a[10].doubles, std::vector<double>{2.5});
  EXPECT_EQ(a[11].kind, ArgKind::kBoolList);
  EXPECT_EQ(a[12].raw, 0);
  EXPECT_EQ(a[13].raw, 2) << "a complex scalar takes two raw values";
  EXPECT_EQ(g.records[0].num_raw, 3);
}

TEST(KeyTest, ScalarsWithAClassTakeNoRawValue) {
  KeyWriter key;
  key.Numerics(0);
  key.Record(1, 2, 0);
  key.Scalar(DType::kF64, 3);
  key.HostTensor(DType::kF32, true);
  Graph g = Decoded(key);
  EXPECT_EQ(g.records[0].args[0].scalar_class, 3);
  EXPECT_EQ(g.records[0].args[0].raw, -1);
  EXPECT_EQ(g.records[0].args[1].raw, 0);
  EXPECT_TRUE(g.records[0].args[1].wrapped_number);
}

TEST(KeyTest, TargetsComeBack) {
  TensorType base(DType::kF32, {3, 4});
  KeyWriter key;
  key.Numerics(0);
  key.Record(1, 1, 2);
  key.WholeTensor(base, 0, false, false);
  key.TargetArgument(0, true);
  key.TargetOperand(true);
  OwnedView transposed{DType::kF32, {4, 3}, {1, 4}, 0};
  WriteView(&key, transposed, base, 1);
  Graph g = Decoded(key);
  ASSERT_EQ(g.records[0].targets.size(), 2u);
  EXPECT_EQ(g.records[0].targets[0].operand.value, 0);
  EXPECT_TRUE(g.records[0].targets[0].overwrites);
  EXPECT_EQ(g.records[0].targets[1].operand.value, 1);
  // The dense value of the transposed target is the base: its dimensions by falling stride.
  EXPECT_EQ(g.records[0].targets[1].order[0], 1);
  EXPECT_EQ(g.records[0].targets[1].order[1], 0);
}

TEST(KeyTest, UndefinedElementsOfListsComeBack) {
  KeyWriter key;
  key.Numerics(0);
  key.Record(1, 1, 0);
  key.ListHeader(Tag::kTensorList, 3);
  key.None();
  key.WholeTensor(TensorType(DType::kI64, {2}), 0, false, false);
  key.None();
  const Argument a = Decoded(key).records[0].args[0];
  ASSERT_EQ(a.tensors.size(), 3u);
  EXPECT_EQ(a.tensors[0].value, -1);
  EXPECT_EQ(a.tensors[1].value, 0);
  EXPECT_EQ(a.tensors[2].value, -1);
}

Fingerprint OfView(const OwnedView& v, const TensorType& base, int value = 0, bool conj = false, bool neg = false) {
  KeyWriter key;
  key.Numerics(0);
  key.Record(1, 1, 0);
  WriteView(&key, v, base, value, conj, neg);
  return key.fingerprint();
}

TEST(KeyTest, OffsetsAreNotInTheKeyButWhatTheyDoIs) {
  TensorType base(DType::kF32, {8, 5});
  OwnedView row{DType::kF32, {1, 5}, {5, 1}, 0};
  OwnedView other = row;
  other.offset = 35;
  EXPECT_TRUE(OfView(row, base) == OfView(other, base));
  // The same window begins inside a row: it no longer fits the base's dimensions.
  OwnedView crossing = row;
  crossing.offset = 3;
  EXPECT_FALSE(OfView(row, base) == OfView(crossing, base));
}

TEST(KeyTest, EverythingElseIsInTheKey) {
  TensorType base(DType::kF32, {4, 4});
  OwnedView v{DType::kF32, {2, 4}, {4, 1}, 4};
  std::vector<Fingerprint> seen{OfView(v, base)};
  auto add = [&](const Fingerprint& f) {
    for (const Fingerprint& s : seen) EXPECT_FALSE(s == f) << "difference " << seen.size() << " is not in the key";
    seen.push_back(f);
  };
  OwnedView changed = v;
  changed.sizes[0] = 1;
  add(OfView(changed, base));
  changed = v;
  changed.strides = {1, 4};
  add(OfView(changed, base));
  changed = v;
  changed.dtype = DType::kI32;
  add(OfView(changed, base));
  add(OfView(v, base.With(DType::kI32)));
  add(OfView(v, TensorType(DType::kF32, {5, 4})));
  add(OfView(v, base, 1));
  add(OfView(v, base, 0, true, false));
  add(OfView(v, base, 0, false, true));
}

}  // namespace
}  // namespace tpu::graph
