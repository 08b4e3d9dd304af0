// SPDX-License-Identifier: Apache-2.0
// What the driver promises the engine: arguments, host values, targets, aliases, memory order, traps, random numbers.
#include "lower/driver.h"
#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using DriverTest = LowerTest;

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }

TEST(Lower, GoldenAdd) {
  HostTensor x = HostTensor::Range(F32({2, 3}));
  auto lowered =
      RecordBuilder("add.Tensor").Tensor(x).HostNumber(DType::kF64, 2, true).ScalarOfClass(1).Result(F32({2, 3})).Lower();
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->text, R"(module {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<1xui32>) -> (tensor<2x3xf32>) {
    %3 = "stablehlo.reshape"(%arg1) : (tensor<1xui32>) -> tensor<ui32>
    %4 = "stablehlo.bitcast_convert"(%3) : (tensor<ui32>) -> tensor<f32>
    %0 = "stablehlo.reshape"(%4) : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x3xf32>
    %2 = "stablehlo.add"(%arg0, %1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "func.return"(%2) : (tensor<2x3xf32>) -> ()
  }
}
)");
  EXPECT_EQ(lowered->name, "add.Tensor");
  ASSERT_EQ(lowered->host_fields.size(), 1u);
  EXPECT_EQ(lowered->host_fields[0].from, DType::kF64);
  EXPECT_EQ(lowered->host_fields[0].to, DType::kF32);
  EXPECT_TRUE(lowered->aliases.empty());
}

TEST(Lower, UnknownOperatorsAreNotImplemented) {
  auto lowered = RecordBuilder("no_such_operator").Result(F32({2})).Lower();
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.status().kind(), ErrorKind::kNotImplemented);
}

TEST(Lower, NamesTheOperatorWhoseResultIsWrong) {
  auto lowered = RecordBuilder("exp").Tensor(HostTensor::Range(F32({2}))).Result(F32({3})).Lower();
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.status().kind(), ErrorKind::kRuntime);
  EXPECT_EQ(lowered.status().message().rfind("internal: aten::exp: ", 0), 0u) << lowered.status().message();
}

