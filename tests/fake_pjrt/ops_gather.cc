// SPDX-License-Identifier: Apache-2.0
// gather, scatter.
#include <algorithm>
#include <cstring>

#include "interpreter.h"
#include "op_table.h"
#include "scalar_region.h"
#include "strided.h"

namespace fake_pjrt {
namespace {

using Kind = Attr::Kind;
using Ints = std::vector<int64_t>;

bool Has(const Ints& list, size_t x) { return std::count(list.begin(), list.end(), static_cast<int64_t>(x)) > 0; }

// Both operators in one vocabulary. "Window" is gather's slice and scatter's update window; "data" is gather's operand
// and scatter's inputs; "moved" is gather's result and scatter's updates.
struct IndexDims {
  Ints window_dims;     // dims of `moved` that run inside a window
  Ints collapsed;       // dims of `data` that a window spans by one element and that `moved` does not have
  Ints data_batching;   // dims of `data` that are tied to ...
  Ints index_batching;  // ... these dims of the indices
  Ints index_map;       // index component -> dim of `data`
  int64_t vector_dim = 0;

  static IndexDims OfGather(const Op& op) {
    const Attr& a = op.attr("dimension_numbers");
    return {a.Field("offset_dims").Ints(),           a.Field("collapsed_slice_dims").Ints(),
            a.Field("operand_batching_dims").Ints(), a.Field("start_indices_batching_dims").Ints(),
            a.Field("start_index_map").Ints(),       a.Field("index_vector_dim").number};
  }
  static IndexDims OfScatter(const Op& op) {
    const Attr& a = op.attr("scatter_dimension_numbers");
    return {a.Field("update_window_dims").Ints(),           a.Field("inserted_window_dims").Ints(),
            a.Field("input_batching_dims").Ints(),          a.Field("scatter_indices_batching_dims").Ints(),
            a.Field("scatter_dims_to_operand_dims").Ints(), a.Field("index_vector_dim").number};
  }

  // The dims of `data` that windows have, in order.
  Ints KeptDims(size_t data_rank) const {
    Ints kept;
    for (size_t d = 0; d < data_rank; ++d)
      if (!Has(collapsed, d) && !Has(data_batching, d)) kept.push_back(static_cast<int64_t>(d));
    return kept;
  }
  // The dims of the indices without the index vector.
  Dims BatchShape(const Type& indices) const {
    Dims dims = indices.dims;
    if (vector_dim < static_cast<int64_t>(dims.size())) dims.erase(dims.begin() + vector_dim);
    return dims;
  }

