// SPDX-License-Identifier: Apache-2.0
// Average pooling: sums over windows, divided by what the window covers.
#include "lower/pooling.h"

#include <algorithm>

namespace tpu::lower {
namespace {

// Positions in the schema.
struct Divisors {
  int count_include_pad, divisor_override;
};

// Elements that each window counts along one dimension.
Ints Counts(const PoolWindow& w, bool include_pad) {
  Ints counts;
  for (int64_t i = 0; i < w.out; ++i) {
    const int64_t start = i * w.stride - w.padding;
    const int64_t end = std::min(start + w.kernel, w.in + w.padding);
    counts.push_back(include_pad ? end - start : std::min(end, w.in) - std::max<int64_t>(start, 0));
  }
  return counts;
}

// x, whose pooled dimensions start at `first`, divided by the number of elements of each window.
Value Divide(Lowering& l, Value x, int first, const std::vector<PoolWindow>& windows, const Divisors& at) {
  Builder& b = l.b;
  if (!l.IsNone(at.divisor_override)) return DivideByCount(b, x, static_cast<double>(l.Int(at.divisor_override)));
  double all = 1;
  Value counts;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Ints list = Counts(windows[i], l.Bool(at.count_include_pad));
    if (std::all_of(list.begin(), list.end(), [&](int64_t c) { return c == list[0]; })) {
      all *= static_cast<double>(list[0]);
      continue;
    }
    const std::vector<double> numbers(list.begin(), list.end());
    const Value row = b.ConstantList(TensorType(b.dtype(x), {static_cast<int64_t>(list.size())}), numbers);
    const Value spread = b.BroadcastInDim(row, b.dims(x), {first + static_cast<int64_t>(i)});
    counts = counts.valid() ? b.Mul(counts, spread) : spread;
  }
  if (!counts.valid()) return DivideByCount(b, x, all);
  return b.Div(x, all == 1 ? counts : b.Mul(counts, b.Like(counts, all)));
}

// avg_pool{2,3}d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
template <int n>
void AvgPool(Lowering& l) {
  Builder& b = l.b;
  if (ResultIsEmpty(l, 0)) return SetResultFill(l, 0, 0);
  const TensorType in = l.TypeOf(0);
  const std::vector<PoolWindow> windows = PoolWindows(l, n, in, l.ResultType(0), {.kernel = 1});
  const auto [x, first, last] = SpatialOf(l, 0, OpMathType(in.dtype), n);
  hlo::Window window;
  window.dimensions = window.strides = Ints(in.rank, 1);
  window.low = window.high = Ints(in.rank, 0);
  Ints crop = b.dims(x);
  for (size_t i = 0; i < windows.size(); ++i) {
    const PoolWindow& w = windows[i];
    const size_t d = static_cast<size_t>(first) + i;
    const int64_t high = (w.out - 1) * w.stride + w.kernel - w.padding - w.in;
    window.dimensions[d] = w.kernel;
    window.strides[d] = w.stride;
    window.low[d] = w.padding;
    window.high[d] = std::max<int64_t>(high, 0);
    crop[d] += std::min<int64_t>(high, 0);
  }
  const Value seen = b.Slice(x, Ints(crop.size(), 0), crop);
  const Value sums = b.ReduceWindow(seen, b.Constant(b.dtype(x), 0), window, "add");
  SetResultAs(l, 0, Logical(b, Divide(l, sums, first, windows, {5, 6}), last));
}

// The outputs whose windows hold each element.
Terms Covering(const PoolWindow& w) {
  Terms terms(static_cast<size_t>(w.in));
  for (int64_t i = 0; i < w.out; ++i) {
    const int64_t start = i * w.stride - w.padding;
    for (int64_t p = std::max<int64_t>(start, 0); p < std::min(start + w.kernel, w.in); ++p)
      terms[static_cast<size_t>(p)].push_back({i, 1});
  }
  return terms;
}

// avg_pool{2,3}d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
template <int n>
void AvgPoolBackward(Lowering& l) {
  Builder& b = l.b;
  const TensorType in = l.TypeOf(1);
  if (ResultIsEmpty(l, 0) || l.TypeOf(0).numel() == 0) return SetResultFill(l, 0, 0);
  const std::vector<PoolWindow> windows = PoolWindows(l, n, in, l.TypeOf(0), {.kernel = 2});
  const auto [grad, first, last] = SpatialOf(l, 0, OpMathType(in.dtype), n);
  Value x = Divide(l, grad, first, windows, {6, 7});
  for (int i = 0; i < n; ++i) x = Resample(l, x, first + i, Covering(windows[static_cast<size_t>(i)]));
  SetResultAs(l, 0, Logical(b, x, last));
}

// ---- adaptive: output i is the mean of [start(i), end(i))

Terms AdaptiveTerms(int64_t in, int64_t out) {
  Terms terms;
  for (int64_t i = 0; i < out; ++i) {
    terms.emplace_back();
    const int64_t start = AdaptiveStart(i, in, out), end = AdaptiveEnd(i, in, out);
    for (int64_t p = start; p < end; ++p) terms.back().push_back({p, 1.0 / static_cast<double>(end - start)});
  }
  return terms;
}

// _adaptive_avg_pool{2,3}d(self, output_size)
template <int n>
void AdaptiveAvgPool(Lowering& l) {
  const TensorType in = l.TypeOf(0), out = l.ResultType(0);
  if (out.numel() == 0) return SetResultFill(l, 0, 0);
  const auto [whole, first, last] = SpatialOf(l, 0, OpMathType(in.dtype), n);
  Value x = whole;
  for (int i = 0; i < n; ++i)
    x = Resample(l, x, first + i, AdaptiveTerms(in.dims[in.rank - n + i].size(), out.dims[in.rank - n + i].size()));
  SetResultAs(l, 0, Logical(l.b, x, last));
}

// _adaptive_avg_pool{2,3}d_backward(grad_output, self)
template <int n>
void AdaptiveAvgPoolBackward(Lowering& l) {
  const TensorType out = l.TypeOf(0), in = l.TypeOf(1);
  if (ResultIsEmpty(l, 0) || out.numel() == 0) return SetResultFill(l, 0, 0);
  const auto [whole, first, last] = SpatialOf(l, 0, OpMathType(in.dtype), n);
  Value x = whole;
  for (int i = 0; i < n; ++i) {
    const int64_t from = in.dims[in.rank - n + i].size(), to = out.dims[in.rank - n + i].size();
    x = Resample(l, x, first + i, Transposed(AdaptiveTerms(from, to), from));
  }
  SetResultAs(l, 0, Logical(l.b, x, last));
}

constexpr Rule kAverageRules[] = {
    {.name = "avg_pool2d", .lower = AvgPool<2>},
    {.name = "avg_pool3d", .lower = AvgPool<3>},
    {.name = "avg_pool2d_backward", .lower = AvgPoolBackward<2>},
    {.name = "avg_pool3d_backward", .lower = AvgPoolBackward<3>},
    {.name = "_adaptive_avg_pool2d", .lower = AdaptiveAvgPool<2>},
    {.name = "_adaptive_avg_pool3d", .lower = AdaptiveAvgPool<3>},
    {.name = "_adaptive_avg_pool2d_backward", .lower = AdaptiveAvgPoolBackward<2>},
    {.name = "_adaptive_avg_pool3d_backward", .lower = AdaptiveAvgPoolBackward<3>},
};

}  // namespace

std::vector<PoolWindow> PoolWindows(const Lowering& l, int n, const TensorType& in, const TensorType& out, PoolArguments at) {
  const auto number = [&](int argument, int i) {
    const Ints& list = l.IntList(argument);
    return list.size() == 1 ? list[0] : list[static_cast<size_t>(i)];
  };
  std::vector<PoolWindow> windows;
  for (int i = 0; i < n; ++i) {
    PoolWindow w{};
    w.in = in.dims[in.rank - n + i].size();
    w.out = out.dims[out.rank - n + i].size();
    w.kernel = number(at.kernel, i);
    w.stride = l.IntList(at.kernel + 1).empty() ? w.kernel : number(at.kernel + 1, i);
    w.padding = number(at.kernel + 2, i);
    w.dilation = at.dilation < 0 ? 1 : number(at.dilation, i);
    windows.push_back(w);
  }
  return windows;
}

std::span<const Rule> PoolingRules() {
  static const std::vector<Rule>& rules = *[] {
    auto* all = new std::vector<Rule>(std::begin(kAverageRules), std::end(kAverageRules));
    const auto more = MaxPoolRules();
    all->insert(all->end(), more.begin(), more.end());
    return all;
  }();
  return rules;
}

}  // namespace tpu::lower
