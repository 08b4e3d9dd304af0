// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using MatmulTest = LowerTest;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }

const HostTensor& A() {
  static const HostTensor a = HostTensor::Of(F32({2, 3}), {1, 2, 3, 4, 5, 6});
  return a;
}
const HostTensor& B() {
  static const HostTensor b = HostTensor::Of(F32({3, 2}), {1, 0, 0, 1, 1, 1});
  return b;
}

TEST_F(MatmulTest, Products) {
  ExpectValues(RecordBuilder("mm").Tensor(A()).Tensor(B()).Result(F32({2, 2})).Run().results[0], {4, 5, 10, 11});
  const HostTensor v = HostTensor::Of(F32({3}), {1, 1, 2});
  ExpectValues(RecordBuilder("mv").Tensor(A()).Tensor(v).Result(F32({2})).Run().results[0], {9, 21});
  ExpectValues(RecordBuilder("dot").Tensor(v).Tensor(v).Result(F32({})).Run().results[0], {6});
  const HostTensor a3{F32({1, 2, 3}), A().bytes}, b3{F32({1, 3, 2}), B().bytes};
  ExpectValues(RecordBuilder("bmm").Tensor(a3).Tensor(b3).Result(F32({1, 2, 2})).Run().results[0], {4, 5, 10, 11});
}

TEST_F(MatmulTest, NothingToContract) {
  const HostTensor a = HostTensor::Zeros(F32({2, 0})), b = HostTensor::Zeros(F32({0, 2}));
  ExpectValues(RecordBuilder("mm").Tensor(a).Tensor(b).Result(F32({2, 2})).Run().results[0], {0, 0, 0, 0});
}

TEST_F(MatmulTest, VdotConjugates) {
  const TensorType c(DType::kC64, {2});
  const HostTensor x = HostTensor::OfComplex(c, {{1, 2}, {0, 1}}), y = HostTensor::OfComplex(c, {{3, 0}, {0, 1}});
  const HostTensor r = RecordBuilder("vdot").Tensor(x).Tensor(y).Result(TensorType(DType::kC64, {})).Run().results[0];
  EXPECT_EQ(r.Get(0), std::complex<double>(4, -6));
}

TEST_F(MatmulTest, FactorsOfAddmm) {
  const HostTensor bias = HostTensor::Of(F32({2}), {100, 200}), nan = HostTensor::Of(F32({2}), {kNan, kNan});
  auto addmm = [&](const HostTensor& self, auto beta, auto alpha) {
    RecordBuilder r("addmm");
    r.Tensor(self).Tensor(A()).Tensor(B());
    beta(r);
    alpha(r);
    return r.Result(F32({2, 2})).Run().results[0];
  };
  auto one = [](RecordBuilder& r) { r.ScalarOfClass(1); };
  auto zero = [](RecordBuilder& r) { r.ScalarOfClass(2); };
  auto value = [](RecordBuilder& r) { r.Scalar(0.5); };
  ExpectValues(addmm(bias, one, one), {104, 205, 110, 211});
  ExpectValues(addmm(bias, value, one), {54, 105, 60, 111});
  ExpectValues(addmm(bias, one, value), {102, 202.5, 105, 205.5});
  // beta 0: what self holds is not read.
  ExpectValues(addmm(nan, zero, one), {4, 5, 10, 11});
  ExpectValues(addmm(bias, one, zero), {100, 200, 100, 200});
}

TEST_F(MatmulTest, NarrowFloatsRoundOnce) {
  const TensorType bf(DType::kBF16, {1, 512});
  const HostTensor ones = HostTensor::Of(bf, std::vector<double>(512, 1.0));
  const HostTensor column{TensorType(DType::kBF16, {512, 1}), ones.bytes};
  const HostTensor bias = HostTensor::Of(TensorType(DType::kBF16, {1}), {2});
  // 514 is not a bf16 number; 512 and 2 rounded apart would give 512 as well, 516 has to come from 512 + 4.
  const HostTensor four = HostTensor::Of(TensorType(DType::kBF16, {1}), {4});
  auto run = [&](const HostTensor& b) {
    return RecordBuilder("addmm")
        .Tensor(b)
        .Tensor(ones)
        .Tensor(column)
        .ScalarOfClass(1)
        .ScalarOfClass(1)
        .Result(TensorType(DType::kBF16, {1, 1}))
        .Run()
        .results[0];
  };
  ExpectValues(run(bias), {512});
  ExpectValues(run(four), {516});
}