  std::string Check(const Type& data, const Type& indices, size_t moved_rank) const {
    int64_t rank = static_cast<int64_t>(data.rank()), index_rank = static_cast<int64_t>(indices.rank());
    if (!tpu::IsInteger(indices.dtype)) return "indices are " + indices.ToString();
    if (vector_dim < 0 || vector_dim > index_rank) return "index_vector_dim is out of range";
    int64_t components = vector_dim == index_rank ? 1 : indices.dims[vector_dim];
    if (static_cast<int64_t>(index_map.size()) != components)
      return "the index map has " + std::to_string(index_map.size()) + " entries for " + std::to_string(components) +
             " components";
    auto distinct = [](Ints list, int64_t limit) {
      std::sort(list.begin(), list.end());
      return std::adjacent_find(list.begin(), list.end()) == list.end() &&
             (list.empty() || (list.front() >= 0 && list.back() < limit));
    };
    Ints taken = collapsed;
    taken.insert(taken.end(), data_batching.begin(), data_batching.end());
    if (!distinct(taken, rank) || !distinct(index_map, rank) || !distinct(window_dims, static_cast<int64_t>(moved_rank)) ||
        !distinct(index_batching, index_rank))
      return "a dimension is out of range or repeats";
    for (const Ints* list : {&window_dims, &collapsed})
      if (!std::is_sorted(list->begin(), list->end())) return "dimension lists must be sorted";
    if (data_batching.size() != index_batching.size()) return "batching lists of different length";
    for (size_t i = 0; i < data_batching.size(); ++i) {
      if (Has(index_map, data_batching[i])) return "a batching dimension is indexed";
      if (index_batching[i] == vector_dim || data.dims[data_batching[i]] != indices.dims[index_batching[i]])
        return "batching dimensions do not fit";
    }
    if (KeptDims(data.rank()).size() != window_dims.size())
      return "the windows have " + std::to_string(window_dims.size()) + " dimensions, expected " +
             std::to_string(KeptDims(data.rank()).size());
    if (moved_rank != window_dims.size() + BatchShape(indices).size()) return "wrong rank";
    return "";
  }
};

// Where every window starts in `data` (one multi-index a window), before clamping.
std::vector<Dims> WindowStarts(const IndexDims& dims, const Type& data, const Tensor& indices) {
  Dims batch = dims.BatchShape(indices.type), index(batch.size()), strides = RowMajorStrides(indices.type.dims);
  bool has_vector = dims.vector_dim < static_cast<int64_t>(indices.type.rank());
  std::vector<Dims> starts;
  if (NumElements(batch) == 0) return starts;
  do {
    Dims start(data.rank(), 0), full = index;
    if (has_vector) full.insert(full.begin() + dims.vector_dim, 0);
    int64_t position = 0;
    for (size_t d = 0; d < full.size(); ++d) position += full[d] * strides[d];
    for (size_t k = 0; k < dims.index_map.size(); ++k) {
      int64_t value = IntegerAt(indices, position + (has_vector ? static_cast<int64_t>(k) * strides[dims.vector_dim] : 0));
      if (indices.type.dtype == DType::kU64 && value < 0) value = data.dims[dims.index_map[k]];
      start[dims.index_map[k]] = value;
    }
    for (size_t k = 0; k < dims.data_batching.size(); ++k) start[dims.data_batching[k]] = full[dims.index_batching[k]];
    starts.push_back(start);
  } while (NextIndex(batch, &index));
  return starts;
}

// Flat offsets, in row-major order of the listed dims of an array.
Ints Offsets(const Dims& sizes, const Dims& strides) {
  Ints offsets;
  if (NumElements(sizes) == 0) return offsets;
  Dims index(sizes.size());
  do {
    int64_t offset = 0;
    for (size_t d = 0; d < sizes.size(); ++d) offset += index[d] * strides[d];
    offsets.push_back(offset);
  } while (NextIndex(sizes, &index));
  return offsets;
}

// How the elements of `moved` and the windows of `data` are laid out.
struct Layout {
  Ints moved_window, moved_batch;  // flat offsets into `moved`
  Ints data_window;                // flat offsets into `data`, relative to a window's start
  Dims window;                     // window size in every dim of `data`

