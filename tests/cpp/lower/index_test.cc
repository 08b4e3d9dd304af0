// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "cpp/lower/record_builder.h"
#include "cpp/lower/trap_text.h"

namespace tpu::lower {
namespace {

using IndexTest = LowerTest;

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }
TensorType I64(std::initializer_list<int64_t> dims) { return TensorType(DType::kI64, dims); }
TensorType Flags(std::initializer_list<int64_t> dims) { return TensorType(DType::kBool, dims); }
HostTensor Index(const std::vector<double>& v) { return HostTensor::Of(I64({static_cast<int64_t>(v.size())}), v); }

const HostTensor kUndefined;

TEST_F(IndexTest, SelectRowsAndColumns) {
  const HostTensor x = HostTensor::Range(F32({2, 3}));
  ExpectValues(RecordBuilder("index_select").Tensor(x).Int(-1).Tensor(Index({2, 0})).Result(F32({2, 2})).Run().results[0],
               {2, 0, 5, 3});
  auto rows = RecordBuilder("index_select").Tensor(x).Int(0).Tensor(Index({1, 2})).Result(F32({2, 3})).Run();
  EXPECT_EQ(TrapText(rows), "IndexError: index out of range in self");
  auto columns = RecordBuilder("index_select").Tensor(x).Int(1).Tensor(Index({-1})).Result(F32({2, 1})).Run();
  EXPECT_EQ(TrapText(columns), "RuntimeError: INDICES element is out of DATA bounds, id=-1 axis_dim=3");
}

TEST_F(IndexTest, GatherWithSmallerIndex) {
  const HostTensor x = HostTensor::Range(F32({2, 3})), index = HostTensor::Of(I64({1, 2}), {2, 0});
  Outcome out = RecordBuilder("gather").Tensor(x).Int(1).Tensor(index).Bool(false).Result(F32({1, 2})).Run();
  ExpectValues(out.results[0], {2, 0});
  EXPECT_EQ(TrapText(out), "");
  const HostTensor far = HostTensor::Of(I64({1, 2}), {2, 3});
  EXPECT_EQ(TrapText(RecordBuilder("gather").Tensor(x).Int(1).Tensor(far).Bool(false).Result(F32({1, 2})).Run()),
            "RuntimeError: index 3 is out of bounds for dimension 1 with size 3");
}

// Checks of many indices are made in slices; what they say does not change.
TEST_F(IndexTest, ChecksOfManyIndices) {
  const HostTensor x = HostTensor::Range(F32({7}));
  for (const bool slices : {false, true}) {
    pjrt::EngineProfile profile;
    profile.integer_reduce_is_scalar = slices;
    for (const DType dtype : {DType::kI64, DType::kI32}) {
      HostTensor index = HostTensor::Zeros(TensorType(dtype, {5003}));
      for (int64_t i = 0; i < 5003; ++i) index.SetInt(i, i % 14 - 7);
      const auto run = [&] { return RecordBuilder("take").Tensor(x).Tensor(index).Result(F32({5003})).RunOn(profile); };
      Outcome good = run();
      EXPECT_EQ(good.lowered.text.find("stablehlo.if") != std::string::npos, slices);
      EXPECT_EQ(TrapText(good), "");
      EXPECT_EQ(good.results[0].GetInt(5002), (5002 % 14) % 7);
      const std::string end = " on a tensor of 7 elements.", start = "IndexError: out of range: tried to access index ";
      for (const int64_t place : {int64_t{0}, int64_t{2500}, int64_t{5002}}) {
        for (const int64_t bad : {int64_t{7}, int64_t{-8}, int64_t{2147483645}, int64_t{-2147483648}}) {
          const int64_t kept = place % 14 - 7;
          index.SetInt(place, bad);
          EXPECT_EQ(TrapText(run()), start + std::to_string(bad) + end);
          index.SetInt(place, kept);
        }
      }
      if (dtype == DType::kI32) continue;
      for (const int64_t bad : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{1} << 32}) {
        index.SetInt(17, bad);
        EXPECT_NE(TrapText(run()), "");
      }
    }
  }
}

TEST_F(IndexTest, ScatterLeavesTheRestAlone) {
  const HostTensor x = HostTensor::Range(F32({2, 3})), index = HostTensor::Of(I64({1, 2}), {2, 0});
  const HostTensor src = HostTensor::Of(F32({2, 2}), {10, 20, 30, 40});
  ExpectValues(RecordBuilder("scatter.src").Tensor(x).Int(1).Tensor(index).Tensor(src).Result(F32({2, 3})).Run().results[0],
               {20, 1, 10, 3, 4, 5});
  ExpectValues(RecordBuilder("scatter.value").Tensor(x).Int(1).Tensor(index).Scalar(9).Result(F32({2, 3})).Run().results[0],
               {9, 1, 9, 3, 4, 5});
  ExpectValues(RecordBuilder("scatter_add").Tensor(x).Int(1).Tensor(index).Tensor(src).Result(F32({2, 3})).Run().results[0],
               {20, 1, 12, 3, 4, 5});
}