// x' y, over the rows of both, for wide and for narrow x.
TEST_F(MatmulTest, TransposedLeftSide) {
  pjrt::EngineProfile profile;
  profile.transposed_left_dot_is_slow = true;
  for (int64_t batches : {2, 3}) {
    for (auto [m, n] : {std::pair<int64_t, int64_t>{30, 70}, {70, 30}, {40, 40}, {1, 3000}, {3, 2}}) {
      const int64_t k = 40;
      std::vector<double> a, b, expected;
      for (int64_t i = 0; i < batches * k * m; ++i) a.push_back(static_cast<double>(i % 7) - 3);
      for (int64_t i = 0; i < batches * k * n; ++i) b.push_back(static_cast<double>(i % 5) - 2);
      for (int64_t r = 0; r < batches * m; ++r) {
        for (int64_t column = 0; column < n; ++column) {
          double sum = 0;
          for (int64_t i = 0; i < k; ++i) sum += a[(r / m * k + i) * m + r % m] * b[(r / m * k + i) * n + column];
          expected.push_back(sum);
        }
      }
      const HostTensor x = HostTensor::Of(F32({batches, k, m}), a), y = HostTensor::Of(F32({batches, k, n}), b);
      const Geometry turned{DType::kF32, {batches, m, k}, {k * m, 1, m}};
      Outcome out = RecordBuilder("bmm").View(x, turned).Tensor(y).Result(F32({batches, m, n})).RunOn(profile);
      ExpectValues(out.results[0], expected);
      const bool worth_it = m > 1 && m * n * k >= 1 << 15;
      EXPECT_EQ(out.lowered.text.find("optimization_barrier") != std::string::npos, worth_it) << m << " by " << n;
    }
  }
}

TEST_F(MatmulTest, BatchSumAndOuter) {
  const HostTensor a = HostTensor::Of(F32({2, 1, 2}), {1, 2, 3, 4}), b = HostTensor::Of(F32({2, 2, 1}), {1, 1, 1, 1});
  const HostTensor zero = HostTensor::Of(F32({1, 1}), {0});
  ExpectValues(RecordBuilder("addbmm")
                   .Tensor(zero)
                   .Tensor(a)
                   .Tensor(b)
                   .ScalarOfClass(1)
                   .ScalarOfClass(1)
                   .Result(F32({1, 1}))
                   .Run()
                   .results[0],
               {10});
  const HostTensor u = HostTensor::Of(F32({2}), {1, 2}), v = HostTensor::Of(F32({2}), {3, 4});
  ExpectValues(RecordBuilder("addr")
                   .Tensor(zero)
                   .Tensor(u)
                   .Tensor(v)
                   .ScalarOfClass(2)
                   .ScalarOfClass(1)
                   .Result(F32({2, 2}))
                   .Run()
                   .results[0],
               {3, 4, 6, 8});
}

TEST_F(MatmulTest, Integers) {
  const TensorType t(DType::kI64, {2, 2});
  const HostTensor x = HostTensor::Of(t, {1, 2, 3, 4});
  ExpectValues(RecordBuilder("mm").Tensor(x).Tensor(x).Result(t).Run().results[0], {7, 10, 15, 22});
  const HostTensor bytes = HostTensor::Of(TensorType(DType::kI8, {2, 2}), {100, 100, 1, 1});
  ExpectValues(RecordBuilder("_int_mm").Tensor(bytes).Tensor(bytes).Result(TensorType(DType::kI32, {2, 2})).Run().results[0],
               {10100, 10100, 101, 101});
}

TEST(Matmul, OtherEnginesHaveNo64BitIntegerDot) {
  const TensorType t(DType::kI64, {2, 2});
  const HostTensor x = HostTensor::Of(t, {1, 2, 3, 4});
  pjrt::EngineProfile tpu;
  tpu.kind = pjrt::EngineKind::kTpu;
  auto lowered = RecordBuilder("mm").Tensor(x).Tensor(x).Result(t).Lower(tpu);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->text.find("dot_general"), std::string::npos);
}

TEST(Matmul, PrecisionFollowsTheSetting) {
  auto lowered = RecordBuilder("mm").Tensor(A()).Tensor(B()).Result(F32({2, 2})).Lower();
  ASSERT_TRUE(lowered.ok());
  EXPECT_NE(lowered->text.find("HIGHEST"), std::string::npos) << lowered->text;
}

}  // namespace
}  // namespace tpu::lower