  Layout(const IndexDims& dims, const Type& data, const Type& moved) {
    Dims moved_strides = RowMajorStrides(moved.dims), data_strides = RowMajorStrides(data.dims);
    Dims window_sizes, window_strides, batch_sizes, batch_strides, kept_strides;
    for (size_t d = 0; d < moved.rank(); ++d) {
      bool in_window = Has(dims.window_dims, d);
      (in_window ? window_sizes : batch_sizes).push_back(moved.dims[d]);
      (in_window ? window_strides : batch_strides).push_back(moved_strides[d]);
    }
    window.assign(data.rank(), 1);
    Ints kept = dims.KeptDims(data.rank());
    for (size_t i = 0; i < kept.size(); ++i) {
      window[kept[i]] = window_sizes[i];
      kept_strides.push_back(data_strides[kept[i]]);
    }
    moved_window = Offsets(window_sizes, window_strides);
    moved_batch = Offsets(batch_sizes, batch_strides);
    data_window = Offsets(window_sizes, kept_strides);
  }
};

// ---- gather

std::string CheckFields(const Attr& a, std::initializer_list<std::string_view> known) {
  for (const NamedAttr& f : a.fields)
    if (std::find(known.begin(), known.end(), f.name) == known.end()) return "unknown field " + f.name;
  return "";
}

std::string VerifyGather(const Op& op) {
  const Type &data = op.operand_types[0], &indices = op.operand_types[1], &result = op.result_types[0];
  if (std::string wrong =
          CheckFields(op.attr("dimension_numbers"), {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                                                     "start_indices_batching_dims", "start_index_map", "index_vector_dim"});
      !wrong.empty())
    return wrong;
  IndexDims dims = IndexDims::OfGather(op);
  if (std::string wrong = dims.Check(data, indices, result.rank()); !wrong.empty()) return wrong;
  Ints sizes = op.ints("slice_sizes");
  if (sizes.size() != data.rank()) return "one slice size a dimension is needed";
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0 || sizes[d] > data.dims[d]) return "slice size " + std::to_string(d) + " is out of range";
    if ((Has(dims.collapsed, d) || Has(dims.data_batching, d)) && sizes[d] > 1)
      return "slice size " + std::to_string(d) + " must be 1";
  }
  Dims expected, batch = dims.BatchShape(indices);
  Ints kept = dims.KeptDims(data.rank());
  size_t next_kept = 0, next_batch = 0;
  for (size_t d = 0; d < result.rank(); ++d)
    expected.push_back(Has(dims.window_dims, d) ? sizes[kept[next_kept++]] : batch[next_batch++]);
  return WrongResult(op, data.With(expected));
}

Error EvalGather(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  IndexDims dims = IndexDims::OfGather(op);
  const Type& data = in[0].type;
  Tensor result = Tensor::Empty(op.result_types[0]);
  Layout layout(dims, data, result.type);
  Dims strides = RowMajorStrides(data.dims);
  std::vector<Dims> starts = WindowStarts(dims, data, in[1]);
  size_t item = tpu::ItemSize(data.dtype);
  for (size_t b = 0; b < starts.size() && !layout.moved_window.empty(); ++b) {
    int64_t start = 0;
    for (size_t d = 0; d < strides.size(); ++d)
      start += std::clamp<int64_t>(starts[b][d], 0, data.dims[d] - layout.window[d]) * strides[d];
    for (size_t w = 0; w < layout.moved_window.size(); ++w)
      std::memcpy(result.bytes() + (layout.moved_batch[b] + layout.moved_window[w]) * item,
                  in[0].bytes() + (start + layout.data_window[w]) * item, item);
  }
  out->push_back(result);
  return {};
}

// ---- scatter

std::string VerifyScatter(const Op& op) {
  size_t count = op.operand_types.size() / 2;
  if (op.operand_types.size() != 2 * count + 1 || op.result_types.size() != count)
    return "N inputs, indices, N updates and N results are needed";
  if (std::string wrong = CheckFields(op.attr("scatter_dimension_numbers"),
                                      {"update_window_dims", "inserted_window_dims", "input_batching_dims",
                                       "scatter_indices_batching_dims", "scatter_dims_to_operand_dims", "index_vector_dim"});
      !wrong.empty())
    return wrong;
  const Type &data = op.operand_types[0], &indices = op.operand_types[count], &updates = op.operand_types[count + 1];
  IndexDims dims = IndexDims::OfScatter(op);
  if (std::string wrong = dims.Check(data, indices, updates.rank()); !wrong.empty()) return wrong;
  Dims batch = dims.BatchShape(indices);
  Ints kept = dims.KeptDims(data.rank());
  size_t next_kept = 0, next_batch = 0;
  for (size_t d = 0; d < updates.rank(); ++d) {
    if (Has(dims.window_dims, d) ? updates.dims[d] > data.dims[kept[next_kept++]] : updates.dims[d] != batch[next_batch++])
      return "dimension " + std::to_string(d) + " of the updates does not fit";
  }
  for (size_t i = 0; i < count; ++i) {
    const Type& t = op.operand_types[i];
    if (std::string wrong = NeedSameDims(op, i, data.dims); !wrong.empty()) return wrong;
    if (!(op.operand_types[count + 1 + i] == updates.With(t.dtype)))
      return "update " + std::to_string(i) + " is " + op.operand_types[count + 1 + i].ToString();
    if (std::string wrong = WrongResult(op, t, i); !wrong.empty()) return wrong;
  }
  std::vector<DType> types = ElementTypes(op, 0, count);
  return CheckScalarRegion(op, Twice(types), types);
}

