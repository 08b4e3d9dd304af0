// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using NormalizeTest = LowerTest;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }

TEST_F(NormalizeTest, Softmax) {
  const double e = std::exp(1.0);
  const HostTensor x = HostTensor::Of(F32({2, 2}), {1000, 1001, 0, 0});
  ExpectValues(RecordBuilder("_softmax").Tensor(x).Int(-1).Bool(false).Result(F32({2, 2})).Run().results[0],
               {1 / (1 + e), e / (1 + e), 0.5, 0.5}, 1e-6);
  ExpectValues(RecordBuilder("_log_softmax").Tensor(x).Int(1).Bool(false).Result(F32({2, 2})).Run().results[0],
               {-std::log(1 + e), 1 - std::log(1 + e), -std::log(2.0), -std::log(2.0)}, 1e-6);
  const HostTensor scalar = HostTensor::Of(F32({}), {3});
  ExpectValues(RecordBuilder("_softmax").Tensor(scalar).Int(0).Bool(false).Result(F32({})).Run().results[0], {1});
}

TEST_F(NormalizeTest, MaskedRows) {
  const HostTensor x = HostTensor::Of(F32({3, 2}), {-kInf, -kInf, -kInf, 5, -kInf, kNan});
  ExpectValues(RecordBuilder("_safe_softmax").Tensor(x).Int(1).None().Result(F32({3, 2})).Run().results[0],
               {0, 0, 0, 1, kNan, kNan});
  ExpectValues(RecordBuilder("_softmax").Tensor(x).Int(1).Bool(false).Result(F32({3, 2})).Run().results[0],
               {kNan, kNan, 0, 1, kNan, kNan});
}

TEST_F(NormalizeTest, SoftmaxGradients) {
  const HostTensor g = HostTensor::Of(F32({1, 2}), {1, 3}), y = HostTensor::Of(F32({1, 2}), {0.25, 0.75});
  ExpectValues(
      RecordBuilder("_softmax_backward_data").Tensor(g).Tensor(y).Int(1).Type(DType::kF32).Result(F32({1, 2})).Run().results[0],
      {0.25 * (1 - 2.5), 0.75 * (3 - 2.5)}, 1e-6);
  const HostTensor log_y = HostTensor::Of(F32({1, 2}), {std::log(0.25), std::log(0.75)});
  ExpectValues(RecordBuilder("_log_softmax_backward_data")
                   .Tensor(g)
                   .Tensor(log_y)
                   .Int(1)
                   .Type(DType::kF32)
                   .Result(F32({1, 2}))
                   .Run()
                   .results[0],
               {1 - 0.25 * 4, 3 - 0.75 * 4}, 1e-5);
}

TEST_F(NormalizeTest, LayerNorm) {
  const HostTensor x = HostTensor::Of(F32({2, 2}), {1, 3, 10, 10}), w = HostTensor::Of(F32({2}), {2, 1});
  const HostTensor bias = HostTensor::Of(F32({2}), {0, 5});
  Outcome out = RecordBuilder("native_layer_norm")
                    .Tensor(x)
                    .IntList({2})
                    .Tensor(w)
                    .Tensor(bias)
                    .Double(0.5)
                    .Result(F32({2, 2}))
                    .Result(F32({2, 1}))
                    .Result(F32({2, 1}))
                    .Run();
  const double r = 1 / std::sqrt(1.5);
  ExpectValues(out.results[0], {-2 * r, 5 + r, 0, 5}, 1e-6);
  ExpectValues(out.results[1], {2, 10});
  ExpectValues(out.results[2], {r, 1 / std::sqrt(0.5)}, 1e-6);
}

// The gradients of two rows of two, with a bias that is not there; the results are still to be named.
RecordBuilder LayerNormBackward(std::vector<double> rstd, std::vector<double> weight, std::vector<int64_t> mask) {
  const HostTensor x = HostTensor::Of(F32({2, 2}), {1, 3, 2, 4}), g = HostTensor::Of(F32({2, 2}), {1, 0, 0, 1});
  const HostTensor mean = HostTensor::Of(F32({2, 1}), {2, 3}), r = HostTensor::Of(F32({2, 1}), rstd);
  const HostTensor w = HostTensor::Of(F32({2}), weight);
  RecordBuilder record("native_layer_norm_backward");
  record.Tensor(g).Tensor(x).IntList({2}).Tensor(mean).Tensor(r).Tensor(w).None().BoolList(std::move(mask));
  return record;
}

TEST_F(NormalizeTest, LayerNormBackwardHonoursTheMask) {
  Outcome out = LayerNormBackward({1, 1}, {1, 1}, {0, 1, 1}).NoResult().Result(F32({2})).Result(F32({2})).Run();
  ASSERT_EQ(out.results.size(), 2u);
  ExpectValues(out.results[0], {-1, 1});
  ExpectValues(out.results[1], {1, 1});
}

