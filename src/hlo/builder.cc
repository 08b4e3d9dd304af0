// SPDX-License-Identifier: Apache-2.0
// The core of the builder: errors, values, scopes, constants, emission. Operations are in builder_*.cc.
#include "hlo/builder.h"

#include "hlo/literal.h"

namespace tpu::hlo {
namespace {

// Nested brackets for a list of rank > 1, as MLIR wants them.
template <class T>
void AppendList(std::string* out, const TensorType& type, const std::vector<T>& values) {
  int64_t n = type.numel();
  if (n == 0) return;
  for (int64_t i = 0; i < n; ++i) {
    int64_t block = 1;
    if (i) *out += ", ";
    for (int d = type.rank - 1; d >= 0; --d) {
      block *= type.dims[d].size();
      if (i % block == 0) *out += '[';
    }
    AppendElement(out, type.dtype, values[static_cast<size_t>(i)]);
    block = 1;
    for (int d = type.rank - 1; d >= 0; --d) {
      block *= type.dims[d].size();
      if ((i + 1) % block == 0) *out += ']';
    }
  }
}

TensorType WithoutSymbols(TensorType type) {
  for (int i = 0; i < type.rank; ++i) type.dims[i] = type.dims[i].size();
  return type;
}

}  // namespace

std::string Bracketed(const Ints& values) {
  std::string s = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) s += ", ";
    AppendInt(&s, values[i]);
  }
  return s + "]";
}

std::string I64Array(const Ints& values) {
  std::string s = values.empty() ? "array<i64" : "array<i64: ";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) s += ", ";
    AppendInt(&s, values[i]);
  }
  return s + ">";
}

Builder::Builder() {
  scopes_.push_back({next_scope_++, false, {}});
  body_.reserve(4096);
}

Value Builder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
  return {};
}

Value Builder::Internal(const std::string& what) {
  return Fail(RuntimeError("internal: " + (context_.empty() ? what : context_ + ": " + what)));
}

const TensorType& Builder::type(Value v) const {
  static const TensorType kNone;
  return v.valid() && v.id < static_cast<int>(values_.size()) ? values_[static_cast<size_t>(v.id)].type : kNone;
}

Ints Builder::dims(Value v) const {
  const TensorType& t = type(v);
  Ints d(t.rank);
  for (int i = 0; i < t.rank; ++i) d[static_cast<size_t>(i)] = t.dims[i].size();
  return d;
}

Value Builder::NewValue(const TensorType& type, int number, int part, bool argument) {
  values_.push_back({type, number, static_cast<int16_t>(part), argument, scopes_.back().id});
  return {static_cast<int>(values_.size()) - 1};
}

bool Builder::Usable(const Values& values) {
  if (!ok()) return false;
  for (Value v : values) {
    if (!v.valid() || v.id >= static_cast<int>(values_.size())) {
      Internal("an operand is missing");
      return false;
    }
    int scope = values_[static_cast<size_t>(v.id)].scope;
    bool seen = false;
    for (size_t i = scopes_.size(); i-- > 0;) {
      seen = scopes_[i].id == scope;
      if (seen || scopes_[i].isolated) break;
    }
    if (!seen) {
      Internal("a value is used outside its region, or captured by a region that cannot");
      return false;
    }
  }
  return true;
}

Value Builder::Argument(const TensorType& type) {
  Value v = NewValue(WithoutSymbols(type), static_cast<int>(arguments_.size()), -1, true);
  values_.back().scope = 0;  // arguments may be asked for from within a region
  arguments_.push_back(v.id);
  return v;
}

void Builder::Alias(Value argument, int output) {
  aliases_.emplace_back(values_[static_cast<size_t>(argument.id)].number, output);
}

Value Builder::Declare(const TensorType& type) {
  Value v = NewValue(WithoutSymbols(type), next_number_++, -1, false);
  values_.back().scope = 0;
  return v;
}

