// SPDX-License-Identifier: Apache-2.0
// Operators against results worked out by hand; needs no other plugin. differential_test.cc covers the rest.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "control.h"
#include "plugin_for_test.h"

namespace fake_pjrt {
namespace {

const Plugin& Fake() {
  static const Plugin plugin(GetPjrtApi(), 2);
  return plugin;
}

// Arguments %a0...; the body ends in a definition of %0 of type `result`.
std::string Program(const std::vector<std::string>& args, const std::string& result, const std::string& body) {
  std::string s = "module @m {\nfunc.func public @main(";
  for (size_t i = 0; i < args.size(); ++i) s += (i ? ", %a" : "%a") + std::to_string(i) + ": tensor<" + args[i] + ">";
  return s + ") -> tensor<" + result + "> {\n" + body + "\n\"func.return\"(%0) : (tensor<" + result + ">) -> ()\n}\n}\n";
}

std::vector<float> RunF32(const std::string& text, const std::vector<HostArray>& inputs) {
  std::vector<HostArray> results;
  Failure f = Fake().Run(text, inputs, &results);
  EXPECT_EQ(f.code, 0) << f.message;
  return results.empty() ? std::vector<float>{} : results[0].As<float>();
}

using F = std::vector<float>;

TEST(Interpreter, Elementwise) {
  EXPECT_EQ(RunF32(Program({"4xf32", "4xf32"}, "4xf32",
                           R"(%1 = "stablehlo.multiply"(%a0, %a1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
%0 = "stablehlo.add"(%1, %a0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>)"),
                   {HostArray::F32({4}, {1, 2, 3, 4}), HostArray::F32({4}, {10, 20, 30, 40})}),
            (F{11, 42, 93, 164}));
}

TEST(Interpreter, NarrowFloatsRoundOncePerOperator) {
  // bf16: 1 + 2^-9 is 1; in f32 the sum of three would be 1 + 2^-8.
  std::vector<HostArray> results;
  Failure f = Fake().Run(Program({"1xbf16", "1xbf16"}, "1xbf16",
                                 R"(%1 = "stablehlo.add"(%a0, %a1) : (tensor<1xbf16>, tensor<1xbf16>) -> tensor<1xbf16>
%0 = "stablehlo.add"(%1, %a1) : (tensor<1xbf16>, tensor<1xbf16>) -> tensor<1xbf16>)"),
                         {HostArray::Of<uint16_t>(PJRT_Buffer_Type_BF16, {1}, {0x3F80}),
                          HostArray::Of<uint16_t>(PJRT_Buffer_Type_BF16, {1}, {0x3B00})},
                         &results);
  ASSERT_EQ(f.code, 0) << f.message;
  EXPECT_EQ(results[0].As<uint16_t>(), std::vector<uint16_t>{0x3F80});
}

TEST(Interpreter, IntegerCorners) {
  std::vector<HostArray> results;
  Failure f = Fake().Run(Program({"4xi32", "4xi32"}, "4xi32",
                                 R"(%0 = "stablehlo.divide"(%a0, %a1) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>)"),
                         {HostArray::Of<int32_t>(PJRT_Buffer_Type_S32, {4}, {7, -7, INT32_MIN, 5}),
                          HostArray::Of<int32_t>(PJRT_Buffer_Type_S32, {4}, {2, 2, -1, 0})},
                         &results);
  ASSERT_EQ(f.code, 0) << f.message;
  EXPECT_EQ(results[0].As<int32_t>(), (std::vector<int32_t>{3, -3, INT32_MIN, -1}));
}

TEST(Interpreter, DotReduceBroadcast) {
  // Row sums of [[1,2],[3,4]] x [[5,6],[7,8]] = [[19,22],[43,50]].
  EXPECT_EQ(RunF32(Program({"2x2xf32", "2x2xf32"}, "2xf32",
                           R"(%1 = "stablehlo.dot_general"(%a0,
%a1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> :
(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
%z = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
%0 = "stablehlo.reduce"(%1, %z) <{dimensions = array<i64: 1>}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
%s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
"stablehlo.return"(%s) : (tensor<f32>) -> ()
}) : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>)"),
                   {HostArray::F32({2, 2}, {1, 2, 3, 4}), HostArray::F32({2, 2}, {5, 6, 7, 8})}),
            (F{41, 93}));
}

TEST(Interpreter, SliceAndUpdate) {
  EXPECT_EQ(RunF32(Program({"4xf32", "2xf32", "i32"}, "4xf32",
                           R"(%1 = "stablehlo.dynamic_update_slice"(%a0, %a1, %a2) : (tensor<4xf32>, tensor<2xf32>,
tensor<i32>) -> tensor<4xf32>
%0 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>)"),
                   {HostArray::F32({4}, {1, 2, 3, 4}), HostArray::F32({2}, {8, 9}),
                    HostArray::Of<int32_t>(PJRT_Buffer_Type_S32, {}, {7})}),
            (F{9, 8, 2, 1}));  // the start is clamped to 2
}

TEST(Interpreter, GatherAndScatter) {
  auto indices = HostArray::Of<int32_t>(PJRT_Buffer_Type_S32, {3, 1}, {2, 0, 9});
  EXPECT_EQ(RunF32(Program({"3x2xf32", "3x1xi32"}, "3x2xf32",
                           R"(%0 = "stablehlo.gather"(%a0, %a1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> :
(tensor<3x2xf32>, tensor<3x1xi32>) -> tensor<3x2xf32>)"),
                   {HostArray::F32({3, 2}, {1, 2, 3, 4, 5, 6}), indices}),
            (F{5, 6, 1, 2, 5, 6}));  // gather clamps
  EXPECT_EQ(RunF32(Program({"3xf32", "3x1xi32", "3xf32"}, "3xf32",
                           R"(%0 = "stablehlo.scatter"(%a0, %a1,
%a2) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
index_vector_dim = 1>}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
%s = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
"stablehlo.return"(%s) : (tensor<f32>) -> ()
}) : (tensor<3xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<3xf32>)"),
                   {HostArray::F32({3}, {1, 2, 3}), indices, HostArray::F32({3}, {10, 20, 30})}),
            (F{21, 2, 13}));  // scatter drops
}

