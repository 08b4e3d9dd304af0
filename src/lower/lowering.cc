// SPDX-License-Identifier: Apache-2.0
// What rules see of their record.
#include "lower/lowering.h"

#include <algorithm>
#include <limits>

#include "lower/cast.h"
#include "lower/driver.h"
#include "lower/philox.h"

namespace tpu::lower {

using graph::ArgKind;

Result<Lowered> LowerGraph(const graph::Graph& graph, const pjrt::EngineProfile& profile) {
  return Driver(graph, profile).Run();
}

// Bits 0-1 precision, 2 deterministic, 32-63 engine profile.
uint64_t Numerics::Encode(uint32_t profile_id) const {
  return static_cast<uint64_t>(matmul_precision) | static_cast<uint64_t>(deterministic) << 2 |
         static_cast<uint64_t>(profile_id) << 32;
}

Numerics Numerics::Decode(uint64_t word) {
  Numerics n;
  n.matmul_precision = static_cast<Precision>(word & 3);
  n.deterministic = word >> 2 & 1;
  return n;
}

const Rule& Lowering::rule() const { return *rule_; }
const graph::OpRecord& Lowering::record() const { return *record_; }

// ---- arguments

int Lowering::num_args() const { return static_cast<int>(record_->args.size()); }

const graph::Argument& Lowering::arg(int i) const {
  static const graph::Argument kNone;
  return i >= 0 && i < num_args() ? record_->args[static_cast<size_t>(i)] : kNone;
}

bool Lowering::IsNone(int i) const {
  const graph::Argument& a = arg(i);
  return a.kind == ArgKind::kNone || (a.kind == ArgKind::kTensor && a.tensors[0].value < 0);
}

hlo::Value Lowering::Cast(hlo::Value x, DType dtype) { return lower::Cast(b, x, dtype); }

hlo::Value Lowering::Tensor(int i) {
  const graph::Argument& a = arg(i);
  switch (a.kind) {
    case ArgKind::kTensor:
      return driver_->Read(a.tensors[0]);
    case ArgKind::kNone:
      return b.Internal("argument " + std::to_string(i) + " is missing");
    default:
      return Scalar(i, TypeOf(i).dtype);
  }
}

hlo::Value Lowering::Tensor(int i, DType dtype) {
  return arg(i).kind == ArgKind::kTensor ? Cast(Tensor(i), dtype) : Scalar(i, dtype);
}

std::vector<hlo::Value> Lowering::TensorList(int i) {
  std::vector<hlo::Value> values;
  for (const graph::Operand& operand : arg(i).tensors) {
    values.push_back(operand.value < 0 ? hlo::Value{} : driver_->Read(operand));
  }
  return values;
}

TensorType Lowering::TypeOf(int i) const {
  const graph::Argument& a = arg(i);
  switch (a.kind) {
    case ArgKind::kTensor:
      return a.tensors[0].type();
    case ArgKind::kInt:
      return TensorType::Scalar(DType::kI64);
    case ArgKind::kDouble:
      return TensorType::Scalar(DType::kF64);
    case ArgKind::kBool:
      return TensorType::Scalar(DType::kBool);
    default:
      return TensorType::Scalar(a.dtype);
  }
}

int64_t Lowering::Int(int i) const { return arg(i).i; }
int64_t Lowering::IntOr(int i, int64_t if_none) const { return IsNone(i) ? if_none : arg(i).i; }
bool Lowering::Bool(int i) const { return arg(i).i != 0; }
double Lowering::Double(int i) const { return arg(i).kind == ArgKind::kDouble ? arg(i).d : static_cast<double>(arg(i).i); }
const std::vector<int64_t>& Lowering::IntList(int i) const { return arg(i).ints; }
const std::string& Lowering::Text(int i) const { return arg(i).text; }
uint8_t Lowering::ScalarClass(int i) const { return arg(i).scalar_class; }
double Lowering::StructuralScalar(int i) const { return Double(i); }

namespace {

// The type in which a scalar travels: whole words only, and never narrower than what `dtype` needs. bool is tested in
// the program, on all bits.
DType Carrier(DType from, DType to) {
  switch (to) {
    case DType::kBool:
      return from;
    case DType::kU8:
    case DType::kU16:
    case DType::kI8:
    case DType::kI16:
      return DType::kI32;
    default:
      return OpMathType(to);
  }
}

}  // namespace

hlo::Value Lowering::Scalar(int i, DType dtype) {
  const graph::Argument& a = arg(i);
  switch (a.kind) {
    case ArgKind::kTensor: {
      hlo::Value x = Cast(driver_->Read(a.tensors[0]), dtype);
      return b.Reshape(x, {});
    }
    case ArgKind::kInt:
    case ArgKind::kBool:
      return b.Constant(dtype, a.i);
    case ArgKind::kDouble:
      return b.Constant(dtype, a.d);
    case ArgKind::kScalar:
    case ArgKind::kHostTensor:
      break;
    default:
      return b.Internal("argument " + std::to_string(i) + " is not a number");
  }
  if (a.scalar_class == 1) return b.Constant(dtype, 1);
  if (a.raw < 0) return b.Internal("argument " + std::to_string(i) + " has a class and no value");
  DType from = IsComplex(a.dtype) ? DType::kC128 : IsFloat(a.dtype) ? DType::kF64 : DType::kI64;
  return Cast(driver_->HostRaw(a.raw, from, Carrier(from, dtype)), dtype);
}

// ---- results

int Lowering::num_results() const { return static_cast<int>(record_->results.size()); }

const graph::RecordResult& Lowering::result(int k) const {
  static const graph::RecordResult kNone = [] {
    graph::RecordResult r;
    r.defined = false;
    return r;
  }();
  return k < num_results() ? record_->results[static_cast<size_t>(k)] : kNone;
}

bool Lowering::ResultDefined(int k) const { return result(k).defined; }
TensorType Lowering::ResultType(int k) const { return result(k).type(); }

void Lowering::SetResult(int k, hlo::Value value) {
  if (!value.valid()) {
    if (b.ok()) b.Internal("result " + std::to_string(k) + " is missing");
    return;
  }
  if (k >= num_results()) {
    b.Internal("there is no result " + std::to_string(k));
    return;
  }
  if (!(b.type(value) == ResultType(k))) {
    b.Internal("result " + std::to_string(k) + " is " + b.type(value).ToHlo() + ", should be " + ResultType(k).ToHlo());
    return;
  }
  results_[static_cast<size_t>(k)] = value;
}

// ---- promotion: at::native::ResultTypeState

namespace {

DType CombineCategories(DType higher, DType lower) {
  if (IsComplex(higher)) return higher;
  if (IsFloat(higher)) {
    if (!IsComplex(lower)) return higher;
    return higher == DType::kF64 ? DType::kC128 : DType::kC64;
  }
  if (higher == DType::kBool || IsFloat(lower) || IsComplex(lower)) return PromoteTypes(higher, lower);
  return higher != DType::kInvalid ? higher : lower;
}

}  // namespace

DType Lowering::Promoted(std::initializer_list<int> args) const {
  DType dimensioned = DType::kInvalid, zero_dim = DType::kInvalid, wrapped = DType::kInvalid;
  for (int i : args) {
    if (IsNone(i)) continue;
    const graph::Argument& a = arg(i);
    TensorType t = TypeOf(i);
    bool number = a.kind != ArgKind::kTensor && (a.kind != ArgKind::kHostTensor || a.wrapped_number);
    if (number) {
      // Python numbers count as the default dtype.
      if (IsComplex(t.dtype)) t.dtype = DType::kC64;
      if (IsFloat(t.dtype)) t.dtype = DType::kF32;
    }
    DType& category = t.rank ? dimensioned : number ? wrapped : zero_dim;
    category = PromoteTypes(category, t.dtype);
  }
  return CombineCategories(dimensioned, CombineCategories(zero_dim, wrapped));
}

// ---- run-time checks

void Lowering::Trap(hlo::Value bad, ErrorKind kind, std::string message) { driver_->AddTrap(bad, kind, std::move(message)); }

namespace {

constexpr int64_t kMinI32 = std::numeric_limits<int32_t>::min(), kMaxI32 = std::numeric_limits<int32_t>::max();

struct Bounds {
  int64_t low, high;
  bool has_low, has_high;  // at least one
};

// The largest element of x outside the bounds, encoded as TrapInfo says; 0: there is none.
hlo::Value WorstOf(hlo::Builder& b, hlo::Value x, const Bounds& bounds) {
  using hlo::Compare;
  hlo::Value wrong;
  if (bounds.has_low) wrong = b.Cmp(Compare::kLt, x, bounds.low);
  if (bounds.has_high) {
    const hlo::Value above = b.Cmp(Compare::kGe, x, bounds.high);
    wrong = wrong.valid() ? b.Or(wrong, above) : above;
  }
  // v + 1 must fit, so the reported value stops below the largest.
  hlo::Value v = b.Clamp(b.Constant(b.dtype(x), kMinI32), x, b.Constant(b.dtype(x), kMaxI32 - 1));
  v = b.Convert(v, DType::kI32);
  v = b.Select(b.Cmp(Compare::kGe, v, 0), b.Binary("add", v, 1), v);
  v = b.Select(wrong, v, b.Like(v, 0));
  // As unsigned numbers all bad values are above 0, and a plain maximum is the fast reduction everywhere.
  v = b.BitcastConvert(v, DType::kU32);
  hlo::Ints all;
  for (int i = 0; i < b.rank(v); ++i) all.push_back(i);
  if (!all.empty()) v = b.Reduce(v, b.Constant(DType::kU32, 0), all, "maximum");
  return b.BitcastConvert(v, DType::kI32);
}

// From this many elements on the test below is worth its branch.
constexpr int64_t kLeastForSigns = 1 << 12;
constexpr int64_t kSignSlices = 16;

// Whether neither difference of AnyOutside overflows for a good element.
bool CanTestBySign(const TensorType& type, int64_t low, int64_t high) {
  if (type.numel() < kLeastForSigns || low > 0 || high < 1) return false;
  return type.dtype == DType::kI64 ? low > -kMaxI32 * kMaxI32 && high < kMaxI32 * kMaxI32 : high - low <= kMaxI32;
}

// Negative if an element of x is outside [low, high). The slices are combined element by element, which is vectorised.
hlo::Value AnyOutside(hlo::Builder& b, hlo::Value x, int64_t low, int64_t high) {
  x = b.Flatten(x);
  const int64_t n = b.dim(x, 0), each = (n + kSignSlices - 1) / kSignSlices;
  hlo::Value all;
  for (int64_t i = 0; i < kSignSlices; ++i) {
    const int64_t start = std::min(i * each, n - each);  // overlaps do no harm
    const hlo::Value part = b.Slice(x, {start}, {start + each});
    const hlo::Value below = low ? b.Sub(part, b.Like(part, low)) : part;
    const hlo::Value outside = b.Or(below, b.Sub(b.Like(part, high - 1), part));
    all = all.valid() ? b.Or(all, outside) : outside;
  }
  return b.Reduce(all, b.Constant(b.dtype(x), 0), {0}, "or");
}

}  // namespace

void Lowering::TrapIfOutOfRange(hlo::Value index, int64_t low, int64_t high, ErrorKind kind, std::string message) {
  const DType d = b.dtype(index);
  const bool wide = ItemSize(d) == 8 || d == DType::kU32;
  const DType compared = wide ? DType::kI64 : DType::kI32;
  // Bounds that the type cannot reach would not survive as constants of it.
  const Bounds bounds{low, high, wide || low > kMinI32, wide || high <= kMaxI32};
  if (!bounds.has_low && !bounds.has_high) return;
  if (!profile.integer_reduce_is_scalar || !CanTestBySign(b.type(index).With(compared), low, high))
    return Trap(WorstOf(b, b.Convert(index, compared), bounds), kind, std::move(message));
  // What is wrong is looked for only when something is.
  const hlo::Value found = b.Cmp(hlo::Compare::kLt, AnyOutside(b, b.Convert(index, compared), low, high), 0);
  const hlo::Values worst = b.If(
      found, [&](const hlo::Values&) -> hlo::Values { return {WorstOf(b, b.Convert(index, compared), bounds)}; },
      [&](const hlo::Values&) -> hlo::Values { return {b.Constant(DType::kI32, 0)}; });
  if (!worst.empty()) Trap(worst[0], kind, std::move(message));
}

// ---- random numbers

Lowering::RandomWords Lowering::Random(int64_t count) {
  auto [low, high] = driver_->TakeCounters(count);
  auto [key0, key1] = driver_->RandomKey();
  return {Philox(b, low, high, key0, key1, count)};
}

void Lowering::Unsupported(std::string why) { b.Fail({ErrorKind::kNotImplemented, driver_->context() + ": " + why}); }

}  // namespace tpu::lower