TEST(Lower, MemoryOrder) {
  auto order = [](std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    graph::RecordResult r;
    r.rank = static_cast<uint8_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), r.sizes);
    std::copy(strides.begin(), strides.end(), r.strides);
    int8_t o[kMaxRank];
    MemoryOrder(r, o);
    return std::vector<int>(o, o + r.rank);
  };
  EXPECT_EQ(order({2, 3, 4}, {12, 4, 1}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(order({2, 3, 4, 5}, {60, 1, 15, 3}), (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(order({3, 1, 4}, {4, 777, 1}), (std::vector<int>{0, 1, 2}));  // a size of 1 may have any stride
  EXPECT_EQ(order({2, 3}, {0, 1}), (std::vector<int>{1, 0}));
}

TEST(Lower, NumericsRoundTrip) {
  Numerics n;
  n.matmul_precision = Numerics::kHigh;
  n.deterministic = true;
  Numerics m = Numerics::Decode(n.Encode(7));
  EXPECT_EQ(m.matmul_precision, Numerics::kHigh);
  EXPECT_TRUE(m.deterministic);
}

TEST_F(DriverTest, PermutedResultsAreStoredInTheirOrder) {
  HostTensor x = HostTensor::Range(F32({2, 3}));
  Outcome out = RecordBuilder("neg").Tensor(x).Result(F32({2, 3}), {1, 2}).Run();
  EXPECT_EQ(out.lowered.outputs[0].type, F32({3, 2}));
  ExpectValues(out.results[0], {0, -1, -2, -3, -4, -5});
}

TEST_F(DriverTest, InPlaceAliasesItsArgument) {
  HostTensor x = HostTensor::Range(F32({2, 3}));
  Outcome out = RecordBuilder("exp").Tensor(x).Result(F32({2, 3})).InPlace(0).Run();
  ASSERT_EQ(out.lowered.aliases.size(), 1u);
  EXPECT_EQ(out.lowered.aliases[0].argument, 0);
  EXPECT_EQ(out.lowered.aliases[0].output, 0);
  ExpectValues(out.results[0], {1, 2.718281828, 7.389056099, 20.08553692, 54.59815003, 148.4131591}, 1e-6);
}

TEST_F(DriverTest, TargetsConvert) {
  HostTensor x = HostTensor::Of(F32({3}), {1.9, -1.9, 300});
  HostTensor base = HostTensor::Range(TensorType(DType::kU8, {3}));
  Outcome out = RecordBuilder("clone").Tensor(x).None().Result(F32({3})).Out(base, {DType::kU8, {3}, {1}}).Run();
  EXPECT_EQ(out.results[0].type.dtype, DType::kU8);
  ExpectValues(out.results[0], {1, 255, 44});
}

TEST_F(DriverTest, HostValuesOfEveryType) {
  for (DType d : {DType::kBool, DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kF16, DType::kBF16,
                  DType::kF32, DType::kF64, DType::kC64, DType::kC128, DType::kF8E5M2, DType::kU64}) {
    HostTensor x = HostTensor::Zeros(TensorType(d, {2}));
    double want = d == DType::kBool ? 1 : 3;
    ExpectValues(RecordBuilder("fill.Scalar").Tensor(x).Scalar(3).Result(x.type).Run().results[0], {want, want});
    ExpectValues(RecordBuilder("fill.Scalar").Tensor(x).Scalar(3.0).Result(x.type).Run().results[0], {want, want});
  }
  HostTensor c = HostTensor::Zeros(TensorType(DType::kC64, {1}));
  HostTensor filled =
      RecordBuilder("fill.Scalar").Tensor(c).Scalar(std::complex<double>(1, -2)).Result(c.type).Run().results[0];
  EXPECT_EQ(filled.Get(0), std::complex<double>(1, -2));
}

TEST_F(DriverTest, TrapsReportTheBadValue) {
  TensorType i64(DType::kI64, {3});
  HostTensor x = HostTensor::Of(i64, {7, 8, 9});
  Outcome good = RecordBuilder("floor_divide").Tensor(x).Tensor(HostTensor::Of(i64, {2, 3, -2})).Result(i64).Run();
  EXPECT_EQ(good.traps, std::vector<int32_t>{0});
  ExpectValues(good.results[0], {3, 2, -5});
  Outcome bad = RecordBuilder("floor_divide").Tensor(x).Tensor(HostTensor::Of(i64, {2, 0, -2})).Result(i64).Run();
  ASSERT_EQ(bad.traps.size(), 1u);
  EXPECT_NE(bad.traps[0], 0);
  EXPECT_EQ(bad.lowered.traps[0].message, "ZeroDivisionError");
}

TEST_F(DriverTest, ChainsRecords) {
  // exp, then add of the result to itself: value 1 is result 0 of record 0.
  HostTensor x = HostTensor::Of(F32({2}), {0, 1});
  graph::Graph g = RecordBuilder("exp").Tensor(x).Result(F32({2})).graph();
  graph::Graph add = RecordBuilder("mul.Tensor").Tensor(x).Tensor(x).Result(F32({2})).graph();
  graph::OpRecord second = add.records[0];
  for (graph::Argument& a : second.args) a.tensors[0].value = 1;
  g.records.push_back(second);
  auto lowered = LowerGraph(g, TestClient()->profile());
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->arguments, std::vector<int>{0});
  EXPECT_EQ(lowered->outputs.size(), 2u);
  EXPECT_EQ(lowered->name, "exp,mul.Tensor");
  EXPECT_NE(lowered->text.find("\"stablehlo.multiply\"(%0, %0)"), std::string::npos) << lowered->text;
}

}  // namespace
}  // namespace tpu::lower
