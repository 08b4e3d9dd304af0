// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using ShapeTest = LowerTest;

TensorType F32(std::initializer_list<int64_t> dims) { return TensorType(DType::kF32, dims); }

TEST_F(ShapeTest, CatPromotesAndSkipsEmptyTensors) {
  const HostTensor a = HostTensor::Of(TensorType(DType::kI32, {1, 2}), {1, 2}), b = HostTensor::Of(F32({1, 2}), {3.5, 4});
  const HostTensor empty = HostTensor::Zeros(F32({0}));
  ExpectValues(RecordBuilder("cat").TensorList({a, empty, b}).Int(-2).Result(F32({2, 2})).Run().results[0], {1, 2, 3.5, 4});
  ExpectValues(RecordBuilder("cat").TensorList({b, b}).Int(1).Result(F32({1, 4})).Run().results[0], {3.5, 4, 3.5, 4});
  ExpectValues(RecordBuilder("cat").TensorList({empty, empty}).Int(0).Result(F32({0})).Run().results[0], {});
}

TEST_F(ShapeTest, Stack) {
  const HostTensor a = HostTensor::Of(F32({2}), {1, 2}), b = HostTensor::Of(F32({2}), {3, 4});
  ExpectValues(RecordBuilder("stack").TensorList({a, b}).Int(-1).Result(F32({2, 2})).Run().results[0], {1, 3, 2, 4});
}

TEST_F(ShapeTest, Repeat) {
  const HostTensor x = HostTensor::Of(F32({2, 1}), {1, 2});
  ExpectValues(RecordBuilder("repeat").Tensor(x).IntList({2, 1, 3}).Result(F32({2, 2, 3})).Run().results[0],
               {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  ExpectValues(RecordBuilder("repeat").Tensor(x).IntList({0, 1}).Result(F32({0, 1})).Run().results[0], {});
}

TEST_F(ShapeTest, FlipAndRoll) {
  const HostTensor x = HostTensor::Range(F32({2, 3}));
  ExpectValues(RecordBuilder("flip").Tensor(x).IntList({-1}).Result(F32({2, 3})).Run().results[0], {2, 1, 0, 5, 4, 3});
  ExpectValues(RecordBuilder("roll").Tensor(x).IntList({-4}).IntList({}).Result(F32({2, 3})).Run().results[0],
               {4, 5, 0, 1, 2, 3});
  ExpectValues(RecordBuilder("roll").Tensor(x).IntList({1, 1}).IntList({0, 1}).Result(F32({2, 3})).Run().results[0],
               {5, 3, 4, 2, 0, 1});
}

TEST_F(ShapeTest, ConstantPadWithNegativeWidths) {
  const HostTensor x = HostTensor::Range(F32({2, 3}));
  ExpectValues(
      RecordBuilder("constant_pad_nd").Tensor(x).IntList({-1, 1, 1, 0}).Scalar(9.5).Result(F32({3, 3})).Run().results[0],
      {9.5, 9.5, 9.5, 1, 2, 9.5, 4, 5, 9.5});
}

TEST_F(ShapeTest, PixelShuffleThereAndBack) {
  const HostTensor x = HostTensor::Range(F32({4, 1, 2}));
  const HostTensor y = RecordBuilder("pixel_shuffle").Tensor(x).Int(2).Result(F32({1, 2, 4})).Run().results[0];
  ExpectValues(y, {0, 2, 1, 3, 4, 6, 5, 7});
  ExpectValues(RecordBuilder("pixel_unshuffle").Tensor(y).Int(2).Result(F32({4, 1, 2})).Run().results[0], x.Numbers());
}

TEST_F(ShapeTest, ViewGradients) {
  const HostTensor g = HostTensor::Of(F32({2}), {7, 8});
  ExpectValues(RecordBuilder("select_backward").Tensor(g).IntList({2, 3}).Int(1).Int(-1).Result(F32({2, 3})).Run().results[0],
               {0, 0, 7, 0, 0, 8});
  ExpectValues(RecordBuilder("slice_backward")
                   .Tensor(g)
                   .IntList({6})
                   .Int(0)
                   .Int(1)
                   .Int(9223372036854775807)
                   .Int(3)
                   .Result(F32({6}))
                   .Run()
                   .results[0],
               {0, 7, 0, 0, 8, 0});
  ExpectValues(
      RecordBuilder("diagonal_backward").Tensor(g).IntList({2, 3}).Int(1).Int(0).Int(1).Result(F32({2, 3})).Run().results[0],
      {0, 7, 0, 0, 0, 8});
  ExpectValues(
      RecordBuilder("diagonal_backward").Tensor(g).IntList({3, 2}).Int(-1).Int(0).Int(1).Result(F32({3, 2})).Run().results[0],
      {0, 0, 7, 0, 0, 8});
}

TEST_F(ShapeTest, UnfoldBackwardAddsOverlaps) {
  const HostTensor g = HostTensor::Of(F32({3, 2}), {1, 2, 3, 4, 5, 6});
  ExpectValues(RecordBuilder("unfold_backward").Tensor(g).IntList({4}).Int(0).Int(2).Int(1).Result(F32({4})).Run().results[0],
               {1, 5, 9, 6});
  // Long windows go through a scatter.
  const HostTensor wide = HostTensor::Of(F32({2, 20}), std::vector<double>(40, 1));
  std::vector<double> expected(30, 1);
  for (size_t i = 10; i < 20; ++i) expected[i] = 2;
  ExpectValues(
      RecordBuilder("unfold_backward").Tensor(wide).IntList({30}).Int(0).Int(20).Int(10).Result(F32({30})).Run().results[0],
      expected);
}

TEST_F(ShapeTest, ScatterFormsOfViews) {
  const HostTensor x = HostTensor::Range(F32({2, 3})), s = HostTensor::Of(F32({2}), {7, 8});
  ExpectValues(RecordBuilder("select_scatter").Tensor(x).Tensor(s).Int(1).Int(-2).Result(F32({2, 3})).Run().results[0],
               {0, 7, 2, 3, 8, 5});
  const HostTensor two = HostTensor::Of(F32({2, 2}), {7, 8, 9, 10});
  ExpectValues(
      RecordBuilder("slice_scatter").Tensor(x).Tensor(two).Int(1).None().None().Int(2).Result(F32({2, 3})).Run().results[0],
      {7, 1, 8, 9, 4, 10});
  ExpectValues(RecordBuilder("diagonal_scatter").Tensor(x).Tensor(s).Int(0).Int(0).Int(1).Result(F32({2, 3})).Run().results[0],
               {7, 1, 2, 3, 8, 5});
}

}  // namespace
}  // namespace tpu::lower
