// SPDX-License-Identifier: Apache-2.0
// Arrays and operations without torch: records written by hand, through the corridor.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/corridor.h"
#include "engine/queue.h"
#include "engine/runtime.h"
#include "lower/lowering.h"

namespace tpu::engine {

using Dims = std::vector<int64_t>;

inline Dims RowMajor(const Dims& sizes) {
  Dims strides(sizes.size());
  int64_t s = 1;
  for (size_t i = sizes.size(); i-- > 0; s *= sizes[i]) strides[i] = s;
  return strides;
}
inline int64_t Numel(const Dims& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

// A strided view of a storage, as a torch tensor is one.
struct Array {
  std::shared_ptr<Cell> cell;
  DType dtype = DType::kF32;
  Dims sizes, strides;
  int64_t offset = 0;

  Array() = default;
  // Takes the value (null: undefined).
  Array(Value* value, DType type, Dims dims, int device = 0)
      : cell(NewCell(static_cast<size_t>(Numel(dims)) * ItemSize(type), device, value), &FreeCell),
        dtype(type),
        sizes(dims),
        strides(RowMajor(dims)) {}

  graph::View view() const { return {dtype, static_cast<uint8_t>(sizes.size()), sizes.data(), strides.data(), offset}; }
  // Elements [begin, begin + size) of the first dimension.
  Array Narrow(int64_t begin, int64_t size) const {
    Array a = *this;
    a.sizes[0] = size;
    a.offset += begin * strides[0];
    return a;
  }
  Array Transposed() const {
    Array a = *this;
    std::swap(a.sizes[0], a.sizes[1]);
    std::swap(a.strides[0], a.strides[1]);
    return a;
  }
  // Another cell with the same value.
  Array Shared() const {
    Array a = *this;
    a.cell.reset(NewCell(cell->bytes, cell->device, cell->Load()), &FreeCell);
    return a;
  }
};

// ---- host

template <class T>
Array ArrayOf(const std::vector<T>& data, Dims sizes, DType dtype) {
  TensorType type = TensorType::Of(dtype, sizes);
  auto value = Upload(data.data(), type, 0);
  EXPECT_TRUE(value.ok()) << value.status().message();
  return Array(value.ok() ? *value : nullptr, dtype, sizes);
}
inline Array Floats(const std::vector<float>& data, Dims sizes = {}) {
  if (sizes.empty()) sizes = {static_cast<int64_t>(data.size())};
  return ArrayOf(data, sizes, DType::kF32);
}
inline Array Filled(Dims sizes, float x) { return Floats(std::vector<float>(static_cast<size_t>(Numel(sizes)), x), sizes); }
inline Array Indices(const std::vector<int64_t>& data) {
  return ArrayOf(data, {static_cast<int64_t>(data.size())}, DType::kI64);
}

// The whole storage, row-major in memory order.
inline Result<std::vector<float>> Read(const Array& a) {
  ValueRef value(a.cell->Load());
  std::vector<float> out(a.cell->bytes / sizeof(float));
  if (Status s = ReadToHost(value.get(), out.data()); !s.ok()) return s;
  return out;
}
// All elements, which must be equal; -12345 when they are not, with a test failure.
inline Result<float> ReadFilled(const Array& a) {
  auto all = Read(a);
  if (!all.ok()) return all.status();
  for (float x : *all) {
    if (x == (*all)[0]) continue;
    ADD_FAILURE() << "elements differ: " << (*all)[0] << " and " << x;
    return -12345.f;
  }
  return (*all)[0];
}

// ---- records

struct RecordHooks {
  std::vector<graph::RecordResult> results;
  int infer_calls = 0;
  Status infer_error;

  CorridorHooks hooks() {
    return {this,
            [](void* context, graph::OpRecord* record) {
              auto* h = static_cast<RecordHooks*>(context);
              ++h->infer_calls;
              record->results = h->results;
              return h->infer_error;
            },
            [](void*, int64_t, uint64_t* seed, uint64_t* offset) { *seed = 1, *offset = 0; }};
  }
};

inline graph::RecordResult ResultOf(DType dtype, const Dims& sizes) {
  graph::RecordResult r;
  r.dtype = dtype;
  r.rank = static_cast<uint8_t>(sizes.size());
  Dims strides = RowMajor(sizes);
  std::copy(sizes.begin(), sizes.end(), r.sizes);
  std::copy(strides.begin(), strides.end(), r.strides);
  return r;
}

class Recording {
 public:
  Recording(const char* op, int num_args, int num_targets) {
    record_.device = 0;
    record_.key.Numerics(lower::Numerics().Encode(0));
    record_.key.Record(HashName(op), num_args, num_targets);
  }
  Recording& Operand(const Array& a) {
    int number = record_.ArgumentOf(a.cell.get());
    const TensorType& base = record_.values[static_cast<size_t>(number)]->type;
    graph::Access access;
    int64_t starts[kMaxRank] = {};
    graph::Analyse(a.view(), base, &access, starts);
    record_.key.Tensor(a.view(), base, access, number, false, false);
    for (int i = 0, n = access.num_starts(a.view()); i < n; ++i) record_.raw.push_back(static_cast<uint64_t>(starts[i]));
    return *this;
  }
  Recording& Int(int64_t v) { return record_.key.Int(v), *this; }
  Recording& Alpha() { return record_.key.Scalar(DType::kI64, 1), *this; }
  Recording& Scalar(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, 8);
    record_.key.Scalar(DType::kF64, 0);
    record_.raw.push_back(bits);
    return *this;
  }
  // In place: the result goes to `a`, which is argument `argument`.
  Recording& Into(const Array& a, int argument) {
    record_.key.TargetArgument(argument, Covers(a));
    record_.targets.push_back(a.cell.get());
    return *this;
  }
  Recording& Out(const Array& a) {
    record_.key.TargetOperand(Covers(a));
    Operand(a);
    record_.targets.push_back(a.cell.get());
    return *this;
  }
  // Runs it; the one result is of `sizes`. `fresh` may be null when the result has a target.
  Status Run(DType dtype, const Dims& sizes, Array* fresh, RecordHooks* hooks = nullptr) {
    RecordHooks own;
    if (!hooks) hooks = &own;
    hooks->results = {ResultOf(dtype, sizes)};
    CorridorResult result;
    if (Status s = RunRecord(&record_, hooks->hooks(), &result); !s.ok()) return s;
    if (result.program->unsupported) return RuntimeError("unsupported: " + result.program->why);
    if (fresh) *fresh = Array(result.outputs[0], dtype, sizes);
    return {};
  }
  Record& record() { return record_; }

 private:
  static bool Covers(const Array& a) {
    int8_t order[kMaxRank];
    return graph::CoversStorage(a.view(), a.cell->bytes, order);
  }
  Record record_;
};

inline Result<Array> TryAdd(const Array& a, const Array& b) {
  Array result;
  Status s = Recording("aten::add.Tensor", 3, 0).Operand(a).Operand(b).Alpha().Run(a.dtype, a.sizes, &result);
  if (!s.ok()) return s;
  return result;
}
inline Status TryAddInPlace(const Array& a, const Array& b) {
  return Recording("aten::add.Tensor", 3, 1).Operand(a).Operand(b).Alpha().Into(a, 0).Run(a.dtype, a.sizes, nullptr);
}
inline Status TryAddOut(const Array& a, const Array& b, const Array& out) {
  return Recording("aten::add.Tensor", 3, 1).Operand(a).Operand(b).Alpha().Out(out).Run(a.dtype, a.sizes, nullptr);
}
inline Result<Array> TryIndexSelect(const Array& a, const Array& index) {
  Array result;
  Dims sizes = a.sizes;
  sizes[0] = index.sizes[0];
  Status s = Recording("aten::index_select", 3, 0).Operand(a).Int(0).Operand(index).Run(a.dtype, sizes, &result);
  if (!s.ok()) return s;
  return result;
}

inline Array Add(const Array& a, const Array& b) {
  auto r = TryAdd(a, b);
  EXPECT_TRUE(r.ok()) << r.status().message();
  return r.ok() ? *r : Array();
}
inline void AddInPlace(const Array& a, const Array& b) {
  Status s = TryAddInPlace(a, b);
  EXPECT_TRUE(s.ok()) << s.message();
}
inline void AddOut(const Array& a, const Array& b, const Array& out) {
  Status s = TryAddOut(a, b, out);
  EXPECT_TRUE(s.ok()) << s.message();
}
inline Array IndexSelect(const Array& a, const Array& index) {
  auto r = TryIndexSelect(a, index);
  EXPECT_TRUE(r.ok()) << r.status().message();
  return r.ok() ? *r : Array();
}

}  // namespace tpu::engine