void Builder::BeginPrologue() {
  body_.swap(prologue_);
  in_prologue_ = true;
  // Constants of the prologue must not be taken from the body, which comes later.
  scopes_.push_back({next_scope_++, false, {}});
}

void Builder::Define(Value declared, Value value) {
  if (!Usable({declared, value})) return;
  if (!(type(declared) == type(value))) {
    Internal("Define: types differ");
    return;
  }
  // A reshape to the same type gives the value its second name; the compiler drops it.
  std::string& out = body_;
  out += "    ";
  AppendName(&out, values_[static_cast<size_t>(declared.id)]);
  out += " = \"stablehlo.reshape\"(";
  AppendName(&out, values_[static_cast<size_t>(value.id)]);
  out += ") : (";
  AppendType(&out, type(value));
  out += ") -> ";
  AppendType(&out, type(declared));
  out += '\n';
}

void Builder::EndPrologue() {
  scopes_.pop_back();
  body_.swap(prologue_);
  in_prologue_ = false;
}

Result<std::string> Builder::Finish(const Values& results) {
  if (!Usable(results)) return status_;
  std::string s = "module {\n  func.func public @main(";
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Info& info = values_[static_cast<size_t>(arguments_[i])];
    if (i) s += ", ";
    AppendName(&s, info);
    s += ": ";
    AppendType(&s, info.type);
    for (auto [argument, output] : aliases_) {
      if (argument != static_cast<int>(i)) continue;
      if (!(type(results[static_cast<size_t>(output)]) == info.type)) {
        Internal("an aliased output has another type than its argument");
        return status_;
      }
      s += " {tf.aliasing_output = ";
      AppendInt(&s, output);
      s += " : i32}";
    }
  }
  s += ") -> (";
  for (size_t i = 0; i < results.size(); ++i) {
    if (i) s += ", ";
    AppendType(&s, type(results[i]));
  }
  s += ") {\n";
  s += prologue_;
  s += body_;
  s += "    \"func.return\"(";
  for (size_t i = 0; i < results.size(); ++i) {
    if (i) s += ", ";
    AppendName(&s, values_[static_cast<size_t>(results[i].id)]);
  }
  s += ") : (";
  for (size_t i = 0; i < results.size(); ++i) {
    if (i) s += ", ";
    AppendType(&s, type(results[i]));
  }
  s += ") -> ()\n  }\n}\n";
  return s;
}

void Builder::AppendName(std::string* out, const Info& info) const {
  *out += info.argument ? "%arg" : "%";
  AppendInt(out, info.number);
  if (info.part >= 0) {
    *out += '#';
    AppendInt(out, info.part);
  }
}

int Builder::Start(std::string_view op, const Values& operands, size_t num_results) {
  int number = next_number_++;
  body_ += "    ";
  if (num_results) {
    body_ += '%';
    AppendInt(&body_, number);
    if (num_results > 1) {
      body_ += ':';
      AppendInt(&body_, static_cast<int64_t>(num_results));
    }
    body_ += " = ";
  }
  body_ += op.find('.') == std::string_view::npos ? "\"stablehlo." : "\"";
  body_ += op;
  body_ += "\"(";
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i) body_ += ", ";
    AppendName(&body_, values_[static_cast<size_t>(operands[i].id)]);
  }
  body_ += ')';
  return number;
}

void Builder::Attributes(std::string_view text) {
  if (text.empty()) return;
  body_ += " <{";
  body_ += text;
  body_ += "}>";
}

