// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using PoolingTest = LowerTest;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }
TensorType I64(std::initializer_list<int64_t> dims) { return TensorType(DType::kI64, dims); }

Outcome MaxPool(const HostTensor& x, int64_t kernel, int64_t stride, int64_t padding, std::initializer_list<int64_t> out) {
  RecordBuilder r("max_pool2d_with_indices");
  r.Tensor(x).IntList({kernel, kernel}).IntList({stride, stride}).IntList({padding, padding}).IntList({1, 1}).Bool(false);
  return r.Result(F32(out)).Result(I64(out)).Run();
}

TEST_F(PoolingTest, FirstOfEqualElements) {
  const HostTensor x = HostTensor::Of(F32({1, 4, 4}), {1, 1, 2, 3, 1, 1, 3, 3, 0, 5, 7, 7, 5, 5, 7, 7});
  const Outcome out = MaxPool(x, 2, 2, 0, {1, 2, 2});
  ExpectValues(out.results[0], {1, 3, 5, 7});
  ExpectValues(out.results[1], {0, 3, 9, 10});
}

TEST_F(PoolingTest, LastNanWins) {
  const HostTensor x = HostTensor::Of(F32({1, 2, 4}), {kNan, 1, 2, 9, 5, kNan, kNan, 3});
  const Outcome out = MaxPool(x, 2, 2, 0, {1, 1, 2});
  EXPECT_TRUE(std::isnan(out.results[0].Get(0).real()) && std::isnan(out.results[0].Get(1).real()));
  ExpectValues(out.results[1], {5, 6});
}

TEST_F(PoolingTest, PaddingNeverWins) {
  const HostTensor x = HostTensor::Of(F32({1, 2, 2}), {-kInf, -kInf, -kInf, 4});
  const Outcome out = MaxPool(x, 2, 2, 1, {1, 2, 2});
  ExpectValues(out.results[0], {-kInf, -kInf, -kInf, 4});
  ExpectValues(out.results[1], {0, 1, 2, 3});
}

// Windows of more taps than are compared at once.
TEST_F(PoolingTest, LargeWindow) {
  std::vector<double> values(49, 1.0);
  values[24] = values[30] = 2;
  const Outcome out = MaxPool(HostTensor::Of(F32({1, 7, 7}), values), 7, 7, 0, {1, 1, 1});
  ExpectValues(out.results[0], {2});
  ExpectValues(out.results[1], {24});
}

TEST_F(PoolingTest, MaxPoolBackward) {
  const HostTensor x = HostTensor::Zeros(F32({1, 3, 3}));
  const auto run = [&](int64_t kernel, int64_t stride, const HostTensor& grad, const HostTensor& index) {
    RecordBuilder r("max_pool2d_with_indices_backward");
    r.Tensor(grad).Tensor(x).IntList({kernel, kernel}).IntList({stride, stride}).IntList({0, 0}).IntList({1, 1}).Bool(false);
    return r.Tensor(index).Result(x.type).Run().results[0];
  };
  // Apart: the last row and column belong to no window.
  ExpectValues(run(2, 2, HostTensor::Of(F32({1, 1, 1}), {5}), HostTensor::Of(I64({1, 1, 1}), {4})),
               {0, 0, 0, 0, 5, 0, 0, 0, 0});
  // Overlapping: gradients meet.
  const HostTensor grad = HostTensor::Of(F32({1, 2, 2}), {1, 2, 3, 4}), index = HostTensor::Of(I64({1, 2, 2}), {4, 4, 4, 8});
  ExpectValues(run(2, 1, grad, index), {0, 0, 0, 0, 6, 0, 0, 0, 4});
}

TEST_F(PoolingTest, AveragesDivideByWhatTheyCover) {
  const HostTensor x = HostTensor::Of(F32({1, 2, 2}), {4, 8, 12, 16});
  const auto run = [&](bool include_pad, int64_t divisor) {
    RecordBuilder r("avg_pool2d");
    r.Tensor(x).IntList({2, 2}).IntList({1, 1}).IntList({1, 1}).Bool(false).Bool(include_pad);
    divisor ? r.Int(divisor) : r.None();
    return r.Result(F32({1, 3, 3})).Run().results[0];
  };
  ExpectValues(run(true, 0), {1, 3, 2, 4, 10, 6, 3, 7, 4});
  ExpectValues(run(false, 0), {4, 6, 8, 8, 10, 12, 12, 14, 16});
  ExpectValues(run(true, 2), {2, 6, 4, 8, 20, 12, 6, 14, 8});
}

TEST_F(PoolingTest, AverageBackward) {
  RecordBuilder r("avg_pool2d_backward");
  r.Tensor(HostTensor::Of(F32({1, 2, 2}), {4, 8, 12, 16})).Tensor(HostTensor::Zeros(F32({1, 3, 3})));
  r.IntList({2, 2}).IntList({1, 1}).IntList({0, 0}).Bool(false).Bool(true).None();
  ExpectValues(r.Result(F32({1, 3, 3})).Run().results[0], {1, 3, 2, 4, 10, 6, 3, 7, 4});
}

TEST_F(PoolingTest, Adaptive) {
  const HostTensor x = HostTensor::Of(F32({1, 1, 5}), {1, 2, 3, 4, 6});
  // Windows [0, 3) and [2, 5).
  ExpectValues(RecordBuilder("_adaptive_avg_pool2d").Tensor(x).IntList({1, 2}).Result(F32({1, 1, 2})).Run().results[0],
               {2, 13.0f / 3});
  const Outcome out =
      RecordBuilder("adaptive_max_pool2d").Tensor(x).IntList({1, 2}).Result(F32({1, 1, 2})).Result(I64({1, 1, 2})).Run();
  ExpectValues(out.results[0], {3, 6});
  ExpectValues(out.results[1], {2, 4});
  const HostTensor grad = HostTensor::Of(F32({1, 1, 2}), {3, 6});
  ExpectValues(RecordBuilder("_adaptive_avg_pool2d_backward").Tensor(grad).Tensor(x).Result(F32({1, 1, 5})).Run().results[0],
               {1, 1, 3, 2, 2});
}

}  // namespace
}  // namespace tpu::lower
