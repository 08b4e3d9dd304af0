// SPDX-License-Identifier: Apache-2.0
// Slices, static and dynamic.
#include <algorithm>

#include "interpreter.h"
#include "op_table.h"
#include "strided.h"

namespace fake_pjrt {
namespace {

using Kind = Attr::Kind;

std::string VerifySlice(const Op& op) {
  const Type& a = op.operand_types[0];
  auto start = op.ints("start_indices"), limit = op.ints("limit_indices"), step = op.ints("strides");
  if (start.size() != a.rank() || limit.size() != a.rank() || step.size() != a.rank()) return "one entry a dimension is needed";
  Dims dims;
  for (size_t d = 0; d < a.rank(); ++d) {
    if (start[d] < 0 || limit[d] < start[d] || limit[d] > a.dims[d] || step[d] < 1)
      return "bad bounds in dimension " + std::to_string(d);
    dims.push_back((limit[d] - start[d] + step[d] - 1) / step[d]);
  }
  return WrongResult(op, a.With(dims));
}

Error EvalSlice(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  auto start = op.ints("start_indices"), step = op.ints("strides");
  Dims strides = RowMajorStrides(in[0].type.dims);
  int64_t offset = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    offset += start[d] * strides[d];
    strides[d] *= step[d];
  }
  out->push_back(CopyStrided(in[0], op.result_types[0], strides, offset));
  return {};
}

// Start indices are operands `first`...; they are scalars of one integer type.
std::string CheckStarts(const Op& op, size_t first, size_t rank) {
  if (op.operand_types.size() != first + rank) return "one start index a dimension is needed";
  for (size_t i = first; i < op.operand_types.size(); ++i) {
    const Type& t = op.operand_types[i];
    if (!t.dims.empty() || !tpu::IsInteger(t.dtype)) return "start index " + std::to_string(i - first) + " is " + t.ToString();
    if (!(t == op.operand_types[first])) return "start indices of different types";
  }
  return "";
}

// The offset of a window of `sizes` after clamping it into `type`.
int64_t ClampedOffset(const Type& type, const Dims& sizes, const Dims& strides, const std::vector<Tensor>& in, size_t first) {
  int64_t offset = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const Tensor& start = in[first + d];
    int64_t at = IntegerAt(start, 0);
    if (start.type.dtype == DType::kU64 && at < 0) at = type.dims[d];
    offset += std::clamp<int64_t>(at, 0, type.dims[d] - sizes[d]) * strides[d];
  }
  return offset;
}

std::string VerifyDynamicSlice(const Op& op) {
  const Type& a = op.operand_types[0];
  if (std::string wrong = CheckStarts(op, 1, a.rank()); !wrong.empty()) return wrong;
  auto sizes = op.ints("slice_sizes");
  if (sizes.size() != a.rank()) return "one slice size a dimension is needed";
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] < 0 || sizes[d] > a.dims[d]) return "slice size " + std::to_string(d) + " is out of range";
  return WrongResult(op, a.With(sizes));
}

Error EvalDynamicSlice(Interpreter&, const Op& op, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  const Type& type = in[0].type;
  Dims strides = RowMajorStrides(type.dims);
  out->push_back(CopyStrided(in[0], op.result_types[0], strides, ClampedOffset(type, op.result_types[0].dims, strides, in, 1)));
  return {};
}

std::string VerifyDynamicUpdateSlice(const Op& op) {
  const Type &a = op.operand_types[0], &u = op.operand_types[1];
  if (u.dtype != a.dtype || u.rank() != a.rank()) return "the update is " + u.ToString() + " for " + a.ToString();
  for (size_t d = 0; d < a.rank(); ++d)
    if (u.dims[d] > a.dims[d]) return "the update is larger than the operand";
  if (std::string wrong = CheckStarts(op, 2, a.rank()); !wrong.empty()) return wrong;
  return WrongResult(op, a);
}

Error EvalDynamicUpdateSlice(Interpreter&, const Op&, const std::vector<Tensor>& in, std::vector<Tensor>* out) {
  const Type& type = in[0].type;
  Tensor r = Copy(in[0]);
  Dims strides = RowMajorStrides(type.dims);
  WriteStrided(in[1], strides, ClampedOffset(type, in[1].type.dims, strides, in, 2), &r);
  out->push_back(r);
  return {};
}

}  // namespace

const std::vector<OpDef>& SliceOps() {
  static const auto* ops = new std::vector<OpDef>{
      {"stablehlo.dynamic_slice",
       1,
       kAny,
       1,
       0,
       {{"slice_sizes", Kind::kArray, true, "i64"}},
       VerifyDynamicSlice,
       EvalDynamicSlice},
      {"stablehlo.dynamic_update_slice", 2, kAny, 1, 0, {}, VerifyDynamicUpdateSlice, EvalDynamicUpdateSlice},
      {"stablehlo.slice",
       1,
       1,
       1,
       0,
       {{"start_indices", Kind::kArray, true, "i64"},
        {"limit_indices", Kind::kArray, true, "i64"},
        {"strides", Kind::kArray, true, "i64"}},
       VerifySlice,
       EvalSlice},
  };
  return *ops;
}

}  // namespace fake_pjrt
