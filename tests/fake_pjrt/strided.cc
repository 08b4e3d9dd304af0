// SPDX-License-Identifier: Apache-2.0
#include "strided.h"

#include <cstring>

namespace fake_pjrt {
namespace {

// Calls row(dense position, strided position) for each run along the last dimension.
template <class Row>
void ForEachRow(const Dims& dims, const Dims& strides, int64_t offset, Row row) {
  if (NumElements(dims) == 0) return;
  Dims outer(dims.begin(), dims.empty() ? dims.end() : dims.end() - 1), index(outer.size());
  int64_t length = dims.empty() ? 1 : dims.back(), position = 0;
  do {
    int64_t start = offset;
    for (size_t d = 0; d < outer.size(); ++d) start += index[d] * strides[d];
    row(position, start);
    position += length;
  } while (NextIndex(outer, &index));
}

template <class Fn>
void VisitItemSize(size_t item, Fn fn) {
  switch (item) {
    case 1:
      return fn.template operator()<uint8_t>();
    case 2:
      return fn.template operator()<uint16_t>();
    case 4:
      return fn.template operator()<uint32_t>();
    case 8:
      return fn.template operator()<uint64_t>();
    default:
      return fn.template operator()<unsigned __int128>();
  }
}

}  // namespace

Tensor CopyStrided(const Tensor& operand, const Type& result, const Dims& strides, int64_t offset) {
  Tensor r = Tensor::Empty(result);
  int64_t length = result.dims.empty() ? 1 : result.dims.back(), step = result.dims.empty() ? 0 : strides.back();
  VisitItemSize(tpu::ItemSize(result.dtype), [&]<class T>() {
    const T* from = operand.As<T>();
    T* to = r.As<T>();
    ForEachRow(result.dims, strides, offset, [&](int64_t dense, int64_t start) {
      for (int64_t i = 0; i < length; ++i) to[dense + i] = from[start + i * step];
    });
  });
  return r;
}

void WriteStrided(const Tensor& source, const Dims& strides, int64_t offset, Tensor* target) {
  const Dims& dims = source.type.dims;
  int64_t length = dims.empty() ? 1 : dims.back(), step = dims.empty() ? 0 : strides.back();
  VisitItemSize(tpu::ItemSize(source.type.dtype), [&]<class T>() {
    const T* from = source.As<T>();
    T* to = target->As<T>();
    ForEachRow(dims, strides, offset, [&](int64_t dense, int64_t start) {
      for (int64_t i = 0; i < length; ++i) to[start + i * step] = from[dense + i];
    });
  });
}

Tensor Copy(const Tensor& t) {
  Tensor r = Tensor::Empty(t.type);
  std::memcpy(r.bytes(), t.bytes(), t.type.bytes());
  return r;
}

Tensor TransposedTo(const Tensor& t, const std::vector<int64_t>& permutation) {
  Dims from = RowMajorStrides(t.type.dims), dims, strides;
  for (int64_t p : permutation) {
    dims.push_back(t.type.dims[p]);
    strides.push_back(from[p]);
  }
  return CopyStrided(t, t.type.With(dims), strides);
}

}  // namespace fake_pjrt
