// SPDX-License-Identifier: Apache-2.0
// stablehlo.convolution, by its definition: one multiplication at a time.
#include <algorithm>

#include "interpreter.h"
#include "op_table.h"

namespace fake_pjrt {
namespace {

using Kind = Attr::Kind;

// Where one tensor has its two named dimensions, and its spatial ones in order.
struct Order {
  int64_t first = -1, second = -1;
  Dims spatial;
};

// "[b, f, 0, 1]" with names "bf". Anything else leaves a place at -1.
Order ParseOrder(const std::string& text, const char* names) {
  Order order;
  int64_t at = 0;
  std::vector<std::pair<int64_t, int64_t>> spatial;
  for (char c : text) {
    if (c == names[0]) order.first = at;
    if (c == names[1]) order.second = at;
    if (c >= '0' && c <= '9') spatial.emplace_back(c - '0', at);
    if (c == ',') ++at;
  }
  std::sort(spatial.begin(), spatial.end());
  for (auto [number, place] : spatial) order.spatial.push_back(place);
  return order;
}

struct Convolution {
  Order in, kernel, out;
  Dims stride, base_dilation, dilation, low, high, reversal;
  int64_t feature_groups, batch_groups;

  explicit Convolution(const Op& op) {
    const std::string& text = op.attr("dimension_numbers").text;
    const size_t x = text.find("]x["), arrow = text.find("]->[");
    if (x != std::string::npos && arrow != std::string::npos) {
      in = ParseOrder(text.substr(0, x), "bf");
      kernel = ParseOrder(text.substr(x, arrow - x), "io");
      out = ParseOrder(text.substr(arrow), "bf");
    }
    const size_t n = in.spatial.size();
    const auto or_all = [&](const char* name, int64_t neutral) { return op.attr(name) ? op.ints(name) : Dims(n, neutral); };
    stride = or_all("window_strides", 1);
    base_dilation = or_all("lhs_dilation", 1);
    dilation = or_all("rhs_dilation", 1);
    reversal = or_all("window_reversal", 0);
    low = high = Dims(n, 0);
    const Dims padding = op.ints("padding");
    for (size_t i = 0; i < n && padding.size() == 2 * n; ++i) low[i] = padding[2 * i], high[i] = padding[2 * i + 1];
    feature_groups = op.number("feature_group_count", 1);
    batch_groups = op.number("batch_group_count", 1);
  }
};

bool Complete(const Order& o, size_t rank) { return o.first >= 0 && o.second >= 0 && o.spatial.size() + 2 == rank; }

std::string VerifyConvolution(const Op& op) {
  const Convolution c(op);
  const Type &x = op.operand_types[0], &w = op.operand_types[1];
  if (!Complete(c.in, x.rank()) || !Complete(c.kernel, x.rank()) || !Complete(c.out, x.rank()) || w.rank() != x.rank())
    return "dimension_numbers do not fit the operands";
  const size_t n = c.in.spatial.size();
  for (const Dims* list : {&c.stride, &c.base_dilation, &c.dilation, &c.reversal})
    if (list->size() != n) return "one window entry a spatial dimension is needed";
  if (c.feature_groups < 1 || c.batch_groups < 1 || (c.feature_groups > 1 && c.batch_groups > 1)) return "bad group counts";
  const int64_t batch = x.dims[c.in.first], features = x.dims[c.in.second], outputs = w.dims[c.kernel.second];
  if (features != w.dims[c.kernel.first] * c.feature_groups) return "input features differ";
  if (outputs % c.feature_groups || outputs % c.batch_groups || batch % c.batch_groups) return "groups do not divide";
  Dims dims(x.rank());
  dims[c.out.first] = batch / c.batch_groups;
  dims[c.out.second] = outputs;
  for (size_t i = 0; i < n; ++i) {
    if (c.stride[i] < 1 || c.base_dilation[i] < 1 || c.dilation[i] < 1) return "window entries must be positive";
    const int64_t size = x.dims[c.in.spatial[i]], taps = w.dims[c.kernel.spatial[i]];
    const int64_t padded = (size ? (size - 1) * c.base_dilation[i] + 1 : 0) + c.low[i] + c.high[i];
    const int64_t window = taps ? (taps - 1) * c.dilation[i] + 1 : 0;
    dims[c.out.spatial[i]] = padded < window || padded <= 0 ? 0 : (padded - window) / c.stride[i] + 1;
  }
  return WrongResult(op, op.result_types[0].With(dims));
}

// The flat position in x that output `r` sees through tap `k`, batch and features aside; -1: nothing.
int64_t Position(const Convolution& c, const Type& x, const Dims& strides, const Dims& r, const Dims& taps, const Dims& k) {
  int64_t position = 0;
  for (size_t i = 0; i < c.stride.size(); ++i) {
    const int64_t tap = c.reversal[i] ? taps[i] - 1 - k[i] : k[i];
    const int64_t at = r[c.out.spatial[i]] * c.stride[i] + tap * c.dilation[i] - c.low[i];
    if (at < 0 || at % c.base_dilation[i] || at / c.base_dilation[i] >= x.dims[c.in.spatial[i]]) return -1;
    position += at / c.base_dilation[i] * strides[c.in.spatial[i]];
  }
  return position;
}

template <class T>
T Element(const Convolution& c, const Tensor& x, const Tensor& w, const Dims& r) {
  const Dims xs = RowMajorStrides(x.type.dims), ws = RowMajorStrides(w.type.dims);
  const int64_t channels = w.type.dims[c.kernel.first], outputs = w.type.dims[c.kernel.second], o = r[c.out.second];
  const int64_t feature = o / (outputs / c.feature_groups) * channels;
  const int64_t image = r[c.out.first] + o / (outputs / c.batch_groups) * (x.type.dims[c.in.first] / c.batch_groups);
  Dims taps, k(c.stride.size(), 0);
  for (int64_t d : c.kernel.spatial) taps.push_back(w.type.dims[d]);
  T sum(0);
  if (NumElements(taps) == 0) return sum;
  do {
    const int64_t position = Position(c, x.type, xs, r, taps, k);
    if (position < 0) continue;
    int64_t in_kernel = o * ws[c.kernel.second];
    for (size_t i = 0; i < k.size(); ++i) in_kernel += k[i] * ws[c.kernel.spatial[i]];
    for (int64_t f = 0; f < channels; ++f) {
      sum += x.As<T>()[position + image * xs[c.in.first] + (feature + f) * xs[c.in.second]] *
             w.As<T>()[in_kernel + f * ws[c.kernel.first]];
    }
  } while (NextIndex(taps, &k));
  return sum;
}

Error EvalConvolution(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  const Convolution c(op);
  const Type& type = op.result_types[0];
  const Tensor x = Widened(in[0]), w = Widened(in[1]);
  if (x.type.dtype != w.type.dtype || x.type.dtype != tpu::OpMathType(type.dtype)) {
    return {kUnimplemented, "a convolution of mixed types"};
  }
  Tensor sum = Tensor::Empty(type.With(x.type.dtype));
  VisitCompute(x.type.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      Dims r(type.rank(), 0);
      int64_t i = 0;
      if (type.numel() > 0) do {
          sum.As<T>()[i++] = Element<T>(c, x, w, r);
        } while (NextIndex(type.dims, &r));
    }
  });
  out->push_back(Narrowed(sum, type.dtype));
  return {};
}

}  // namespace

const std::vector<OpDef>& ConvolutionOps() {
  static const auto* ops = new std::vector<OpDef>{
      {"stablehlo.convolution",
       2,
       2,
       1,
       0,
       {{"dimension_numbers", Kind::kEnum, true, "stablehlo.conv"},
        {"window_strides", Kind::kArray},
        {"padding", Kind::kDense},
        {"lhs_dilation", Kind::kArray},
        {"rhs_dilation", Kind::kArray},
        {"window_reversal", Kind::kArray},
        {"feature_group_count", Kind::kInt, true, "i64"},
        {"batch_group_count", Kind::kInt, true, "i64"},
        {"precision_config", Kind::kList}},
       VerifyConvolution,
       EvalConvolution},
  };
  return *ops;
}

}  // namespace fake_pjrt
