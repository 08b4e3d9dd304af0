// SPDX-License-Identifier: Apache-2.0
// The attribute half of Scanner.
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "scanner.h"

namespace fake_pjrt {
namespace {

bool IsHexNumber(const std::string& s) { return s.size() > 2 && s[0] == '0' && s[1] == 'x'; }
bool IsFloatText(const std::string& s) { return s.find('.') != std::string::npos; }

int HexDigit(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

}  // namespace

bool Scanner::ParseDict(std::vector<NamedAttr>* fields) {
  if (!Expect("{")) return false;
  if (Eat("}")) return true;
  do {
    NamedAttr field;
    if (Peek("\"")) {
      if (!String(&field.name)) return false;
    } else {
      field.name = Word();
    }
    if (field.name.empty()) return Fail("expected an attribute name");
    if (FindAttr(*fields, field.name)) return Fail("attribute \"" + field.name + "\" occurs twice");
    if (Eat("=")) {
      if (!ParseAttr(&field.value)) return false;
    } else {
      field.value.kind = Attr::Kind::kUnit;
    }
    fields->push_back(std::move(field));
  } while (Eat(","));
  return Expect("}");
}

bool Scanner::ParseAttr(Attr* attr) {
  using Kind = Attr::Kind;
  *attr = Attr();
  if (Peek("\"")) {
    attr->kind = Kind::kString;
    return String(&attr->text);
  }
  if (Eat("@")) {
    attr->kind = Kind::kSymbol;
    if (Peek("\"")) return String(&attr->text);
    attr->text = Suffix();
    return ok();
  }
  if (Peek("#")) return ParseDialectAttr(attr);
  if (Eat("[")) {
    attr->kind = Kind::kList;
    if (Eat("]")) return true;
    do {
      attr->list.emplace_back();
      if (!ParseAttr(&attr->list.back())) return false;
    } while (Eat(","));
    return Expect("]");
  }
  if (Peek("{")) {
    attr->kind = Kind::kDict;
    return ParseDict(&attr->fields);
  }
  if (Peek("array")) return ParseArray(attr);
  if (Peek("dense")) return ParseDense(attr);
  if (Peek("true") || Peek("false")) {
    attr->kind = Kind::kBool;
    attr->dtype = DType::kBool;
    attr->number = Word() == "true";
    return true;
  }
  if (Eat("unit")) {
    attr->kind = Kind::kUnit;
    return true;
  }
  if (Peek("tensor") || Peek("(")) {
    attr->kind = Kind::kType;
    if (!ParseTypeList(&attr->types)) return false;
    return Eat("->") ? ParseTypeList(&attr->results) : true;
  }
  return ParseNumberAttr(attr);
}

std::string Scanner::NumberText() {
  SkipSpace();
  size_t begin = pos_;
  auto digits = [&] {
    while (pos_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[pos_]))) ++pos_;
  };
  if (text_.substr(pos_, 2) == "0x") {
    pos_ += 2;
    while (pos_ < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[pos_]))) ++pos_;
    return std::string(text_.substr(begin, pos_ - begin));
  }
  if (pos_ < text_.size() && text_[pos_] == '-') ++pos_;
  digits();
  if (pos_ < text_.size() && text_[pos_] == '.') {
    ++pos_;
    digits();
    if (pos_ < text_.size() && (text_[pos_] | 0x20) == 'e') {
      ++pos_;
      if (pos_ < text_.size() && (text_[pos_] == '+' || text_[pos_] == '-')) ++pos_;
      digits();
    }
  }
  return std::string(text_.substr(begin, pos_ - begin));
}

bool Scanner::ParseNumberAttr(Attr* attr) {
  std::string text = NumberText();
  if (text.empty() || text == "-") return Fail("expected an attribute value");
  bool is_float = IsFloatText(text);
  attr->dtype = is_float ? DType::kF64 : DType::kI64;
  if (Eat(":")) {
    std::string name = Word();
    attr->dtype = ParseDType(name);
    if (attr->dtype == DType::kInvalid) return Fail("unknown type \"" + name + "\" of an attribute");
  }
  if (is_float || tpu::IsFloat(attr->dtype)) {
    if (!is_float || !tpu::IsFloat(attr->dtype)) return Fail("attribute value " + text + " does not fit its type");
    attr->kind = Attr::Kind::kFloat;
    attr->real = std::strtod(text.c_str(), nullptr);
    return true;
  }
  attr->kind = Attr::Kind::kInt;
  attr->number = static_cast<int64_t>(IsHexNumber(text) ? std::strtoull(text.c_str() + 2, nullptr, 16)
                                                        : static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 10)));
  return true;
}

