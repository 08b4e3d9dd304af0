// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using ReduceTest = LowerTest;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }
TensorType I64(std::initializer_list<int64_t> dims) { return TensorType(DType::kI64, dims); }

RecordBuilder OverDims(const char* op, const HostTensor& x, std::vector<int64_t> dims, bool keep = false) {
  RecordBuilder r(op);
  r.Tensor(x).IntList(std::move(dims)).Bool(keep);
  return r;
}

TEST_F(ReduceTest, SumOverDims) {
  const HostTensor x = HostTensor::Range(F32({2, 3}));
  ExpectValues(OverDims("sum.dim_IntList", x, {1}).None().Result(F32({2})).Run().results[0], {3, 12});
  ExpectValues(OverDims("sum.dim_IntList", x, {-2}, true).None().Result(F32({1, 3})).Run().results[0], {3, 5, 7});
  ExpectValues(OverDims("sum.dim_IntList", x, {}).None().Result(F32({})).Run().results[0], {15});
  ExpectValues(RecordBuilder("sum").Tensor(x).None().Result(F32({})).Run().results[0], {15});
}

TEST_F(ReduceTest, SumOfScalarAndOfNothing) {
  const HostTensor one = HostTensor::Of(F32({}), {5});
  ExpectValues(OverDims("sum.dim_IntList", one, {0}).None().Result(F32({})).Run().results[0], {5});
  const HostTensor none = HostTensor::Zeros(F32({0, 2}));
  ExpectValues(OverDims("sum.dim_IntList", none, {0}).None().Result(F32({2})).Run().results[0], {0, 0});
  ExpectValues(OverDims("mean.dim", none, {0}).None().Result(F32({2})).Run().results[0], {kNan, kNan});
}

TEST_F(ReduceTest, NarrowFloatsAccumulateInFloat32) {
  // 4096 ones: a bf16 accumulator would stop at 256.
  HostTensor x = HostTensor::Of(TensorType(DType::kBF16, {4096}), std::vector<double>(4096, 1.0));
  ExpectValues(RecordBuilder("sum").Tensor(x).None().Result(TensorType(DType::kBF16, {})).Run().results[0], {4096});
}

// Large enough to become products with ones, whatever the plugin at hand prefers.
TEST_F(ReduceTest, SumsAsProducts) {
  pjrt::EngineProfile profile;
  profile.sum_as_dot_width = 512;
  HostTensor x = HostTensor::Of(F32({3, 8, 1000}), std::vector<double>(24000, 0.5));
  x.Set(0, 1.0);
  x.Set(8000, kInf);
  x.Set(16000, kNan);
  Outcome rows = OverDims("sum.dim_IntList", x, {1, 2}).None().Result(F32({3})).RunOn(profile);
  EXPECT_NE(rows.lowered.text.find("dot_general"), std::string::npos);
  ExpectValues(rows.results[0], {4000.5, kInf, kNan});
  x.Set(8000, -1.0);
  x.Set(16000, 0.5);
  ExpectValues(RecordBuilder("sum").Tensor(x).None().Result(F32({})).RunOn(profile).results[0], {11999});
  // Not the last dimensions, or no width that divides them.
  Outcome columns = OverDims("sum.dim_IntList", x, {0, 1}).None().Result(F32({1000})).RunOn(profile);
  EXPECT_EQ(columns.lowered.text.find("dot_general"), std::string::npos);
  const HostTensor prime = HostTensor::Of(F32({16411}), std::vector<double>(16411, 1.0));
  ExpectValues(RecordBuilder("sum").Tensor(prime).None().Result(F32({})).RunOn(profile).results[0], {16411});
}

TEST_F(ReduceTest, SumsOverLeadingDimsInSlices) {
  pjrt::EngineProfile profile;
  profile.column_sum_slices = 8;
  HostTensor x = HostTensor::Of(F32({8, 100, 3}), std::vector<double>(2400, 0.5));
  x.Set(0, 1.0);
  x.Set(1201, kInf);
  x.Set(2399, kNan);
  Outcome sums = OverDims("sum.dim_IntList", x, {0, 1}).None().Result(F32({3})).RunOn(profile);
  EXPECT_NE(sums.lowered.text.find("tensor<8x100x3xf32>"), std::string::npos);
  EXPECT_NE(sums.lowered.text.find("optimization_barrier"), std::string::npos);
  ExpectValues(sums.results[0], {400.5, kInf, kNan});
  // Not a multiple of the slices, and too few rows.
  for (int64_t rows : {1001, 64}) {
    const HostTensor ones = HostTensor::Of(F32({rows, 2}), std::vector<double>(static_cast<size_t>(rows) * 2, 1.0));
    Outcome plain = OverDims("sum.dim_IntList", ones, {0}).None().Result(F32({2})).RunOn(profile);
    EXPECT_EQ(plain.lowered.text.find("optimization_barrier"), std::string::npos);
    ExpectValues(plain.results[0], {static_cast<double>(rows), static_cast<double>(rows)});
  }
}

