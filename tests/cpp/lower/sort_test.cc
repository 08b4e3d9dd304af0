// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using SortTest = LowerTest;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Outcome Sort(const HostTensor& x, int dim, bool descending) {
  return RecordBuilder("sort.stable")
      .Tensor(x)
      .Bool(true)
      .Int(dim)
      .Bool(descending)
      .Result(x.type)
      .Result(x.type.With(DType::kI64))
      .Run();
}

TEST_F(SortTest, NanIsGreatestAndTiesKeepTheirOrder) {
  for (DType d : {DType::kF32, DType::kBF16, DType::kF64}) {
    const HostTensor x = HostTensor::Of(TensorType(d, {7}), {2, kNan, -kInf, 2, -0.0, 0.0, -kNan});
    Outcome up = Sort(x, 0, false);
    ExpectValues(up.results[0], {-kInf, 0, 0, 2, 2, kNan, kNan});
    ExpectValues(up.results[1], {2, 4, 5, 0, 3, 1, 6});
    Outcome down = Sort(x, 0, true);
    ExpectValues(down.results[0], {kNan, kNan, 2, 2, 0, 0, -kInf});
    ExpectValues(down.results[1], {1, 6, 0, 3, 4, 5, 2});
  }
}

TEST_F(SortTest, Integers) {
  ExpectValues(Sort(HostTensor::Of(TensorType(DType::kI32, {3}), {-2147483648.0, 2147483647, 0}), 0, true).results[1],
               {1, 2, 0});
  ExpectValues(Sort(HostTensor::Of(TensorType(DType::kU8, {3}), {200, 3, 255}), 0, false).results[0], {3, 200, 255});
  ExpectValues(Sort(HostTensor::Of(TensorType(DType::kI64, {3}), {5e12, -5e12, 1}), 0, false).results[1], {1, 2, 0});
  ExpectValues(Sort(HostTensor::Of(TensorType(DType::kBool, {4}), {1, 0, 1, 0}), 0, false).results[1], {1, 3, 0, 2});
}

TEST_F(SortTest, AlongTheFirstDimension) {
  const HostTensor x = HostTensor::Of(TensorType(DType::kF32, {3, 2}), {3, 1, 1, 2, 2, 0});
  Outcome out = Sort(x, 0, false);
  ExpectValues(out.results[0], {1, 0, 2, 1, 3, 2});
  ExpectValues(out.results[1], {1, 2, 2, 0, 0, 1});
}

TEST_F(SortTest, TopK) {
  auto top = [](const HostTensor& x, int k, int dim, bool largest, const TensorType& type) {
    return RecordBuilder("topk")
        .Tensor(x)
        .Int(k)
        .Int(dim)
        .Bool(largest)
        .Bool(true)
        .Result(type)
        .Result(type.With(DType::kI64))
        .Run();
  };
  const HostTensor x = HostTensor::Of(TensorType(DType::kF32, {5}), {1, -kNan, 3, -kInf, kInf});
  Outcome largest = top(x, 3, 0, true, TensorType(DType::kF32, {3}));
  ExpectValues(largest.results[0], {kNan, kInf, 3});
  ExpectValues(largest.results[1], {1, 4, 2});
  Outcome smallest = top(x, 5, 0, false, TensorType(DType::kF32, {5}));
  ExpectValues(smallest.results[0], {-kInf, 1, 3, kInf, kNan});
  ExpectValues(smallest.results[1], {3, 0, 2, 4, 1});
  const HostTensor n = HostTensor::Of(TensorType(DType::kI64, {2, 2}), {1, 4, 3, 2});
  ExpectValues(top(n, 1, 0, true, TensorType(DType::kI64, {1, 2})).results[1], {1, 0});
}

TEST_F(SortTest, RankStatistics) {
  const HostTensor x = HostTensor::Of(TensorType(DType::kF32, {2, 4}), {4, 1, 3, 2, 1, kNan, 5, kNan});
  const TensorType values(DType::kF32, {2}), positions(DType::kI64, {2});
  Outcome third = RecordBuilder("kthvalue").Tensor(x).Int(3).Int(1).Bool(false).Result(values).Result(positions).Run();
  ExpectValues(third.results[0], {3, kNan});
  ExpectValues(third.results[1], {2, 1});
  Outcome median = RecordBuilder("median.dim").Tensor(x).Int(1).Bool(false).Result(values).Result(positions).Run();
  ExpectValues(median.results[0], {2, kNan});
  ExpectValues(median.results[1], {3, 1});
  Outcome without = RecordBuilder("nanmedian.dim").Tensor(x).Int(1).Bool(false).Result(values).Result(positions).Run();
  ExpectValues(without.results[0], {2, 1});
  ExpectValues(RecordBuilder("median").Tensor(x).Result(TensorType(DType::kF32, {})).Run().results[0], {kNan});
  ExpectValues(RecordBuilder("nanmedian").Tensor(x).Result(TensorType(DType::kF32, {})).Run().results[0], {2});
}

TEST(Sort, OtherEnginesSortPairs) {
  const HostTensor x = HostTensor::Zeros(TensorType(DType::kF32, {8}));
  pjrt::EngineProfile tpu;
  tpu.kind = pjrt::EngineKind::kTpu;
  auto lowered =
      RecordBuilder("sort").Tensor(x).Int(0).Bool(false).Result(x.type).Result(TensorType(DType::kI64, {8})).Lower(tpu);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->text.find("gather"), std::string::npos);
}

}  // namespace
}  // namespace tpu::lower
