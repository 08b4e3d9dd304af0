// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cpp/lower/record_builder.h"
#include "cpp/lower/trap_text.h"

namespace tpu::lower {
namespace {

using RandomTest = LowerTest;

constexpr int64_t kCount = 20000;

TensorType Of(DType d, int64_t n = kCount) { return TensorType(d, {n}); }
HostTensor Empty(DType d, int64_t n = kCount) { return HostTensor::Zeros(Of(d, n)); }

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

Moments MomentsOf(const HostTensor& t) {
  const std::vector<double> v = t.Numbers();
  Moments m;
  for (double x : v) m.mean += x / static_cast<double>(v.size());
  for (double x : v) m.deviation += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  m.deviation = std::sqrt(m.deviation);
  m.low = *std::min_element(v.begin(), v.end());
  m.high = *std::max_element(v.begin(), v.end());
  return m;
}

// The largest distance of the empirical distribution from `cdf`; 1.63 / sqrt(n) is passed by 1 % of good samples.
double Distance(const HostTensor& t, double (*cdf)(double)) {
  std::vector<double> v = t.Numbers();
  std::sort(v.begin(), v.end());
  double d = 0;
  const double n = static_cast<double>(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    d = std::max(d, std::abs(cdf(v[i]) - static_cast<double>(i + 1) / n));
    d = std::max(d, std::abs(cdf(v[i]) - static_cast<double>(i) / n));
  }
  return d * std::sqrt(n);
}

TEST_F(RandomTest, UniformStaysInItsRange) {
  for (DType d : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    const HostTensor u = RecordBuilder("uniform_").Tensor(Empty(d)).Scalar(-3.0).Scalar(5.0).Result(Of(d)).Run(7).results[0];
    const Moments m = MomentsOf(u);
    EXPECT_NEAR(m.mean, 1, 0.06) << HloName(d);
    EXPECT_NEAR(m.deviation, 8 / std::sqrt(12.0), 0.04) << HloName(d);
    EXPECT_GE(m.low, -3);
    EXPECT_LT(m.high, 5);
  }
  const HostTensor u =
      RecordBuilder("uniform_").Tensor(Empty(DType::kF32)).Scalar(0.0).Scalar(1.0).Result(Of(DType::kF32)).Run(9).results[0];
  EXPECT_LT(Distance(u, [](double x) { return x; }), 2.0);
}

TEST_F(RandomTest, UniformChecksItsRange) {
  Outcome out =
      RecordBuilder("uniform_").Tensor(Empty(DType::kF32, 4)).Scalar(2.0).Scalar(1.0).Result(Of(DType::kF32, 4)).Run();
  EXPECT_EQ(TrapText(out), "RuntimeError: uniform_ expects to return a [from, to) range, but found from > to");
}

TEST_F(RandomTest, NormalFollowsItsDistribution) {
  for (DType d : {DType::kF32, DType::kF64}) {
    const HostTensor z = RecordBuilder("normal_").Tensor(Empty(d)).Scalar(0.0).Scalar(1.0).Result(Of(d)).Run(11).results[0];
    EXPECT_LT(Distance(z, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }), 2.0) << HloName(d);
  }
  const Moments m = MomentsOf(
      RecordBuilder("normal_").Tensor(Empty(DType::kBF16)).Scalar(5.0).Scalar(2.0).Result(Of(DType::kBF16)).Run(12).results[0]);
  EXPECT_NEAR(m.mean, 5, 0.06);
  EXPECT_NEAR(m.deviation, 2, 0.05);
}

TEST_F(RandomTest, SeedAndOffsetDecideTheNumbers) {
  auto run = [](uint64_t seed, uint64_t offset) {
    return RecordBuilder("normal_")
        .Tensor(Empty(DType::kF32, 8))
        .Scalar(0.0)
        .Scalar(1.0)
        .Result(Of(DType::kF32, 8))
        .Run(seed, offset)
        .results[0]
        .Numbers();
  };
  EXPECT_EQ(run(1, 0), run(1, 0));
  EXPECT_NE(run(1, 0), run(2, 0));
  const std::vector<double> first = run(1, 0), later = run(1, 3);
  EXPECT_TRUE(std::equal(later.begin(), later.begin() + 5, first.begin() + 3));
}

TEST_F(RandomTest, RefusedParametersGoToTheFallback) {
  auto kind = [](const Result<Lowered>& r) { return r.ok() ? ErrorKind::kOk : r.status().kind(); };
  const HostTensor x = Empty(DType::kF32, 4);
  const TensorType t = Of(DType::kF32, 4);
  EXPECT_EQ(kind(RecordBuilder("normal_").Tensor(x).Double(0).Double(-1).Result(t).Lower()), ErrorKind::kNotImplemented);
  EXPECT_EQ(kind(RecordBuilder("normal_").Tensor(x).Double(-1).Double(0).Result(t).Lower()), ErrorKind::kOk);
  EXPECT_EQ(kind(RecordBuilder("bernoulli_.float").Tensor(x).Double(1.5).Result(t).Lower()), ErrorKind::kNotImplemented);
  EXPECT_EQ(kind(RecordBuilder("exponential_").Tensor(x).Double(0).Result(t).Lower()), ErrorKind::kNotImplemented);
  EXPECT_EQ(kind(RecordBuilder("random_.from").Tensor(x).Int(5).Int(5).Result(t).Lower()), ErrorKind::kNotImplemented);
}

TEST_F(RandomTest, ExponentialAndGeometric) {
  const HostTensor e =
      RecordBuilder("exponential_").Tensor(Empty(DType::kF32)).Scalar(1.0).Result(Of(DType::kF32)).Run(3).results[0];
  EXPECT_LT(Distance(e, [](double x) { return 1 - std::exp(-x); }), 2.0);
  EXPECT_GT(MomentsOf(e).low, 0);
  const Moments g =
      MomentsOf(RecordBuilder("geometric_").Tensor(Empty(DType::kF32)).Scalar(0.25).Result(Of(DType::kF32)).Run(4).results[0]);
  EXPECT_NEAR(g.mean, 4, 0.1);
  EXPECT_EQ(g.low, 1);
}

TEST_F(RandomTest, BernoulliAtItsEnds) {
  auto share = [](double p) {
    return MomentsOf(
               RecordBuilder("bernoulli_.float").Tensor(Empty(DType::kF32)).Scalar(p).Result(Of(DType::kF32)).Run(5).results[0])
        .mean;
  };
  EXPECT_EQ(share(0), 0);
  EXPECT_NEAR(share(1), 1, 1e-9);
  EXPECT_NEAR(share(0.3), 0.3, 0.015);
  const HostTensor p = HostTensor::Of(Of(DType::kF32, 2), {0, 1});
  ExpectValues(RecordBuilder("bernoulli").Tensor(p).Result(p.type).Run(6).results[0], {0, 1});
  const HostTensor bad = HostTensor::Of(Of(DType::kF32, 1), {1.5});
  EXPECT_EQ(TrapText(RecordBuilder("bernoulli").Tensor(bad).Result(bad.type).Run(6))
                .rfind("RuntimeError: Expected p_in >= 0 && p_in <= 1", 0),
            0u);
}

TEST_F(RandomTest, DropoutScalesWhatItKeeps) {
  const HostTensor x = HostTensor::Of(Of(DType::kF32), std::vector<double>(kCount, 3.0));
  auto run = [&](double p, bool train) {
    return RecordBuilder("native_dropout").Tensor(x).Scalar(p).Bool(train).Result(x.type).Result(Of(DType::kBool)).Run(8);
  };
  Outcome half = run(0.25, true);
  const std::vector<double> y = half.results[0].Numbers(), mask = half.results[1].Numbers();
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], mask[i] ? 4.0 : 0.0, 1e-6);
  EXPECT_NEAR(MomentsOf(half.results[1]).mean, 0.75, 0.015);
  EXPECT_EQ(MomentsOf(run(1, true).results[0]).high, 0);
  EXPECT_EQ(run(0.5, false).results[0].Numbers(), x.Numbers());
}