bool Scanner::ParseArray(Attr* attr) {
  attr->kind = Attr::Kind::kArray;
  if (!Expect("array") || !Expect("<")) return false;
  std::string element = Word();
  attr->dtype = ParseDType(element);
  if (attr->dtype == DType::kInvalid || tpu::IsFloat(attr->dtype)) return Fail("unsupported array of \"" + element + "\"");
  if (Eat(">")) return true;
  if (!Expect(":")) return false;
  do {
    int64_t value;
    if (attr->dtype == DType::kBool) {
      std::string word = Word();
      if (word != "true" && word != "false") return Fail("expected true or false");
      value = word == "true";
    } else if (!Integer(&value)) {
      return false;
    }
    attr->ints.push_back(value);
  } while (Eat(","));
  return Expect(">");
}

bool Scanner::ParseLiteral(Literal* literal) {
  if (Eat("(")) {
    literal->text = NumberText();
    if (!Expect(",")) return false;
    literal->imaginary = NumberText();
    if (literal->imaginary.empty()) return Fail("expected a number");
    return Expect(")");
  }
  literal->text = Peek("true") || Peek("false") ? Word() : NumberText();
  return literal->text.empty() || literal->text == "-" ? Fail("expected a number") : true;
}

bool Scanner::ParseNested(std::vector<Literal>* literals, Dims* dims, size_t depth) {
  if (!Eat("[")) {
    if (depth != dims->size() && !literals->empty()) return Fail("ragged dense<> literal");
    literals->emplace_back();
    return ParseLiteral(&literals->back());
  }
  if (dims->size() == depth) {
    if (!literals->empty()) return Fail("ragged dense<> literal");
    dims->push_back(-1);
  }
  int64_t count = 0;
  if (!Peek("]")) {
    do {
      if (!ParseNested(literals, dims, depth + 1)) return false;
      ++count;
    } while (Eat(","));
  }
  if ((*dims)[depth] >= 0 && (*dims)[depth] != count) return Fail("ragged dense<> literal");
  (*dims)[depth] = count;
  return Expect("]");
}

template <class T>
bool Scanner::ConvertNumber(const std::string& text, DType dtype, T* value) {
  errno = 0;
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "true" || text == "false") {
      *value = text == "true";
      return true;
    }
    if (text != "0" && text != "1") return Fail("\"" + text + "\" is no i1 value");
    *value = text == "1";
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    if (text == "true" || text == "false" || IsFloatText(text)) return Fail("\"" + text + "\" is no integer");
    if (IsHexNumber(text)) {
      *value = static_cast<T>(std::strtoull(text.c_str() + 2, nullptr, 16));
      return true;
    }
    bool fits;
    if constexpr (std::is_unsigned_v<T>) {
      uint64_t v = std::strtoull(text.c_str(), nullptr, 10);
      fits = text[0] != '-' && v <= std::numeric_limits<T>::max();
      *value = static_cast<T>(v);
    } else {
      int64_t v = std::strtoll(text.c_str(), nullptr, 10);
      fits = v >= std::numeric_limits<T>::min() && v <= std::numeric_limits<T>::max();
      *value = static_cast<T>(v);
    }
    return fits && errno == 0 ? true : Fail(text + " does not fit " + tpu::HloName(dtype));
  } else {
    if (IsHexNumber(text)) {
      if (text.size() != 2 + 2 * tpu::ItemSize(tpu::RealType(dtype)))
        return Fail(text + " has not the width of " + tpu::HloName(dtype));
      uint64_t bits = std::strtoull(text.c_str() + 2, nullptr, 16);
      if (IsNarrowFloat(dtype))
        *value = DecodeNarrow(dtype, static_cast<uint16_t>(bits));
      else
        std::memcpy(value, &bits, sizeof(T));  // little endian, as the rest of the project
      return true;
    }
    if (!IsFloatText(text)) return Fail("\"" + text + "\" is no floating-point literal (it needs a decimal point)");
    *value = static_cast<T>(std::strtod(text.c_str(), nullptr));
    return true;
  }
}

bool Scanner::StoreLiteral(const Literal& literal, const Tensor& dense, int64_t index) {
  DType dtype = dense.type.dtype;
  if (literal.imaginary.empty() == tpu::IsComplex(dtype)) return Fail("complex elements, and only they, are written (re, im)");
  return VisitCompute(dtype, [&]<class T>() -> bool {
    if constexpr (std::is_same_v<T, C64> || std::is_same_v<T, C128>) {
      typename T::value_type re, im;
      if (!ConvertNumber(literal.text, dtype, &re) || !ConvertNumber(literal.imaginary, dtype, &im)) return false;
      dense.As<T>()[index] = T(re, im);
      return true;
    } else {
      T value{};
      if (!ConvertNumber(literal.text, dtype, &value)) return false;
      if (!IsNarrowFloat(dtype)) {
        dense.As<T>()[index] = value;
      } else if constexpr (std::is_same_v<T, float>) {
        uint16_t bits = EncodeNarrow(dtype, value);
        std::memcpy(dense.bytes() + index * tpu::ItemSize(dtype), &bits, tpu::ItemSize(dtype));
      }
      return true;
    }
  });
}