TEST_F(IndexTest, ScatterReduceWithAndWithoutSelf) {
  const HostTensor x = HostTensor::Of(F32({3}), {10, 20, 30}), src = HostTensor::Of(F32({3}), {2, 4, 8});
  auto reduce = [&](const char* how, bool self) {
    return RecordBuilder("scatter_reduce.two")
        .Tensor(x)
        .Int(0)
        .Tensor(Index({0, 0, 2}))
        .Tensor(src)
        .Text(how)
        .Bool(self)
        .Result(F32({3}))
        .Run()
        .results[0];
  };
  ExpectValues(reduce("sum", true), {16, 20, 38});
  ExpectValues(reduce("sum", false), {6, 20, 8});
  ExpectValues(reduce("mean", true), {16.0 / 3, 20, 19}, 1e-6);
  ExpectValues(reduce("mean", false), {3, 20, 8});
  ExpectValues(reduce("prod", false), {8, 20, 8});
  ExpectValues(reduce("amax", true), {10, 20, 30});
  ExpectValues(reduce("amin", false), {2, 20, 8});
}

TEST_F(IndexTest, IndexListsBroadcastAndWrap) {
  const HostTensor x = HostTensor::Range(F32({2, 3, 2}));
  // x[[1, 0], :, [-1]]: not adjacent, so the index dimension comes first.
  Outcome apart =
      RecordBuilder("index.Tensor").Tensor(x).TensorList({Index({1, 0}), kUndefined, Index({-1})}).Result(F32({2, 3})).Run();
  ExpectValues(apart.results[0], {7, 9, 11, 1, 3, 5});
  // x[:, [[0], [2]], [0, 1]]
  Outcome adjacent = RecordBuilder("index.Tensor")
                         .Tensor(x)
                         .TensorList({kUndefined, HostTensor::Of(I64({2, 1}), {0, 2}), Index({0, 1})})
                         .Result(F32({2, 2, 2}))
                         .Run();
  ExpectValues(adjacent.results[0], {0, 1, 4, 5, 6, 7, 10, 11});
  Outcome far = RecordBuilder("index.Tensor").Tensor(x).TensorList({kUndefined, Index({5})}).Result(F32({2, 1, 2})).Run();
  EXPECT_EQ(TrapText(far), "IndexError: index 5 is out of bounds for dimension 0 with size 3");
}

TEST_F(IndexTest, MasksThatReadGoToTheFallback) {
  auto lowered = RecordBuilder("index.Tensor")
                     .Tensor(HostTensor::Range(F32({2})))
                     .TensorList({HostTensor::Of(Flags({2}), {1, 0})})
                     .Result(F32({1}))
                     .Lower();
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.status().kind(), ErrorKind::kNotImplemented);
}

RecordBuilder Put(const HostTensor& x, const std::vector<HostTensor>& indices, const HostTensor& values, bool accumulate) {
  return RecordBuilder("_index_put_impl_")
      .Tensor(x)
      .TensorList(indices)
      .Tensor(values)
      .Bool(accumulate)
      .Bool(false)
      .Result(x.type);
}

TEST_F(IndexTest, PutReplacesAndAdds) {
  const HostTensor x = HostTensor::Range(F32({2, 3}));
  const HostTensor row = HostTensor::Of(F32({3}), {10, 20, 30});
  ExpectValues(Put(x, {Index({-1})}, row, false).Run().results[0], {0, 1, 2, 10, 20, 30});
  ExpectValues(Put(x, {Index({0, 0})}, row, true).Run().results[0], {20, 41, 62, 3, 4, 5});
  ExpectValues(Put(x, {kUndefined, Index({1})}, HostTensor::Of(F32({}), {9}), false).Run().results[0], {0, 9, 2, 3, 9, 5});
}

TEST_F(IndexTest, PutThroughMasks) {
  const HostTensor x = HostTensor::Range(F32({2, 3})), mask = HostTensor::Of(Flags({2, 3}), {0, 1, 1, 0, 0, 1});
  ExpectValues(Put(x, {mask}, HostTensor::Of(F32({}), {9}), false).Run().results[0], {0, 9, 9, 3, 4, 9});
  ExpectValues(Put(x, {mask}, HostTensor::Of(F32({3}), {7, 8, 9}), false).Run().results[0], {0, 7, 8, 3, 4, 9});
  ExpectValues(Put(x, {mask}, HostTensor::Of(F32({3}), {7, 8, 9}), true).Run().results[0], {0, 8, 10, 3, 4, 14});
  const HostTensor rows = HostTensor::Of(Flags({2}), {0, 1});
  ExpectValues(Put(x, {rows}, HostTensor::Of(F32({1, 3}), {7, 8, 9}), false).Run().results[0], {0, 1, 2, 7, 8, 9});
  EXPECT_EQ(TrapText(Put(x, {mask}, HostTensor::Of(F32({2}), {7, 8}), false).Run()),
            "RuntimeError: shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of shape [3]");
  EXPECT_EQ(TrapText(Put(x, {mask}, HostTensor::Of(F32({0}), {}), false).Run()),
            "RuntimeError: shape mismatch: value tensor of shape [0] cannot be broadcast to indexing result of shape [3]");
}