Error EvalScatter(Interpreter& interpreter, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  size_t count = in.size() / 2;
  IndexDims dims = IndexDims::OfScatter(op);
  const Type &data = in[0].type, &updates = in[count + 1].type;
  Layout layout(dims, data, updates);
  Dims strides = RowMajorStrides(data.dims);
  std::vector<Dims> starts = WindowStarts(dims, data, in[count]);
  // The k-th update of every element goes into wave k; a wave is one batch of the region.
  struct Wave {
    Ints to, from;
  };
  std::vector<Wave> waves;
  std::vector<uint32_t> hits(data.numel());
  for (size_t b = 0; b < starts.size() && !layout.moved_window.empty(); ++b) {
    int64_t start = 0;
    bool inside = true;  // as XLA: a window that sticks out is dropped as a whole
    for (size_t d = 0; d < strides.size(); ++d) {
      inside &= starts[b][d] >= 0 && starts[b][d] <= data.dims[d] - layout.window[d];
      start += starts[b][d] * strides[d];
    }
    for (size_t w = 0; inside && w < layout.moved_window.size(); ++w) {
      int64_t to = start + layout.data_window[w];
      uint32_t wave = hits[to]++;
      if (wave >= waves.size()) waves.emplace_back();
      waves[wave].to.push_back(to);
      waves[wave].from.push_back(layout.moved_batch[b] + layout.moved_window[w]);
    }
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < count; ++i) results.push_back(Copy(in[i]));
  for (const Wave& wave : waves) {
    std::vector<Tensor> args, values;
    int64_t n = static_cast<int64_t>(wave.to.size());
    auto pick = [&](const Tensor& t, const Ints& positions) {
      Tensor batch = Tensor::Empty(t.type.With(Dims{n}));
      size_t item = tpu::ItemSize(t.type.dtype);
      for (int64_t i = 0; i < n; ++i) std::memcpy(batch.bytes() + i * item, t.bytes() + positions[i] * item, item);
      args.push_back(batch);
    };
    for (size_t i = 0; i < count; ++i) pick(results[i], wave.to);
    for (size_t i = 0; i < count; ++i) pick(in[count + 1 + i], wave.from);
    if (Error e = interpreter.RunScalarRegion(op.regions[0], args, &values); !e.ok()) return e;
    for (size_t k = 0; k < count; ++k) {
      size_t item = tpu::ItemSize(values[k].type.dtype);
      for (int64_t i = 0; i < n; ++i) std::memcpy(results[k].bytes() + wave.to[i] * item, values[k].bytes() + i * item, item);
    }
  }
  for (Tensor& t : results) out->push_back(t);
  return {};
}

}  // namespace

const std::vector<OpDef>& GatherOps() {
  static const auto* ops = new std::vector<OpDef>{
      {"stablehlo.gather",
       2,
       2,
       1,
       0,
       {{"dimension_numbers", Kind::kStruct, true, "stablehlo.gather"},
        {"slice_sizes", Kind::kArray, true, "i64"},
        {"indices_are_sorted", Kind::kBool}},
       VerifyGather,
       EvalGather},
      {"stablehlo.scatter",
       3,
       kAny,
       kAny,
       1,
       {{"scatter_dimension_numbers", Kind::kStruct, true, "stablehlo.scatter"},
        {"indices_are_sorted", Kind::kBool},
        {"unique_indices", Kind::kBool}},
       VerifyScatter,
       EvalScatter},
  };
  return *ops;
}

}  // namespace fake_pjrt
