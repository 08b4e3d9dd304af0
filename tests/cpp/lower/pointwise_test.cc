// SPDX-License-Identifier: Apache-2.0
// Where ATen's elementwise semantics differ from StableHLO's. The rows at large are compared with PyTorch itself.
#include <limits>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using PointwiseTest = LowerTest;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TensorType Vector(DType d, size_t n) { return TensorType(d, {static_cast<int64_t>(n)}); }

std::vector<double> Unary(const std::string& op, DType in, std::vector<double> x, DType out) {
  return RecordBuilder(op)
      .Tensor(HostTensor::Of(Vector(in, x.size()), x))
      .Result(Vector(out, x.size()))
      .Run()
      .results[0]
      .Numbers();
}

HostTensor Binary(const std::string& op, DType d, std::vector<double> x, std::vector<double> y, DType out) {
  return RecordBuilder(op)
      .Tensor(HostTensor::Of(Vector(d, x.size()), x))
      .Tensor(HostTensor::Of(Vector(d, y.size()), y))
      .Result(Vector(out, x.size()))
      .Run()
      .results[0];
}

TEST_F(PointwiseTest, SignsOfNanAndZero) {
  EXPECT_EQ(Unary("sign", DType::kF32, {kNan, -0.0, -3, kInf}, DType::kF32), (std::vector<double>{0, 0, -1, 1}));
  EXPECT_EQ(Unary("signbit", DType::kF32, {-0.0, 0.0, -1, 1}, DType::kBool), (std::vector<double>{1, 0, 1, 0}));
  EXPECT_EQ(Unary("signbit", DType::kF64, {-0.0, 0.0, -1, 1}, DType::kBool), (std::vector<double>{1, 0, 1, 0}));
}

TEST_F(PointwiseTest, RoundsHalfToEven) {
  EXPECT_EQ(Unary("round", DType::kF32, {0.5, 1.5, 2.5, -0.5}, DType::kF32), (std::vector<double>{0, 2, 2, 0}));
}

TEST_F(PointwiseTest, AtanIsRightWhenVectorised) {
  std::vector<double> x, want;
  for (int i = 0; i < 4096; ++i) {
    x.push_back(static_cast<float>((i - 2048) / 100.0));
    want.push_back(std::atan(x.back()));
  }
  ExpectValues(HostTensor::Of(Vector(DType::kF64, 4096), Unary("atan", DType::kF32, x, DType::kF32)), want, 1e-6);
}

TEST_F(PointwiseTest, ErfReachesOne) {
  EXPECT_EQ(Unary("erf", DType::kF32, {6, -6, kInf, -kInf}, DType::kF32), (std::vector<double>{1, -1, 1, -1}));
}

TEST_F(PointwiseTest, FloorDivision) {
  ExpectValues(Binary("floor_divide", DType::kI32, {7, -7, 7, -7}, {2, 2, -2, -2}, DType::kI32), {3, -4, -4, 3});
  ExpectValues(Binary("remainder.Tensor", DType::kI32, {7, -7, 7, -7}, {2, 2, -2, -2}, DType::kI32), {1, 1, -1, -1});
  ExpectValues(Binary("fmod.Tensor", DType::kI32, {7, -7, 7, -7}, {2, 2, -2, -2}, DType::kI32), {1, -1, 1, -1});
  ExpectValues(Binary("floor_divide", DType::kF32, {1, -1, kInf}, {0, 0, 1}, DType::kF32), {kInf, -kInf, kNan});
}

// The same on an engine that must not divide 64-bit integers.
TEST_F(PointwiseTest, LongDivision) {
  std::vector<double> x = {7, -7, 0, 1e15, -1e15, 9e18, -9e18}, y = {2, -2, 5, 7, 7, -3, 1e9};
  RecordBuilder r("div.Tensor_mode");
  TensorType type = Vector(DType::kI64, x.size());
  r.Tensor(HostTensor::Of(type, x)).Tensor(HostTensor::Of(type, y)).Text("trunc").Result(type);
  pjrt::EngineProfile tpu = TestClient()->profile();
  tpu.kind = pjrt::EngineKind::kTpu;
  auto lowered = r.Lower(tpu);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->text.find("stablehlo.divide"), std::string::npos);
  HostTensor out = r.RunOn(tpu).results[0];
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(out.GetInt(static_cast<int64_t>(i)), static_cast<int64_t>(x[i]) / static_cast<int64_t>(y[i])) << i;
  }
}

TEST_F(PointwiseTest, IntegerPower) {
  ExpectValues(Binary("pow.Tensor_Tensor", DType::kI64, {2, -3, 2, -1, 2, 3}, {62, 3, -1, -3, 64, 0}, DType::kI64),
               {4611686018427387904, -27, 0, -1, 0, 1});
}

TEST_F(PointwiseTest, PowerClassesDoAsAtenDoes) {
  HostTensor x = HostTensor::Of(Vector(DType::kF32, 3), {-kInf, 4, 0});
  Outcome half = RecordBuilder("pow.Tensor_Scalar").Tensor(x).ScalarOfClass(5, DType::kF64).Result(x.type).Run();
  ExpectValues(half.results[0], {kNan, 2, 0});
}

TEST_F(PointwiseTest, ExtremesOfNan) {
  ExpectValues(Binary("maximum", DType::kF32, {kNan, 1, 2}, {1, kNan, 3}, DType::kF32), {kNan, kNan, 3});
  ExpectValues(Binary("fmax", DType::kF32, {kNan, 1, 2}, {1, kNan, 3}, DType::kF32), {1, 1, 3});
}

TEST_F(PointwiseTest, ComparesInTheCommonType) {
  // 16777217 is no f32: in int64 the two differ.
  TensorType i64 = Vector(DType::kI64, 1), flag = Vector(DType::kBool, 1);
  HostTensor x = HostTensor::Of(i64, {16777217});
  ExpectValues(RecordBuilder("eq.Scalar").Tensor(x).Scalar(16777216).Result(flag).Run().results[0], {0});
  ExpectValues(RecordBuilder("eq.Scalar").Tensor(x).Scalar(16777216.0).Result(flag).Run().results[0], {1});
}

TEST_F(PointwiseTest, NarrowFloatsRoundOnce) {
  // In bf16 steps, 256 + 1 = 256 and 256 - 1 would round on the way.
  HostTensor x = HostTensor::Of(Vector(DType::kBF16, 1), {256}), y = HostTensor::Of(Vector(DType::kBF16, 1), {0.5});
  Outcome out = RecordBuilder("add.Tensor").Tensor(x).Tensor(y).Scalar(2.5).Result(x.type).Run();
  ExpectValues(out.results[0], {258});  // 256 + 1.25 = 257.25
}

}  // namespace
}  // namespace tpu::lower
