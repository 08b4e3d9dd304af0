// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cpp/lower/record_builder.h"
#include "cpp/lower/trap_text.h"

namespace tpu::lower {
namespace {

using LossTest = LowerTest;

constexpr int kNone = 0, kMean = 1, kSum = 2;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }
HostTensor Vector(const std::vector<double>& v) { return HostTensor::Of(F32({static_cast<int64_t>(v.size())}), v); }
HostTensor Classes(const std::vector<double>& v) {
  return HostTensor::Of(TensorType(DType::kI64, {static_cast<int64_t>(v.size())}), v);
}

const HostTensor& LogP() {
  static const HostTensor x = HostTensor::Of(F32({2, 3}), {-1, -2, -3, -4, -5, -6});
  return x;
}

Outcome Nll(const HostTensor& target, int reduction, int64_t ignore, const HostTensor* weight = nullptr) {
  RecordBuilder r("nll_loss_forward");
  r.Tensor(LogP()).Tensor(target);
  if (weight)
    r.Tensor(*weight);
  else
    r.None();
  r.Int(reduction).Int(ignore).Result(reduction == kNone ? F32({2}) : F32({})).Result(F32({}));
  return r.Run();
}

TEST_F(LossTest, NllForward) {
  Outcome mean = Nll(Classes({0, 2}), kMean, -100);
  ExpectValues(mean.results[0], {3.5});
  ExpectValues(mean.results[1], {2});
  ExpectValues(Nll(Classes({0, 2}), kNone, -100).results[0], {1, 6});
  const HostTensor weight = Vector({1, 1, 3});
  Outcome weighted = Nll(Classes({0, 2}), kMean, -100, &weight);
  ExpectValues(weighted.results[0], {19.0 / 4});
  ExpectValues(weighted.results[1], {4});
  ExpectValues(Nll(Classes({0, -100}), kSum, -100).results[0], {1});
  ExpectValues(Nll(Classes({-100, -100}), kMean, -100).results[0], {kNan});
}

TEST_F(LossTest, TargetsAreChecked) {
  EXPECT_EQ(TrapText(Nll(Classes({0, 3}), kMean, -100)), "IndexError: Target 3 is out of bounds.");
  EXPECT_EQ(TrapText(Nll(Classes({-1, 0}), kMean, -100)), "IndexError: Target -1 is out of bounds.");
  EXPECT_EQ(TrapText(Nll(Classes({-1, 0}), kMean, -1)), "");
}

TEST_F(LossTest, NllBackward) {
  auto backward = [&](int reduction, const HostTensor& grad, const HostTensor& target) {
    return RecordBuilder("nll_loss_backward")
        .Tensor(grad)
        .Tensor(LogP())
        .Tensor(target)
        .None()
        .Int(reduction)
        .Int(-100)
        .Tensor(HostTensor::Of(F32({}), {2}))
        .Result(F32({2, 3}))
        .Run()
        .results[0];
  };
  const HostTensor one = HostTensor::Of(F32({}), {1});
  ExpectValues(backward(kMean, one, Classes({0, 2})), {-0.5, 0, 0, 0, 0, -0.5});
  ExpectValues(backward(kSum, one, Classes({-100, 1})), {0, 0, 0, 0, -1, 0});
  ExpectValues(backward(kNone, Vector({3, 4}), Classes({1, 2})), {0, -3, 0, 0, 0, -4});
}

TEST_F(LossTest, Nll2d) {
  const HostTensor x = HostTensor::Of(F32({1, 2, 1, 2}), {-1, -2, -3, -4});
  const HostTensor target = HostTensor::Of(TensorType(DType::kI64, {1, 1, 2}), {1, 0});
  Outcome out = RecordBuilder("nll_loss2d_forward")
                    .Tensor(x)
                    .Tensor(target)
                    .None()
                    .Int(kNone)
                    .Int(-100)
                    .Result(F32({1, 1, 2}))
                    .Result(F32({}))
                    .Run();
  ExpectValues(out.results[0], {3, 2});
}

TEST_F(LossTest, SquaredAndAbsoluteErrors) {
  const HostTensor x = Vector({0, 2, 5}), y = Vector({1, 2, 2});
  ExpectValues(RecordBuilder("mse_loss").Tensor(x).Tensor(y).Int(kMean).Result(F32({})).Run().results[0], {10.0 / 3}, 1e-6);
  ExpectValues(RecordBuilder("mse_loss_backward")
                   .Tensor(HostTensor::Of(F32({}), {3}))
                   .Tensor(x)
                   .Tensor(y)
                   .Int(kMean)
                   .Result(F32({3}))
                   .Run()
                   .results[0],
               {-2, 0, 6}, 1e-6);
  ExpectValues(RecordBuilder("smooth_l1_loss").Tensor(x).Tensor(y).Int(kNone).Double(2).Result(F32({3})).Run().results[0],
               {0.25, 0, 2});
  ExpectValues(RecordBuilder("smooth_l1_loss").Tensor(x).Tensor(y).Int(kNone).Double(0).Result(F32({3})).Run().results[0],
               {1, 0, 3});
  ExpectValues(RecordBuilder("huber_loss").Tensor(x).Tensor(y).Int(kNone).Double(2).Result(F32({3})).Run().results[0],
               {0.5, 0, 4});
  ExpectValues(RecordBuilder("huber_loss_backward")
                   .Tensor(Vector({1, 1, 1}))
                   .Tensor(x)
                   .Tensor(y)
                   .Int(kNone)
                   .Double(2)
                   .Result(F32({3}))
                   .Run()
                   .results[0],
               {-1, 0, 2});
}

TEST_F(LossTest, BinaryCrossEntropy) {
  auto bce = [&](const HostTensor& x, const HostTensor& t) {
    return RecordBuilder("binary_cross_entropy").Tensor(x).Tensor(t).None().Int(kNone).Result(x.type).Run();
  };
  ExpectValues(bce(Vector({0.5, 0, 1}), Vector({1, 1, 1})).results[0], {std::log(2.0), 100, 0}, 1e-6);
  EXPECT_EQ(TrapText(bce(Vector({1.5}), Vector({1}))), "RuntimeError: all elements of input should be between 0 and 1");
  EXPECT_EQ(TrapText(bce(Vector({kNan}), Vector({1}))), "RuntimeError: all elements of input should be between 0 and 1");
  EXPECT_EQ(TrapText(bce(Vector({0.5}), Vector({2}))), "RuntimeError: all elements of target should be between 0 and 1");
}

TEST_F(LossTest, BinaryCrossEntropyWithLogits) {
  const HostTensor x = Vector({0, 200, -200}), t = Vector({0, 1, 1});
  ExpectValues(RecordBuilder("binary_cross_entropy_with_logits")
                   .Tensor(x)
                   .Tensor(t)
                   .None()
                   .None()
                   .Int(kNone)
                   .Result(F32({3}))
                   .Run()
                   .results[0],
               {std::log(2.0), 0, 200}, 1e-6);
  ExpectValues(RecordBuilder("binary_cross_entropy_with_logits")
                   .Tensor(x)
                   .Tensor(t)
                   .None()
                   .Tensor(Vector({3, 3, 3}))
                   .Int(kSum)
                   .Result(F32({}))
                   .Run()
                   .results[0],
               {std::log(2.0) + 600}, 1e-6);
}

}  // namespace
}  // namespace tpu::lower
