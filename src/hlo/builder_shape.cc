// SPDX-License-Identifier: Apache-2.0
// Operations that move elements without computing.
#include <algorithm>

#include "hlo/builder.h"
#include "hlo/literal.h"

namespace tpu::hlo {
namespace {

template <class T>
size_t Size(const T& t) {
  return static_cast<size_t>(t);
}

bool AllZero(const Ints& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 0; });
}

}  // namespace

Value Builder::BroadcastInDim(Value x, const Ints& dims, const Ints& broadcast_dimensions) {
  if (!Usable(x)) return {};
  if (dims.size() > kMaxRank) return Internal("broadcast to more than 8 dimensions");
  TensorType from = type(x), to = TensorType::Of(from.dtype, dims);
  bool fits = broadcast_dimensions.size() == Size(from.rank);
  for (int i = 0; fits && i < from.rank; ++i) {
    int64_t d = broadcast_dimensions[Size(i)];
    fits = d >= 0 && d < to.rank && (i == 0 || d > broadcast_dimensions[Size(i - 1)]) &&
           (from.dims[i] == to.dims[d] || from.dims[i].size() == 1);
  }
  if (!fits) return Internal("broadcast_in_dim of " + from.ToHlo() + " to " + to.ToHlo());
  if (from == to) return x;
  return Emit("broadcast_in_dim", {x}, to, "broadcast_dimensions = " + I64Array(broadcast_dimensions));
}

Value Builder::Broadcast(Value x, const Ints& dims) {
  if (!Usable(x)) return {};
  auto offset = static_cast<int64_t>(dims.size()) - rank(x);
  if (offset < 0) return Internal("broadcast of " + type(x).ToHlo() + " to fewer dimensions");
  Ints map;
  for (int i = 0; i < rank(x); ++i) map.push_back(offset + i);
  return BroadcastInDim(x, dims, map);
}

Value Builder::Reshape(Value x, const Ints& dims) {
  if (!Usable(x)) return {};
  if (dims.size() > kMaxRank) return Internal("reshape to more than 8 dimensions");
  TensorType to = TensorType::Of(dtype(x), dims);
  if (to.numel() != type(x).numel()) return Internal("reshape of " + type(x).ToHlo() + " to " + to.ToHlo());
  if (to == type(x)) return x;
  return Emit("reshape", {x}, to);
}

Value Builder::Transpose(Value x, const Ints& permutation) {
  if (!Usable(x)) return {};
  TensorType from = type(x), to = TensorType::Scalar(from.dtype);
  bool identity = true, fits = permutation.size() == Size(from.rank);
  unsigned seen = 0;
  for (size_t i = 0; fits && i < permutation.size(); ++i) {
    int64_t p = permutation[i];
    fits = p >= 0 && p < from.rank && !(seen >> p & 1);
    if (!fits) break;
    seen |= 1u << p;
    identity = identity && p == static_cast<int64_t>(i);
    to.Append(from.dims[p]);
  }
  if (!fits) return Internal("transpose of " + from.ToHlo() + " by " + Bracketed(permutation));
  if (identity) return x;
  const Value y = Emit("transpose", {x}, to, "permutation = " + I64Array(permutation));
  if (y.valid()) transposed_[y.id] = {x, permutation};
  return y;
}

Value Builder::Slice(Value x, const Ints& start, const Ints& limit, const Ints& strides) {
  if (!Usable(x)) return {};
  TensorType from = type(x), to = TensorType::Scalar(from.dtype);
  Ints steps = strides.empty() ? Ints(Size(from.rank), 1) : strides;
  bool whole = true, fits = start.size() == Size(from.rank) && limit.size() == start.size() && steps.size() == start.size();
  for (size_t i = 0; fits && i < start.size(); ++i) {
    fits = start[i] >= 0 && start[i] <= limit[i] && limit[i] <= from.dims[i].size() && steps[i] >= 1;
    if (fits) to.Append((limit[i] - start[i] + steps[i] - 1) / steps[i]);
    whole = whole && start[i] == 0 && limit[i] == from.dims[i].size() && steps[i] == 1;
  }
  if (!fits) return Internal("slice of " + from.ToHlo() + " from " + Bracketed(start) + " to " + Bracketed(limit));
  if (whole) return x;
  return Emit("slice", {x}, to,
              "start_indices = " + I64Array(start) + ", limit_indices = " + I64Array(limit) + ", strides = " + I64Array(steps));
}