TEST(Interpreter, SortIsStable) {
  std::vector<HostArray> results;
  Failure f =
      Fake().Run(Program({"6xf32"}, "6xi32", R"(%i = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<6xi32>
%1:2 = "stablehlo.sort"(%a0, %i) <{dimension = 0 : i64, is_stable = true}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>, %xi: tensor<i32>, %yi: tensor<i32>):
%c = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>,
tensor<f32>) -> tensor<i1>
"stablehlo.return"(%c) : (tensor<i1>) -> ()
}) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
%0 = "stablehlo.reshape"(%1#1) : (tensor<6xi32>) -> tensor<6xi32>)"),
                 {HostArray::F32({6}, {2, 1, 2, 0, 1, 2})}, &results);
  ASSERT_EQ(f.code, 0) << f.message;
  EXPECT_EQ(results[0].As<int32_t>(), (std::vector<int32_t>{3, 1, 4, 0, 2, 5}));
}

TEST(Interpreter, While) {
  EXPECT_EQ(RunF32(Program({"f32"}, "f32",
                           R"(%t = "stablehlo.constant"() <{value = dense<100.0> : tensor<f32>}> : () -> tensor<f32>
%0 = "stablehlo.while"(%a0) ({
^bb0(%x: tensor<f32>):
%c = "stablehlo.compare"(%x, %t) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>,
tensor<f32>) -> tensor<i1>
"stablehlo.return"(%c) : (tensor<i1>) -> ()
}, {
^bb0(%x: tensor<f32>):
%y = "stablehlo.add"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
"stablehlo.return"(%y) : (tensor<f32>) -> ()
}) : (tensor<f32>) -> tensor<f32>)"),
                   {HostArray::F32({}, {3})}),
            (F{192}));
}

TEST(Interpreter, SpecialFunctions) {
  auto one = [](const char* op, float x) {
    return RunF32(Program({"f32"}, "f32", std::string("%0 = \"chlo.") + op + "\"(%a0) : (tensor<f32>) -> tensor<f32>"),
                  {HostArray::F32({}, {x})})
        .at(0);
  };
  EXPECT_NEAR(one("erf", 0.5f), 0.5204999f, 1e-6);
  EXPECT_NEAR(one("erf_inv", 0.5f), 0.4769363f, 1e-6);
  EXPECT_NEAR(one("erf_inv", -0.999f), -2.3267537f, 1e-5);
  EXPECT_NEAR(one("lgamma", 5.0f), 3.1780539f, 1e-5);
  EXPECT_NEAR(one("digamma", 1.0f), -0.5772157f, 1e-6);
  EXPECT_NEAR(one("digamma", -0.5f), 0.0364900f, 1e-5);
  EXPECT_NEAR(one("bessel_i1e", 1.0f), 0.2079104f, 1e-6);
}

TEST(Interpreter, KnownOperatorsCompileAndDoNotRun) {
  std::string text = Program({"4x4xf32"}, "4x4xf32",
                             R"(%0 = "stablehlo.cholesky"(%a0) <{lower = true}> : (tensor<4x4xf32>) -> tensor<4x4xf32>)");
  std::vector<HostArray> results;
  Failure f = Fake().Run(text, {HostArray::F32({4, 4}, F(16))}, &results);
  EXPECT_EQ(f.code, 12);
  EXPECT_NE(f.message.find("stablehlo.cholesky"), std::string::npos) << f.message;
}

TEST(Parser, MessagesNameTheLine) {
  PJRT_LoadedExecutable* e;
  Failure f = Fake().Compile(
      "module @m {\nfunc.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n%0 = \"stablehlo.frob\"(%a) : "
      "(tensor<4xf32>) -> tensor<4xf32>\n}\n}",
      &e);
  EXPECT_EQ(f.code, 3);
  EXPECT_EQ(f.message, "line 3: unknown operator stablehlo.frob");
  f = Fake().Compile(
      "module @m {\nfunc.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n\n%0 = \"stablehlo.add\"(%a, %a) : "
      "(tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>\n}\n}",
      &e);
  EXPECT_EQ(f.message, "line 4: stablehlo.add: operand 1 (%a) is tensor<4xf32>, the operator says tensor<4xi32>");
}

}  // namespace
}  // namespace fake_pjrt