TEST_F(RandomTest, IntegersCoverTheirRange) {
  auto range = [](DType d, int64_t from, int64_t to) {
    return MomentsOf(RecordBuilder("random_.from").Tensor(Empty(d)).Int(from).Int(to).Result(Of(d)).Run(10).results[0]);
  };
  const Moments ten = range(DType::kI64, -3, 7);
  EXPECT_EQ(ten.low, -3);
  EXPECT_EQ(ten.high, 6);
  EXPECT_NEAR(ten.mean, 1.5, 0.08);
  const double wide = static_cast<double>(int64_t{3} << 40);
  EXPECT_NEAR(range(DType::kI64, 0, int64_t{3} << 40).mean / wide, 0.5, 0.01);
  EXPECT_NEAR(range(DType::kI64, 0, int64_t{3} << 31).mean / static_cast<double>(int64_t{3} << 31), 0.5, 0.01);
  const Moments bytes = MomentsOf(RecordBuilder("random_").Tensor(Empty(DType::kU8)).Result(Of(DType::kU8)).Run(10).results[0]);
  EXPECT_EQ(bytes.low, 0);
  EXPECT_EQ(bytes.high, 255);
}

TEST_F(RandomTest, PermutationsHoldEveryNumber) {
  const HostTensor p = RecordBuilder("randperm").Int(1000).Result(Of(DType::kI64, 1000)).Run(13).results[0];
  const std::vector<double> v = p.Numbers();
  EXPECT_EQ(std::set<double>(v.begin(), v.end()).size(), 1000u);
  EXPECT_FALSE(std::is_sorted(v.begin(), v.end()));
}

TEST_F(RandomTest, MultinomialFollowsTheWeights) {
  const HostTensor w = HostTensor::Of(TensorType(DType::kF32, {4}), {1, 0, 4, 5});
  const HostTensor drawn =
      RecordBuilder("multinomial").Tensor(w).Int(kCount).Bool(true).Result(Of(DType::kI64)).Run(14).results[0];
  double count[4] = {};
  for (double k : drawn.Numbers()) count[static_cast<int>(k)] += 1.0 / kCount;
  EXPECT_NEAR(count[0], 0.1, 0.015);
  EXPECT_EQ(count[1], 0);
  EXPECT_NEAR(count[3], 0.5, 0.02);
  const HostTensor once =
      RecordBuilder("multinomial").Tensor(w).Int(3).Bool(false).Result(Of(DType::kI64, 3)).Run(15).results[0];
  const std::vector<double> v = once.Numbers();
  EXPECT_EQ(std::set<double>(v.begin(), v.end()), (std::set<double>{0, 2, 3}));
  const HostTensor negative = HostTensor::Of(TensorType(DType::kF32, {2}), {-1, 2});
  EXPECT_EQ(TrapText(RecordBuilder("multinomial").Tensor(negative).Int(1).Bool(false).Result(Of(DType::kI64, 1)).Run()),
            "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0");
}

}  // namespace
}  // namespace tpu::lower