Value Builder::SliceDim(Value x, int dimension, int64_t start, int64_t limit, int64_t stride) {
  if (!Usable(x)) return {};
  Ints starts(Size(rank(x)), 0), limits = dims(x), strides(Size(rank(x)), 1);
  if (dimension < 0 || dimension >= rank(x)) return Internal("slice along dimension " + std::to_string(dimension));
  starts[Size(dimension)] = start;
  limits[Size(dimension)] = limit;
  strides[Size(dimension)] = stride;
  return Slice(x, starts, limits, strides);
}

Value Builder::DynamicSlice(Value x, const Values& starts, const Ints& sizes) {
  if (!Usable(x) || !Usable(starts)) return {};
  TensorType to = TensorType::Scalar(dtype(x));
  bool fits = starts.size() == Size(rank(x)) && sizes.size() == starts.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    fits = sizes[i] >= 0 && sizes[i] <= type(x).dims[i].size() && type(starts[i]) == type(starts[0]) && rank(starts[i]) == 0;
    if (fits) to.Append(sizes[i]);
  }
  if (!fits) return Internal("dynamic_slice of " + type(x).ToHlo() + " to sizes " + Bracketed(sizes));
  if (to == type(x)) return x;  // the starts are clamped to 0
  Values operands = {x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return Emit("dynamic_slice", operands, to, "slice_sizes = " + I64Array(sizes));
}

Value Builder::DynamicUpdateSlice(Value x, Value update, const Values& starts) {
  if (!Usable({x, update}) || !Usable(starts)) return {};
  bool fits = starts.size() == Size(rank(x)) && rank(update) == rank(x) && dtype(update) == dtype(x);
  for (size_t i = 0; fits && i < starts.size(); ++i) {
    fits = type(update).dims[i].size() <= type(x).dims[i].size() && type(starts[i]) == type(starts[0]) && rank(starts[i]) == 0;
  }
  if (!fits) return Internal("dynamic_update_slice of " + type(x).ToHlo() + " by " + type(update).ToHlo());
  if (type(update) == type(x)) return update;
  Values operands = {x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return Emit("dynamic_update_slice", operands, type(x));
}

Value Builder::Concatenate(const Values& xs, int dimension) {
  if (xs.empty()) return Internal("concatenate of nothing");
  if (!Usable(xs)) return {};
  TensorType to = type(xs[0]);
  bool fits = dimension >= 0 && dimension < to.rank;
  int64_t size = 0;
  for (Value x : xs) {
    TensorType t = type(x);
    fits = fits && t.rank == to.rank && t.dtype == to.dtype;
    for (int i = 0; fits && i < t.rank; ++i) fits = i == dimension || t.dims[i] == to.dims[i];
    if (fits) size += t.dims[dimension].size();
  }
  if (!fits) return Internal("concatenate of different types along dimension " + std::to_string(dimension));
  if (xs.size() == 1) return xs[0];
  to.dims[dimension] = size;
  std::string attributes = "dimension = ";
  AppendInt(&attributes, dimension);
  attributes += " : i64";
  return Emit("concatenate", xs, to, attributes);
}

Value Builder::Pad(Value x, Value value, const Ints& low, const Ints& high, const Ints& interior) {
  if (!Usable({x, value})) return {};
  TensorType from = type(x), to = TensorType::Scalar(from.dtype);
  Ints inner = interior.empty() ? Ints(Size(from.rank), 0) : interior;
  bool fits = rank(value) == 0 && dtype(value) == from.dtype && low.size() == Size(from.rank) && high.size() == low.size() &&
              inner.size() == low.size();
  for (size_t i = 0; fits && i < low.size(); ++i) {
    int64_t size = from.dims[i].size();
    int64_t padded = low[i] + high[i] + size + std::max<int64_t>(size - 1, 0) * inner[i];
    fits = padded >= 0 && inner[i] >= 0;
    if (fits) to.Append(padded);
  }
  if (!fits) return Internal("pad of " + from.ToHlo() + " by " + Bracketed(low) + " and " + Bracketed(high));
  if (AllZero(low) && AllZero(high) && AllZero(inner)) return x;
  return Emit("pad", {x, value}, to,
              "edge_padding_low = " + I64Array(low) + ", edge_padding_high = " + I64Array(high) +
                  ", interior_padding = " + I64Array(inner));
}

Value Builder::Reverse(Value x, const Ints& dimensions) {
  if (!Usable(x)) return {};
  for (int64_t d : dimensions) {
    if (d < 0 || d >= rank(x)) return Internal("reverse of dimension " + std::to_string(d));
  }
  if (dimensions.empty()) return x;
  return Emit("reverse", {x}, type(x), "dimensions = " + I64Array(dimensions));
}

}  // namespace tpu::hlo