TEST_F(ReduceTest, SumsOverMixedDimsFromTheInsideOut) {
  pjrt::EngineProfile profile;
  profile.sum_as_dot_width = 512;
  HostTensor x = HostTensor::Of(F32({4, 2, 3000}), std::vector<double>(24000, 0.25));
  x.Set(0, 1.25);
  Outcome sums = OverDims("sum.dim_IntList", x, {0, 2}).None().Result(F32({2})).RunOn(profile);
  EXPECT_NE(sums.lowered.text.find("dot_general"), std::string::npos);
  ExpectValues(sums.results[0], {3001, 3000});
}

TEST_F(ReduceTest, SumsOfSmallIntegersAre64Bit) {
  const HostTensor bools = HostTensor::Of(TensorType(DType::kBool, {4}), {1, 0, 1, 1});
  ExpectValues(RecordBuilder("sum").Tensor(bools).None().Result(I64({})).Run().results[0], {3});
  const HostTensor bytes = HostTensor::Of(TensorType(DType::kU8, {3}), {200, 255, 1});
  ExpectValues(RecordBuilder("sum").Tensor(bytes).None().Result(I64({})).Run().results[0], {456});
  const HostTensor big = HostTensor::Of(TensorType(DType::kI32, {2}), {2147483647, 2147483647});
  ExpectValues(RecordBuilder("sum").Tensor(big).None().Result(I64({})).Run().results[0], {4294967294.0});
}

TEST_F(ReduceTest, MeanIsExactlyRounded) {
  const HostTensor x = HostTensor::Of(F32({3}), {1, 2, 4});
  ExpectValues(RecordBuilder("mean").Tensor(x).None().Result(F32({})).Run().results[0], {static_cast<double>(7.0f / 3.0f)});
}

TEST_F(ReduceTest, ExtremesCarryNan) {
  const HostTensor x = HostTensor::Of(F32({3, 3}), {1, kNan, 3, -kInf, 2, kInf, 5, 4, 6});
  ExpectValues(OverDims("amax", x, {1}).Result(F32({3})).Run().results[0], {kNan, kInf, 6});
  ExpectValues(OverDims("amin", x, {1}).Result(F32({3})).Run().results[0], {kNan, -kInf, 4});
  ExpectValues(RecordBuilder("max").Tensor(x).Result(F32({})).Run().results[0], {kNan});
  Outcome both = RecordBuilder("aminmax").Tensor(x).Int(0).Bool(false).Result(F32({3})).Result(F32({3})).Run();
  ExpectValues(both.results[0], {-kInf, kNan, 3});
  ExpectValues(both.results[1], {5, kNan, kInf});
}

TEST_F(ReduceTest, ExtremesWithIndexTakeTheFirst) {
  const HostTensor x = HostTensor::Of(F32({3, 4}), {1, 7, 7, 2, 0, kNan, 9, kNan, -1, -1, -5, -5});
  Outcome max = RecordBuilder("max.dim").Tensor(x).Int(1).Bool(false).Result(F32({3})).Result(I64({3})).Run();
  ExpectValues(max.results[0], {7, kNan, -1});
  ExpectValues(max.results[1], {1, 1, 0});
  Outcome min = RecordBuilder("min.dim").Tensor(x).Int(-1).Bool(true).Result(F32({3, 1})).Result(I64({3, 1})).Run();
  ExpectValues(min.results[1], {0, 1, 2});
  ExpectValues(RecordBuilder("argmax").Tensor(x).None().Bool(false).Result(I64({})).Run().results[0], {5});
  const HostTensor n = HostTensor::Of(TensorType(DType::kU8, {3}), {200, 255, 255});
  ExpectValues(RecordBuilder("argmax").Tensor(n).Int(0).Bool(false).Result(I64({})).Run().results[0], {1});
}

