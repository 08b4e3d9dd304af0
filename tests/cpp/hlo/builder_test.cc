// SPDX-License-Identifier: Apache-2.0
#include "hlo/builder.h"

#include <gtest/gtest.h>

#include <limits>

#include "hlo/literal.h"

namespace tpu::hlo {
namespace {

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }

TEST(Builder, WritesAFunction) {
  Builder b;
  Value x = b.Argument(F32({2, 3})), y = b.Argument(F32({3}));
  Value sum = b.Add(x, b.BroadcastLike(y, x));
  b.Alias(x, 0);
  Result<std::string> text = b.Finish({sum});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, R"(module {
  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<3xf32>) -> (tensor<2x3xf32>) {
    %0 = "stablehlo.broadcast_in_dim"(%arg1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xf32>) -> tensor<2x3xf32>
    %1 = "stablehlo.add"(%arg0, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    "func.return"(%1) : (tensor<2x3xf32>) -> ()
  }
}
)");
}

TEST(Builder, IdentitiesEmitNothing) {
  Builder b;
  Value x = b.Argument(F32({2, 3}));
  EXPECT_EQ(b.Reshape(x, {2, 3}).id, x.id);
  EXPECT_EQ(b.Convert(x, DType::kF32).id, x.id);
  EXPECT_EQ(b.BitcastConvert(x, DType::kF32).id, x.id);
  EXPECT_EQ(b.Transpose(x, {0, 1}).id, x.id);
  EXPECT_EQ(b.Slice(x, {0, 0}, {2, 3}).id, x.id);
  EXPECT_EQ(b.BroadcastInDim(x, {2, 3}, {0, 1}).id, x.id);
  EXPECT_EQ(b.Concatenate({x}, 0).id, x.id);
  EXPECT_EQ(b.Pad(x, b.Constant(DType::kF32, 0), {0, 0}, {0, 0}).id, x.id);
  EXPECT_EQ(b.Reverse(x, {}).id, x.id);
  Value zero = b.Constant(DType::kI32, 0);
  EXPECT_EQ(b.DynamicSlice(x, {zero, zero}, {2, 3}).id, x.id);
}

TEST(Builder, SharesConstants) {
  Builder b;
  Value one = b.Constant(F32({4}), 1.0);
  EXPECT_EQ(b.Constant(F32({4}), 1).id, one.id);
  EXPECT_NE(b.Constant(F32({4}), 2).id, one.id);
  EXPECT_NE(b.Constant(F32({5}), 1).id, one.id);
}

TEST(Builder, KeepsTheFirstError) {
  Builder b;
  b.SetContext("aten::add.Tensor");
  Value bad = b.Add(b.Argument(F32({2})), b.Argument(F32({3})));
  EXPECT_FALSE(bad.valid());
  b.Mul(bad, bad);
  b.Reshape(b.Argument(F32({2})), {5});
  Result<std::string> text = b.Finish({bad});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().message(), "internal: aten::add.Tensor: add of tensor<2xf32> and tensor<3xf32>");
}

TEST(Builder, RefusesCapturesAndStrayValues) {
  Builder b;
  Value x = b.Argument(F32({2})), zero = b.Constant(DType::kF32, 0);
  b.Reduce({x}, {zero}, {0}, [&](const Values& v) { return Values{b.Add(v[0], zero)}; });
  EXPECT_FALSE(b.ok());
  Builder c;
  Value stray;
  x = c.Argument(F32({2}));
  zero = c.Constant(DType::kF32, 0);
  c.Reduce({x}, {zero}, {0}, [&](const Values& v) { return Values{stray = c.Add(v[0], v[1])}; });
  EXPECT_TRUE(c.ok());
  c.Add(stray, zero);
  EXPECT_FALSE(c.ok());
}