bool Scanner::StoreHex(const std::string& digits, const Tensor& dense) {
  if (digits.size() < 2 || digits[0] != '0' || digits[1] != 'x') return Fail("a dense string starts with 0x");
  size_t count = (digits.size() - 2) / 2, item = tpu::ItemSize(dense.type.dtype), need = dense.type.bytes();
  if (digits.size() % 2 || (count != need && count != item))
    return Fail("dense string of " + std::to_string(count) + " bytes for " + dense.type.ToString());
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    char hi = digits[2 + 2 * i], lo = digits[3 + 2 * i];
    if (!std::isxdigit(static_cast<unsigned char>(hi)) || !std::isxdigit(static_cast<unsigned char>(lo)))
      return Fail("bad digit in a dense string");
    bytes[i] = static_cast<uint8_t>(HexDigit(hi) * 16 + HexDigit(lo));
  }
  for (size_t i = 0; i < need; ++i) dense.bytes()[i] = bytes[count == need ? i : i % item];
  return true;
}

bool Scanner::ParseDense(Attr* attr) {
  attr->kind = Attr::Kind::kDense;
  if (!Expect("dense") || !Expect("<")) return false;
  std::vector<Literal> literals;
  Dims dims;
  std::string hex;
  bool is_hex = false, is_empty = Peek(">");
  if (Peek("\"")) {
    is_hex = true;
    if (!String(&hex)) return false;
  } else if (!is_empty && !ParseNested(&literals, &dims, 0)) {
    return false;
  }
  Type type;
  if (!Expect(">") || !Expect(":") || !ParseType(&type)) return false;
  attr->dense = Tensor::Empty(type);
  int64_t n = type.numel();
  if (is_empty) return n == 0 ? true : Fail("dense<> for " + type.ToString());
  if (is_hex) return StoreHex(hex, attr->dense);
  bool splat = dims.empty();
  if (!splat && dims != type.dims) return Fail("the dense<> literal has not the dimensions of " + type.ToString());
  if (!splat)
    for (int64_t i = 0; i < n; ++i)
      if (!StoreLiteral(literals[i], attr->dense, i)) return false;
  if (splat && n > 0) {
    if (!StoreLiteral(literals[0], attr->dense, 0)) return false;
    size_t item = tpu::ItemSize(type.dtype);
    for (int64_t i = 1; i < n; ++i) std::memcpy(attr->dense.bytes() + i * item, attr->dense.bytes(), item);
  }
  return true;
}

bool Scanner::RawUntilClose(std::string* text) {
  size_t begin = pos_;
  for (int depth = 1; pos_ < text_.size(); ++pos_) {
    if (text_[pos_] == '-' && text_.substr(pos_, 2) == "->") {
      ++pos_;
    } else if (text_[pos_] == '<') {
      ++depth;
    } else if (text_[pos_] == '>' && --depth == 0) {
      *text = std::string(text_.substr(begin, pos_ - begin));
      ++pos_;
      return true;
    }
  }
  return Fail("unterminated attribute");
}

bool Scanner::ParseDialectAttr(Attr* attr) {
  if (!Expect("#")) return false;
  attr->name = Word();
  if (!Expect("<")) return false;
  if (attr->name.find('.') == std::string::npos) {  // #stablehlo<comparison_direction EQ>
    attr->kind = Attr::Kind::kEnum;
    attr->name.append(".").append(Word());
    if (Peek(">") || Peek("<")) {  // #stablehlo<dot<...>> is the same as #stablehlo.dot<...>; nobody needs it
      return Fail("unsupported spelling of attribute #" + attr->name);
    }
    SkipSpace();
    return RawUntilClose(&attr->text);
  }
  attr->kind = Attr::Kind::kStruct;
  size_t begin = pos_;
  std::string first = Word();
  bool has_fields = !first.empty() && Eat("=");
  pos_ = begin;
  if (!has_fields) {  // #stablehlo.conv<[b, f, 0, 1]x...>, #stablehlo.result_accuracy_mode<HIGHEST>,
                      // #stablehlo.gather<>
    if (Eat(">")) return true;
    attr->kind = Attr::Kind::kEnum;
    return RawUntilClose(&attr->text);
  }
  do {
    NamedAttr field;
    field.name = Word();
    if (!Expect("=")) return false;
    SkipSpace();
    if (pos_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[pos_])) && !Peek("true") && !Peek("false")) {
      field.value.kind = Attr::Kind::kEnum;
      field.value.text = Word();
    } else if (!ParseAttr(&field.value)) {
      return false;
    }
    if (FindAttr(attr->fields, field.name)) return Fail("field \"" + field.name + "\" occurs twice");
    attr->fields.push_back(std::move(field));
  } while (Eat(","));
  return Expect(">");
}

}  // namespace fake_pjrt