Values Builder::Region(const std::vector<TensorType>& arguments, const Body& body, bool isolated, bool first, bool last) {
  body_ += first ? " ({\n" : ", {\n";
  scopes_.push_back({next_scope_++, isolated, {}});
  Values values;
  if (!arguments.empty()) {
    body_ += "    ^bb0(";
    for (size_t i = 0; i < arguments.size(); ++i) {
      values.push_back(NewValue(arguments[i], next_number_++, -1, false));
      if (i) body_ += ", ";
      AppendName(&body_, values_.back());
      body_ += ": ";
      AppendType(&body_, arguments[i]);
    }
    body_ += "):\n";
  }
  Values results = body(values);
  if (Usable(results)) {
    Start("return", results, 0);
    End(0, results, {});
  }
  scopes_.pop_back();
  body_ += "    }";
  if (last) body_ += ')';
  return results;
}

Values Builder::End(int number, const Values& operands, const std::vector<TensorType>& results) {
  body_ += " : (";
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i) body_ += ", ";
    AppendType(&body_, type(operands[i]));
  }
  body_ += ") -> ";
  bool parentheses = results.size() != 1;
  if (parentheses) body_ += '(';
  Values values;
  for (size_t i = 0; i < results.size(); ++i) {
    if (i) body_ += ", ";
    AppendType(&body_, results[i]);
    values.push_back(NewValue(results[i], number, parentheses ? static_cast<int>(i) : -1, false));
  }
  if (parentheses) body_ += ')';
  body_ += '\n';
  return values;
}

Value Builder::Emit(std::string_view op, const Values& operands, const TensorType& result, std::string_view attributes) {
  int number = Start(op, operands, 1);
  Attributes(attributes);
  return End(number, operands, {result})[0];
}

Values Builder::Op(std::string_view op, const Values& operands, const std::vector<TensorType>& results,
                   std::string_view attributes, const Body* body, const std::vector<TensorType>& body_arguments) {
  if (!Usable(operands)) return Values(results.size());
  int number = Start(op, operands, results.size());
  Attributes(attributes);
  if (body) Region(body_arguments, *body, true, true, true);
  return End(number, operands, results);
}

Values Builder::CustomCall(std::string_view target, const Values& operands, const std::vector<TensorType>& results,
                           std::string_view attributes, bool has_side_effect) {
  std::string text = "call_target_name = \"";
  text += target;
  text += has_side_effect ? "\", has_side_effect = true" : "\", has_side_effect = false";
  if (!attributes.empty()) (text += ", ") += attributes;
  return Op("custom_call", operands, results, text);
}

// ---- constants

Value Builder::SharedConstant(const TensorType& type, const std::string& text) {
  if (!ok()) return {};
  TensorType plain = WithoutSymbols(type);
  std::string literal = "value = dense<";
  if (plain.numel()) literal += text;
  literal += "> : ";
  AppendType(&literal, plain);
  auto [it, fresh] = scopes_.back().constants.try_emplace(literal);
  if (fresh) {
    Value v = Emit("constant", {}, plain, literal);
    // Emit may not touch the scopes, so the iterator stands.
    it->second = v;
  }
  return it->second;
}

Value Builder::FloatConstant(const TensorType& type, double v) {
  std::string text;
  AppendElement(&text, type.dtype, v);
  return SharedConstant(type, text);
}

Value Builder::IntConstant(const TensorType& type, int64_t v) {
  std::string text;
  AppendElement(&text, type.dtype, v);
  return SharedConstant(type, text);
}

Value Builder::Constant(const TensorType& type, std::complex<double> v) {
  std::string text;
  AppendElement(&text, type.dtype, v);
  return SharedConstant(type, text);
}

Value Builder::ConstantList(const TensorType& type, const Ints& values) {
  if (static_cast<int64_t>(values.size()) != type.numel()) return Internal("ConstantList: wrong number of values");
  std::string text;
  AppendList(&text, type, values);
  return SharedConstant(type, text);
}

Value Builder::ConstantList(const TensorType& type, const std::vector<double>& values) {
  if (static_cast<int64_t>(values.size()) != type.numel()) return Internal("ConstantList: wrong number of values");
  std::string text;
  AppendList(&text, type, values);
  return SharedConstant(type, text);
}

}  // namespace tpu::hlo
