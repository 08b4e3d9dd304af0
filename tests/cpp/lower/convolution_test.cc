// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "cpp/lower/record_builder.h"

namespace tpu::lower {
namespace {

using ConvolutionTest = LowerTest;

TensorType F32(const std::vector<int64_t>& dims) { return TensorType::Of(DType::kF32, dims); }

// Small whole numbers: sums of their products are exact in every order.
HostTensor Numbers(const std::vector<int64_t>& dims, int64_t step) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i * step % 7 - 3));
  return HostTensor::Of(F32(dims), values);
}

struct Case {
  int64_t images, channels, height, width, filters, kernel, stride, padding, dilation, groups;
  int64_t out(int64_t size) const { return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
  std::vector<int64_t> x() const { return {images, channels, height, width}; }
  std::vector<int64_t> w() const { return {filters, channels / groups, kernel, kernel}; }
  std::vector<int64_t> y() const { return {images, filters, out(height), out(width)}; }
};

// Calls fn(position in x, in w, in y) for every product of the correlation.
template <class Fn>
void ForEachProduct(const Case& c, Fn fn) {
  const int64_t oh = c.out(c.height), ow = c.out(c.width), cg = c.channels / c.groups, fg = c.filters / c.groups;
  for (int64_t n = 0; n < c.images; ++n)
    for (int64_t o = 0; o < c.filters; ++o)
      for (int64_t i = 0; i < oh; ++i)
        for (int64_t j = 0; j < ow; ++j)
          for (int64_t f = 0; f < cg; ++f)
            for (int64_t a = 0; a < c.kernel; ++a)
              for (int64_t b = 0; b < c.kernel; ++b) {
                const int64_t row = i * c.stride - c.padding + a * c.dilation,
                              column = j * c.stride - c.padding + b * c.dilation;
                if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
                const int64_t channel = o / fg * cg + f;
                fn(((n * c.channels + channel) * c.height + row) * c.width + column,
                   ((o * cg + f) * c.kernel + a) * c.kernel + b, ((n * c.filters + o) * oh + i) * ow + j);
              }
}

double At(const HostTensor& t, int64_t i) { return t.Get(static_cast<size_t>(i)).real(); }

void AddTail(RecordBuilder& r, const Case& c, bool transposed) {
  r.IntList({c.stride, c.stride}).IntList({c.padding, c.padding}).IntList({c.dilation, c.dilation}).Bool(transposed);
  r.IntList({0, 0}).Int(c.groups);
}

const Case kCases[] = {
    {2, 3, 6, 5, 4, 3, 1, 1, 1, 1},   // patches or plain
    {2, 16, 5, 6, 3, 3, 2, 1, 1, 1},  // plain
    {2, 4, 7, 7, 6, 2, 1, 0, 2, 2},   // groups, dilation
    {2, 4, 6, 6, 8, 3, 2, 1, 1, 4},   // depthwise, two filters a channel
    {3, 5, 5, 4, 4, 1, 1, 0, 1, 1},   // pointwise
    {3, 5, 5, 4, 4, 1, 2, 0, 1, 1},    {33, 2, 4, 4, 3, 1, 1, 0, 1, 1},
    {37, 2, 5, 5, 2, 3, 1, 1, 1, 1},  // more images than one part of the weight's gradient has
    {2, 2, 3, 3, 2, 2, 1, 3, 1, 1},   // more padding than kernel
    {2, 6, 7, 5, 12, 3, 2, 1, 1, 3},  // few channels a group
    {1, 3, 11, 4, 3, 3, 1, 2, 2, 3},  // depthwise, a number of rows that has no divisors
    {60, 8, 20, 20, 8, 3, 1, 0, 1, 8},  // depthwise, more images than the gradient of the weight takes at once
};

// What a profile turns on must not change what comes out.
std::vector<pjrt::EngineProfile> Profiles() {
  pjrt::EngineProfile plain;
  pjrt::EngineProfile forms = plain;
  forms.convolution_features_last = forms.pointwise_conv_as_dot = forms.depthwise_conv_as_shifts = true;
  forms.convolution_patch_terms = 32;
  forms.convolution_split_groups = 2;
  forms.weight_grad_images = 16;
  forms.weight_grad_terms = 64;
  pjrt::EngineProfile shifts = forms;
  shifts.convolution_shift_terms = 36;
  return {plain, forms, shifts};
}

TEST_F(ConvolutionTest, Forward) {
  for (const Case& c : kCases) {
    const HostTensor x = Numbers(c.x(), 3), w = Numbers(c.w(), 5), bias = Numbers({c.filters}, 2);
    std::vector<double> want(static_cast<size_t>(F32(c.y()).numel()));
    const int64_t plane = c.out(c.height) * c.out(c.width);
    for (size_t i = 0; i < want.size(); ++i) want[i] = At(bias, static_cast<int64_t>(i) / plane % c.filters);
    ForEachProduct(
        c, [&](int64_t in_x, int64_t in_w, int64_t in_y) { want[static_cast<size_t>(in_y)] += At(x, in_x) * At(w, in_w); });
    for (const pjrt::EngineProfile& profile : Profiles()) {
      RecordBuilder r("convolution");
      r.Tensor(x).Tensor(w).Tensor(bias);
      AddTail(r, c, false);
      ExpectValues(r.Result(F32(c.y())).RunOn(profile).results[0], want);
    }
  }
}

TEST_F(ConvolutionTest, Backward) {
  for (const Case& c : kCases) {
    const HostTensor x = Numbers(c.x(), 3), w = Numbers(c.w(), 5), g = Numbers(c.y(), 2);
    std::vector<double> grad_x(static_cast<size_t>(x.type.numel())), grad_w(static_cast<size_t>(w.type.numel()));
    std::vector<double> grad_bias(static_cast<size_t>(c.filters));
    ForEachProduct(c, [&](int64_t in_x, int64_t in_w, int64_t in_y) {
      grad_x[static_cast<size_t>(in_x)] += At(g, in_y) * At(w, in_w);
      grad_w[static_cast<size_t>(in_w)] += At(g, in_y) * At(x, in_x);
    });
    const int64_t plane = c.out(c.height) * c.out(c.width);
    for (int64_t i = 0; i < g.type.numel(); ++i) grad_bias[static_cast<size_t>(i / plane % c.filters)] += At(g, i);
    for (const pjrt::EngineProfile& profile : Profiles()) {
      RecordBuilder r("convolution_backward");
      r.Tensor(g).Tensor(x).Tensor(w).IntList({c.filters});
      AddTail(r, c, false);
      r.BoolList({1, 1, 1}).Result(x.type).Result(w.type).Result(F32({c.filters}));
      const Outcome out = r.RunOn(profile);
      ExpectValues(out.results[0], grad_x);
      ExpectValues(out.results[1], grad_w);
      ExpectValues(out.results[2], grad_bias);
    }
  }
}

// A transposed convolution is the gradient of a plain one with respect to its input.
TEST_F(ConvolutionTest, Transposed) {
  const Case c{2, 4, 6, 6, 6, 2, 2, 0, 1, 2};
  const HostTensor y = Numbers(c.y(), 3), w = Numbers(c.w(), 5);
  std::vector<double> want(static_cast<size_t>(F32(c.x()).numel()));
  ForEachProduct(
      c, [&](int64_t in_x, int64_t in_w, int64_t in_y) { want[static_cast<size_t>(in_x)] += At(y, in_y) * At(w, in_w); });
  for (const pjrt::EngineProfile& profile : Profiles()) {
    RecordBuilder r("convolution");
    r.Tensor(y).Tensor(w).None();
    AddTail(r, c, true);
    ExpectValues(r.Result(F32(c.x())).RunOn(profile).results[0], want);
  }
}

// Operands and results whose memory has the features last: no value changes.
TEST_F(ConvolutionTest, FeaturesLast) {
  for (const Case& c : {Case{2, 3, 4, 4, 5, 3, 1, 1, 1, 1}, Case{2, 3, 4, 4, 6, 3, 1, 1, 1, 3}}) {
    const HostTensor memory = Numbers({2, 4, 4, 3}, 3), w = Numbers(c.w(), 5);
    std::vector<double> want(static_cast<size_t>(F32(c.y()).numel()));
    ForEachProduct(c, [&](int64_t in_x, int64_t in_w, int64_t in_y) {
      const int64_t n = in_x / 48, f = in_x / 16 % 3, position = in_x % 16;
      want[static_cast<size_t>(in_y)] += At(memory, (n * 16 + position) * 3 + f) * At(w, in_w);
    });
    for (const pjrt::EngineProfile& profile : Profiles()) {
      RecordBuilder r("convolution");
      r.View(memory, {DType::kF32, c.x(), {48, 1, 12, 3}}).Tensor(w).None();
      AddTail(r, c, false);
      const std::vector<int64_t> strides{16 * c.filters, 1, 4 * c.filters, c.filters};
      ExpectValues(r.Result(F32(c.y()), strides).RunOn(profile).results[0], want);
    }
  }
}

TEST_F(ConvolutionTest, NothingToConvolve) {
  const Case c{0, 3, 4, 4, 2, 3, 1, 1, 1, 1};
  RecordBuilder r("convolution_backward");
  r.Tensor(HostTensor::Zeros(F32(c.y()))).Tensor(HostTensor::Zeros(F32(c.x()))).Tensor(Numbers(c.w(), 1)).IntList({2});
  AddTail(r, c, false);
  const Outcome out = r.BoolList({0, 1, 1}).NoResult().Result(F32(c.w())).Result(F32({2})).Run();
  ASSERT_EQ(out.results.size(), 2u);  // of those that are defined
  ExpectValues(out.results[0], std::vector<double>(54, 0));
  ExpectValues(out.results[1], {0, 0});
}

TEST_F(ConvolutionTest, IntegersAreRefused) {
  const HostTensor x = HostTensor::Zeros(TensorType(DType::kI64, {1, 1, 3, 3})),
                   w = HostTensor::Zeros(TensorType(DType::kI64, {1, 1, 2, 2}));
  RecordBuilder r("convolution");
  r.Tensor(x).Tensor(w).None();
  AddTail(r, {1, 1, 3, 3, 1, 2, 1, 0, 1, 1}, false);
  const auto lowered = r.Result(TensorType(DType::kI64, {1, 1, 2, 2})).Lower();
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.status().kind(), ErrorKind::kNotImplemented);
}

}  // namespace
}  // namespace tpu::lower