TEST(Builder, InfersTypes) {
  Builder b;
  Value x = b.Argument(F32({4, 8, 6})), y = b.Argument(F32({4, 6, 5}));
  EXPECT_EQ(b.type(b.DotGeneral(x, y, {{0}, {0}, {2}, {1}}, Precision::kHighest)), F32({4, 8, 5}));
  Value i = b.Argument(TensorType(DType::kI32, {7}));
  GatherDims dims;
  dims.offset_dims = {1, 2};
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = 1;
  EXPECT_EQ(b.type(b.Gather(x, i, dims, {1, 8, 6})), F32({7, 8, 6}));
  EXPECT_EQ(b.type(b.Pad(x, b.Constant(DType::kF32, 0), {1, 0, -1}, {0, 2, 0}, {0, 1, 0})), F32({5, 17, 5}));
  EXPECT_EQ(b.type(b.Slice(x, {0, 1, 0}, {4, 8, 6}, {1, 3, 2})), F32({4, 3, 3}));
  EXPECT_EQ(b.type(b.BitcastConvert(x, DType::kU8)), TensorType(DType::kU8, {4, 8, 6, 4}));
  Value image = b.Argument(F32({1, 3, 8, 8})), kernel = b.Argument(F32({6, 3, 3, 3}));
  Window window;
  window.strides = {2, 2};
  window.low = window.high = {1, 1};
  EXPECT_EQ(b.type(b.Convolution(image, kernel, {0, 1, 1, 0, 0, 1, {2, 3}, {2, 3}, {2, 3}}, window, 1, 1, Precision::kDefault)),
            F32({1, 6, 4, 4}));
  EXPECT_TRUE(b.ok()) << b.status().message();
}

std::string Element(DType dtype, double v) {
  std::string s;
  AppendElement(&s, dtype, v);
  return s;
}

TEST(Literal, IsExact) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Element(DType::kF32, 1), "0x3F800000");
  EXPECT_EQ(Element(DType::kF32, kNan), "0x7FC00000");
  EXPECT_EQ(Element(DType::kF64, -0.0), "0x8000000000000000");
  EXPECT_EQ(Element(DType::kF16, 65504), "0x7BFF");
  EXPECT_EQ(Element(DType::kF16, 65520), "0x7C00");
  EXPECT_EQ(Element(DType::kF16, 6e-8), "0x0001");
  EXPECT_EQ(Element(DType::kBF16, 1.0 + 1.0 / 256), "0x3F80");              // tie to even
  EXPECT_EQ(Element(DType::kBF16, 1.0 + 1.0 / 256 + 1e-12), "0x3F81");      // through float it would tie
  EXPECT_EQ(Element(DType::kBF16, -kInf), "0xFF80");
  EXPECT_EQ(Element(DType::kF8E4M3FN, 448), "0x7E");
  EXPECT_EQ(Element(DType::kF8E4M3FN, 1e9), "0x7E");
  EXPECT_EQ(Element(DType::kF8E4M3FN, kNan), "0x7F");
  EXPECT_EQ(Element(DType::kF8E5M2, 57344), "0x7B");
  EXPECT_EQ(Element(DType::kF8E5M2, 1e9), "0x7C");
  EXPECT_EQ(Element(DType::kI8, -3), "-3");
  EXPECT_EQ(Element(DType::kU64, 18446744073709549568.0), "18446744073709549568");
  EXPECT_EQ(Element(DType::kBool, 0.5), "true");
  EXPECT_EQ(Element(DType::kC64, 1), "(0x3F800000, 0x00000000)");
}

TEST(Literal, ListsNest) {
  Builder b;
  b.ConstantList(TensorType(DType::kI32, {2, 2}), Ints{1, 2, 3, 4});
  b.ConstantList(TensorType(DType::kI32, {0, 3}), Ints{});
  Result<std::string> text = b.Finish({});
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>"), std::string::npos);
  EXPECT_NE(text->find("dense<> : tensor<0x3xi32>"), std::string::npos);
}

}  // namespace
}  // namespace tpu::hlo
