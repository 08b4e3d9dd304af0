// SPDX-License-Identifier: Apache-2.0
#include "lower/driver.h"

#include <algorithm>
#include <utility>

#include "lower/cast.h"
#include "lower/view_access.h"

namespace tpu::lower {
namespace {

int WordsOf(DType dtype) { return static_cast<int>((ItemSize(dtype) + 3) / 4); }

bool SameField(const HostField& a, const HostField& b) { return a.raw == b.raw && a.from == b.from && a.to == b.to; }

hlo::Ints Order(const int8_t* order, int rank) { return hlo::Ints(order, order + rank); }

// TPU compilers abort the process on several complex128 operations: all of them go to the fallback.
bool HasComplex128(const graph::OpRecord& record) {
  for (const graph::Argument& a : record.args) {
    for (const graph::Operand& o : a.tensors) {
      if (o.dtype == DType::kC128 || o.base.dtype == DType::kC128) return true;
    }
  }
  for (const graph::RecordResult& r : record.results) {
    if (r.defined && r.dtype == DType::kC128) return true;
  }
  return false;
}

}  // namespace

void MemoryOrder(const graph::RecordResult& r, int8_t* order) {
  bool row_major = true;
  int64_t expect = 1;
  for (int i = r.rank - 1; i >= 0; --i) {
    if (r.sizes[i] == 1) continue;
    row_major = row_major && r.strides[i] == expect;
    expect *= r.sizes[i];
  }
  for (int i = 0; i < r.rank; ++i) order[i] = static_cast<int8_t>(i);
  if (row_major) return;
  std::stable_sort(order, order + r.rank, [&](int a, int b) { return r.strides[a] > r.strides[b]; });
}

Result<Lowered> Driver::Run() {
  arguments_.resize(graph_.arguments.size());
  for (size_t i = 0; i < graph_.records.size() && b_.ok(); ++i) LowerRecord(i);
  for (auto [argument, output] : alias_candidates_) {
    hlo::Value v = arguments_[static_cast<size_t>(argument)];
    if (!v.valid() || !(b_.type(v) == b_.type(outputs_[static_cast<size_t>(output)]))) continue;
    auto position = std::find(out_.arguments.begin(), out_.arguments.end(), argument) - out_.arguments.begin();
    bool taken =
        std::any_of(out_.aliases.begin(), out_.aliases.end(), [&](const Lowered::Alias& a) { return a.argument == position; });
    if (taken) continue;
    b_.Alias(v, output);
    out_.aliases.push_back({static_cast<int>(position), output});
  }
  if (!traps_.empty()) {
    hlo::Values rows;
    for (hlo::Value v : traps_) rows.push_back(b_.Reshape(v, {1}));
    outputs_.push_back(b_.Concatenate(rows, 0));
  }
  DefineHostValues();
  Result<std::string> text = b_.Finish(outputs_);
  if (!text.ok()) return text.status();
  out_.text = std::move(*text);
  return std::move(out_);
}

// Operators in a row once, and not more than a reader takes in.
void Driver::AddName(const char* name) {
  constexpr size_t kLongest = 120;
  if (last_name_ == name || out_.name.size() > kLongest) return;
  last_name_ = name;
  if (!out_.name.empty()) out_.name += ",";
  out_.name += name;
  if (out_.name.size() > kLongest) out_.name += ",...";
}

void Driver::LowerRecord(size_t index) {
  record_ = index;
  const graph::OpRecord& record = graph_.records[index];
  first_raw_.push_back(record.same_raws >= 0 ? first_raw_[static_cast<size_t>(record.same_raws)] : num_raws_);
  const Rule* rule = FindRule(record.op);
  if (!rule) {
    b_.Fail({ErrorKind::kNotImplemented, "an operator has no program"});
    return;
  }
  context_ = QualifiedName(*rule);
  b_.SetContext(context_);
  AddName(rule->name);

  if (profile_.kind == pjrt::EngineKind::kTpu && HasComplex128(record)) {
    b_.Fail({ErrorKind::kNotImplemented, context_ + ": complex128 on a TPU"});
    return;
  }
  Lowering lowering(b_, profile_);
  lowering.numerics = Numerics::Decode(record.numerics);
  lowering.driver_ = this;
  lowering.record_ = &record;
  lowering.rule_ = rule;
  lowering.results_.resize(record.results.size());
  rule->lower(lowering);
  for (size_t k = 0; k < record.results.size() && b_.ok(); ++k) {
    if (!record.results[k].defined) {
      made_.push_back({});
      origin_.push_back(-1);
      continue;
    }
    hlo::Value value = lowering.results_[k];
    if (!value.valid()) {
      b_.Internal("result " + std::to_string(k) + " was not made");
      return;
    }
    WriteResult(index, k, value);
  }
  num_raws_ += record.num_raw + (rule->random ? 2 : 0);
  out_.random_count += std::exchange(record_count_, 0);
}

hlo::Value Driver::ValueOf(int number) {
  auto n = static_cast<size_t>(number);
  if (number < 0) return b_.Internal("an undefined operand is read");
  if (n >= arguments_.size()) {
    n -= arguments_.size();
    return n < made_.size() ? made_[n] : b_.Internal("an operand comes before its producer");
  }
  if (!arguments_[n].valid()) {
    arguments_[n] = b_.Argument(graph_.arguments[n]);
    out_.arguments.push_back(number);
  }
  return arguments_[n];
}

hlo::Value Driver::Read(const graph::Operand& operand) {
  if (operand.access.mode == graph::AccessMode::kEmpty) return ReadView(b_, operand, {}, {});
  return ReadView(b_, operand, ValueOf(operand.value),
                  [&](int k, DType to) { return HostRaw(operand.first_start + k, DType::kI64, to); });
}

void Driver::WriteResult(size_t index, size_t k, hlo::Value value) {
  const graph::OpRecord& record = graph_.records[index];
  const graph::RecordResult& result = record.results[k];
  int origin = -1;
  if (const graph::Target* target = record.target(k)) {
    value = WriteTarget(*target, value);
    const int old = target->operand.value, first_made = static_cast<int>(arguments_.size());
    origin = old < first_made ? old : origin_[static_cast<size_t>(old - first_made)];
  } else {
    int8_t order[kMaxRank];
    MemoryOrder(result, order);
    value = b_.Transpose(value, Order(order, result.rank));
  }
  const int number = static_cast<int>(made_.size());
  made_.push_back(value);
  origin_.push_back(origin);
  if (graph_.live && !std::binary_search(graph_.live->begin(), graph_.live->end(), number)) return;
  if (origin >= 0) alias_candidates_.emplace_back(origin, static_cast<int>(outputs_.size()));
  out_.outputs.push_back({b_.type(value), static_cast<int>(index), static_cast<int>(k)});
  outputs_.push_back(value);
}

hlo::Value Driver::WriteTarget(const graph::Target& target, hlo::Value value) {
  const graph::Operand& view = target.operand;
  value = Cast(b_, value, view.dtype);
  if (!b_.type(value).SameDims(view.type())) {
    return b_.Internal("a result of " + b_.type(value).ToHlo() + " for a target of " + view.type().ToHlo());
  }
  if (target.overwrites) {
    return b_.Transpose(ApplyBits(b_, view, value), Order(target.order, view.rank));
  }
  hlo::Value base = ValueOf(view.value);
  return WriteView(b_, view, base, value, [&](int k, DType to) { return HostRaw(view.first_start + k, DType::kI64, to); });
}

// ---- host values

hlo::Value Driver::HostRaw(int raw, DType from, DType to) {
  HostField field;
  field.raw = first_raw_.back() + raw;
  field.from = from;
  field.to = to;
  return Host(field);
}

hlo::Value Driver::Host(HostField field) {
  for (size_t i = 0; i < out_.host_fields.size(); ++i) {
    if (SameField(out_.host_fields[i], field)) return host_values_[i];
  }
  field.word = out_.host_words;
  out_.host_words += WordsOf(field.to);
  out_.host_fields.push_back(field);
  host_values_.push_back(b_.Declare(TensorType::Scalar(field.to)));
  return host_values_.back();
}

// The host argument's size is known only now, its uses are all over the program: hence the prologue.
void Driver::DefineHostValues() {
  if (out_.host_fields.empty() || !b_.ok()) return;
  hlo::Value host = b_.Argument(TensorType(DType::kU32, {out_.host_words}));
  b_.BeginPrologue();
  for (size_t i = 0; i < out_.host_fields.size(); ++i) {
    const HostField& field = out_.host_fields[i];
    int n = WordsOf(field.to);
    hlo::Value v = b_.Slice(host, {field.word}, {field.word + n});
    DType part = RealType(field.to);
    if (n == 1) {
      v = b_.BitcastConvert(b_.Reshape(v, {}), field.to);
    } else if (!IsComplex(field.to)) {
      v = b_.BitcastConvert(v, field.to);
    } else {
      v = part == DType::kF32 ? b_.BitcastConvert(v, part) : b_.BitcastConvert(b_.Reshape(v, {2, 2}), part);
      v = b_.Complex(b_.Reshape(b_.Slice(v, {0}, {1}), {}), b_.Reshape(b_.Slice(v, {1}, {2}), {}));
    }
    b_.Define(host_values_[i], v);
  }
  b_.EndPrologue();
}

// ---- traps, random numbers

void Driver::AddTrap(hlo::Value bad, ErrorKind kind, std::string message) {
  if (!b_.ok()) return;
  if (!(b_.type(bad) == TensorType::Scalar(DType::kI32))) {
    b_.Internal("a trap is not an s32 scalar");
    return;
  }
  traps_.push_back(bad);
  out_.traps.push_back({kind, std::move(message)});
}

std::pair<hlo::Value, hlo::Value> Driver::Words(hlo::Value u64) {
  return {b_.Convert(u64, DType::kU32), b_.Convert(b_.Binary("shift_right_logical", u64, 32), DType::kU32)};
}

std::pair<hlo::Value, hlo::Value> Driver::RandomKey() {
  return Words(HostRaw(graph_.records[record_].num_raw, DType::kU64, DType::kU64));
}

std::pair<hlo::Value, hlo::Value> Driver::TakeCounters(int64_t count) {
  hlo::Value first = HostRaw(graph_.records[record_].num_raw + 1, DType::kU64, DType::kU64);
  first = b_.Binary("add", first, record_count_);
  record_count_ += count;
  return Words(first);
}

}  // namespace tpu::lower