TEST_F(NormalizeTest, LayerNormBackwardByProducts) {
  for (bool as_dot : {false, true}) {
    pjrt::EngineProfile profile;
    profile.row_sum_as_dot = as_dot;
    Outcome out = LayerNormBackward({2, 1}, {2, 4}, {1, 0, 0}).Result(F32({2, 2})).NoResult().NoResult().RunOn(profile);
    EXPECT_EQ(out.lowered.text.find("dot_general") != std::string::npos, as_dot);
    // Normalized: (-2, 2) and (-1, 1). g w: (2, 0) and (0, 4), its sums 2 and 4, times the normalized -4 and 4.
    ExpectValues(out.results[0], {-6, 6, 0, 0});
  }
}

TEST_F(NormalizeTest, GroupNorm) {
  // Two groups of one channel each; weight and bias run over the channels.
  const HostTensor x = HostTensor::Of(F32({1, 2, 2}), {0, 2, 5, 5}), w = HostTensor::Of(F32({2}), {3, 1});
  const HostTensor bias = HostTensor::Of(F32({2}), {0, 7});
  Outcome out = RecordBuilder("native_group_norm")
                    .Tensor(x)
                    .Tensor(w)
                    .Tensor(bias)
                    .Int(1)
                    .Int(2)
                    .Int(2)
                    .Int(2)
                    .Double(3)
                    .Result(F32({1, 2, 2}))
                    .Result(F32({1, 2}))
                    .Result(F32({1, 2}))
                    .Run();
  ExpectValues(out.results[0], {-1.5, 1.5, 7, 7}, 1e-6);
  ExpectValues(out.results[1], {1, 5});
}

TEST_F(NormalizeTest, BatchNormUpdatesStatisticsThroughResults) {
  const HostTensor x = HostTensor::Of(F32({2, 1}), {1, 3}), rm = HostTensor::Of(F32({1}), {10}),
                   rv = HostTensor::Of(F32({1}), {4});
  for (const char* op : {"native_batch_norm", "_native_batch_norm_legit_functional"}) {
    Outcome out = RecordBuilder(op)
                      .Tensor(x)
                      .None()
                      .None()
                      .Tensor(rm)
                      .Tensor(rv)
                      .Bool(true)
                      .Scalar(0.25)
                      .Double(0)
                      .Result(F32({2, 1}))
                      .Result(F32({1}))
                      .Result(F32({1}))
                      .Result(F32({1}))
                      .Result(F32({1}))
                      .Run();
    ExpectValues(out.results[0], {-1, 1}, 1e-6);
    ExpectValues(out.results[1], {2});
    ExpectValues(out.results[3], {0.75 * 10 + 0.25 * 2});
    ExpectValues(out.results[4], {0.75 * 4 + 0.25 * 2});
  }
}

TEST_F(NormalizeTest, BatchNormInEvaluation) {
  const HostTensor x = HostTensor::Of(F32({2, 1}), {1, 3}), rm = HostTensor::Of(F32({1}), {1}),
                   rv = HostTensor::Of(F32({1}), {4});
  Outcome out = RecordBuilder("native_batch_norm")
                    .Tensor(x)
                    .None()
                    .None()
                    .Tensor(rm)
                    .Tensor(rv)
                    .Bool(false)
                    .Scalar(0.1)
                    .Double(0)
                    .Result(F32({2, 1}))
                    .Result(F32({0}))
                    .Result(F32({0}))
                    .Run();
  ExpectValues(out.results[0], {0, 1}, 1e-6);
}

TEST(Normalize, BatchNormWithoutPlaceForStatisticsIsRefused) {
  const HostTensor x = HostTensor::Of(F32({2, 1}), {1, 3}), rm = HostTensor::Of(F32({1}), {1});
  auto lowered = RecordBuilder("native_batch_norm")
                     .Tensor(x)
                     .None()
                     .None()
                     .Tensor(rm)
                     .Tensor(rm)
                     .Bool(true)
                     .Scalar(0.1)
                     .Double(0)
                     .Result(F32({2, 1}))
                     .Result(F32({1}))
                     .Result(F32({1}))
                     .Lower();
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.status().kind(), ErrorKind::kNotImplemented);
}

TEST_F(NormalizeTest, BatchNormBackward) {
  const HostTensor x = HostTensor::Of(F32({2, 1}), {1, 3}), g = HostTensor::Of(F32({2, 1}), {1, 0});
  const HostTensor mean = HostTensor::Of(F32({1}), {2}), invstd = HostTensor::Of(F32({1}), {0.5});
  Outcome out = RecordBuilder("native_batch_norm_backward")
                    .Tensor(g)
                    .Tensor(x)
                    .None()
                    .None()
                    .None()
                    .Tensor(mean)
                    .Tensor(invstd)
                    .Bool(true)
                    .Double(0)
                    .BoolList({1, 1, 1})
                    .Result(F32({2, 1}))
                    .Result(F32({1}))
                    .Result(F32({1}))
                    .Run();
  ExpectValues(out.results[0], {0.5 * (1 - 0.5 - (-0.5) * (-0.25)), 0.5 * (0 - 0.5 - 0.5 * (-0.25))}, 1e-6);
  ExpectValues(out.results[1], {-0.5});
  ExpectValues(out.results[2], {1});
}

}  // namespace
}  // namespace tpu::lower