TEST_F(ReduceTest, TestsAndCounts) {
  const HostTensor x = HostTensor::Of(F32({2, 3}), {1, kNan, 0, 0, 0, 0});
  const TensorType flags(DType::kBool, {2});
  ExpectValues(RecordBuilder("any.dim").Tensor(x).Int(1).Bool(false).Result(flags).Run().results[0], {1, 0});
  ExpectValues(RecordBuilder("all.dim").Tensor(x).Int(1).Bool(false).Result(flags).Run().results[0], {0, 0});
  ExpectValues(RecordBuilder("count_nonzero.dim_IntList").Tensor(x).IntList({1}).Result(I64({2})).Run().results[0], {2, 0});
}

TEST_F(ReduceTest, Variance) {
  const HostTensor x = HostTensor::Of(F32({4}), {1001, 1002, 1003, 1006});
  auto var = [&](double correction) {
    return RecordBuilder("var.correction").Tensor(x).None().Double(correction).Bool(false).Result(F32({})).Run().results[0];
  };
  ExpectValues(var(1), {14.0 / 3}, 1e-6);
  ExpectValues(var(0), {3.5}, 1e-6);
  ExpectValues(var(7), {kInf});
  Outcome both = RecordBuilder("std_mean.correction").Tensor(x).None().None().Bool(false).Result(F32({})).Result(F32({})).Run();
  ExpectValues(both.results[0], {std::sqrt(14.0 / 3)}, 1e-6);
  ExpectValues(both.results[1], {1003});
}

TEST_F(ReduceTest, NormsByClass) {
  const HostTensor x = HostTensor::Of(F32({4}), {3, -4, 0, 12});
  auto norm = [&](RecordBuilder r) { return r.None().Bool(false).None().Result(F32({})).Run().results[0]; };
  auto of = [&] { return RecordBuilder("linalg_vector_norm").Tensor(x); };
  ExpectValues(norm(of().ScalarOfClass(1)), {19});
  ExpectValues(norm(of().ScalarOfClass(2)), {13});
  ExpectValues(norm(of().ScalarOfClass(3)), {3});
  ExpectValues(norm(of().ScalarOfClass(4)), {12});
  ExpectValues(norm(of().ScalarOfClass(5)), {0});
  ExpectValues(norm(of().Scalar(3.0)), {std::cbrt(27.0 + 64 + 1728)}, 1e-6);
  ExpectValues(norm(of().Double(2)), {13});
}

TEST_F(ReduceTest, LogSumExpOfInfinities) {
  const HostTensor x = HostTensor::Of(F32({3, 2}), {-kInf, -kInf, kInf, 1, 1000, 1000});
  ExpectValues(OverDims("logsumexp", x, {1}).Result(F32({3})).Run().results[0], {-kInf, kInf, 1000 + std::log(2.0)}, 1e-6);
}

TEST_F(ReduceTest, Scans) {
  for (int64_t n : {5, 100, 1000}) {
    std::vector<double> ones(static_cast<size_t>(2 * n), 1), sums;
    for (int64_t i = 0; i < 2 * n; ++i) sums.push_back(static_cast<double>(i % n + 1));
    const HostTensor x = HostTensor::Of(F32({2, n}), ones);
    ExpectValues(RecordBuilder("cumsum").Tensor(x).Int(1).None().Result(F32({2, n})).Run().results[0], sums);
    const HostTensor y = HostTensor::Of(I64({2, n}), ones);
    ExpectValues(RecordBuilder("cumsum").Tensor(y).Int(-1).None().Result(I64({2, n})).Run().results[0], sums);
  }
  const HostTensor x = HostTensor::Of(F32({3, 2}), {1, 2, 3, 4, 5, 6});
  ExpectValues(RecordBuilder("cumprod").Tensor(x).Int(0).None().Result(F32({3, 2})).Run().results[0], {1, 2, 3, 8, 15, 48});
}

TEST(Reduce, ScansOfOtherEnginesUseWindows) {
  const HostTensor x = HostTensor::Zeros(F32({100}));
  pjrt::EngineProfile tpu;
  tpu.kind = pjrt::EngineKind::kTpu;
  auto lowered = RecordBuilder("cumsum").Tensor(x).Int(0).None().Result(F32({100})).Lower(tpu);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_NE(lowered->text.find("reduce_window"), std::string::npos);
  EXPECT_EQ(lowered->text.find("stablehlo.while"), std::string::npos);
}

}  // namespace
}  // namespace tpu::lower