TEST_F(IndexTest, MaskedScatter) {
  const HostTensor x = HostTensor::Range(F32({4})), mask = HostTensor::Of(Flags({4}), {0, 1, 0, 1});
  auto run = [&](const std::vector<double>& source) {
    return RecordBuilder("masked_scatter")
        .Tensor(x)
        .Tensor(mask)
        .Tensor(HostTensor::Of(F32({static_cast<int64_t>(source.size())}), source))
        .Result(F32({4}))
        .Run();
  };
  ExpectValues(run({7, 8, 9}).results[0], {0, 7, 2, 8});
  EXPECT_EQ(TrapText(run({7})), "RuntimeError: Number of elements of source < number of ones in mask");
}

TEST_F(IndexTest, RowsAddedCopiedFilled) {
  const HostTensor x = HostTensor::Range(F32({3, 2})), rows = HostTensor::Of(F32({2, 2}), {10, 20, 30, 40});
  ExpectValues(RecordBuilder("index_add")
                   .Tensor(x)
                   .Int(0)
                   .Tensor(Index({2, 2}))
                   .Tensor(rows)
                   .Scalar(0.5)
                   .Result(F32({3, 2}))
                   .Run()
                   .results[0],
               {0, 1, 2, 3, 24, 35});
  ExpectValues(
      RecordBuilder("index_copy").Tensor(x).Int(0).Tensor(Index({2, 0})).Tensor(rows).Result(F32({3, 2})).Run().results[0],
      {30, 40, 2, 3, 10, 20});
  ExpectValues(RecordBuilder("index_fill.int_Scalar")
                   .Tensor(x)
                   .Int(1)
                   .Tensor(Index({-1}))
                   .Scalar(7)
                   .Result(F32({3, 2}))
                   .Run()
                   .results[0],
               {0, 7, 2, 7, 4, 7});
  EXPECT_EQ(TrapText(RecordBuilder("index_copy").Tensor(x).Int(0).Tensor(Index({3, 0})).Tensor(rows).Result(F32({3, 2})).Run()),
            "IndexError: index_copy_(): index 3 is out of bounds for dimension 0 with size 3");
}

TEST_F(IndexTest, TakeAndPutCountInFlatElements) {
  const HostTensor x = HostTensor::Range(F32({2, 3}));
  Outcome out = RecordBuilder("take").Tensor(x).Tensor(Index({-1, 4})).Result(F32({2})).Run();
  ExpectValues(out.results[0], {5, 4});
  EXPECT_EQ(TrapText(RecordBuilder("take").Tensor(x).Tensor(Index({6})).Result(F32({1})).Run()),
            "IndexError: out of range: tried to access index 6 on a tensor of 6 elements.");
  ExpectValues(RecordBuilder("put")
                   .Tensor(x)
                   .Tensor(Index({-6, 0}))
                   .Tensor(HostTensor::Of(F32({2}), {7, 8}))
                   .Bool(true)
                   .Result(F32({2, 3}))
                   .Run()
                   .results[0],
               {15, 1, 2, 3, 4, 5});
}

TEST_F(IndexTest, EmbeddingAndItsGradient) {
  const HostTensor w = HostTensor::Range(F32({3, 2})), index = HostTensor::Of(TensorType(DType::kI32, {1, 3}), {2, 0, 2});
  Outcome out = RecordBuilder("embedding").Tensor(w).Tensor(index).Int(-1).Bool(false).Bool(false).Result(F32({1, 3, 2})).Run();
  ExpectValues(out.results[0], {4, 5, 0, 1, 4, 5});
  const HostTensor grad = HostTensor::Of(F32({1, 3, 2}), {1, 2, 3, 4, 5, 6});
  auto backward = [&](int padding, bool by_frequency) {
    return RecordBuilder("embedding_dense_backward")
        .Tensor(grad)
        .Tensor(index)
        .Int(3)
        .Int(padding)
        .Bool(by_frequency)
        .Result(F32({3, 2}))
        .Run()
        .results[0];
  };
  ExpectValues(backward(-1, false), {3, 4, 0, 0, 6, 8});
  ExpectValues(backward(0, false), {0, 0, 0, 0, 6, 8});
  ExpectValues(backward(-1, true), {3, 4, 0, 0, 3, 4});
  const HostTensor far = HostTensor::Of(I64({1}), {3});
  EXPECT_EQ(
      TrapText(RecordBuilder("embedding").Tensor(w).Tensor(far).Int(-1).Bool(false).Bool(false).Result(F32({1, 2})).Run()),
      "IndexError: index out of range in self");
}

}  // namespace
}  // namespace tpu::lower
