// SPDX-License-Identifier: Apache-2.0
#include "scanner.h"

#include <cctype>

namespace fake_pjrt {
namespace {

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.'; }

}  // namespace

bool Scanner::FailAt(int line, const std::string& message) {
  if (error_.ok()) error_ = Invalid("line " + std::to_string(line) + ": " + message);
  pos_ = text_.size();
  return false;
}

bool Scanner::Fail(const std::string& message) { return ok() ? FailAt(Line(), message) : false; }

int Scanner::Line() {
  SkipSpace();
  for (; line_pos_ < pos_; ++line_pos_)
    if (text_[line_pos_] == '\n') ++line_;
  return line_;
}

bool Scanner::AtEnd() {
  SkipSpace();
  return pos_ >= text_.size();
}

void Scanner::SkipSpace() {
  while (pos_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[pos_]))) {
      ++pos_;
    } else if (text_.substr(pos_, 2) == "//") {
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
    } else {
      return;
    }
  }
}

bool Scanner::Peek(std::string_view token) {
  SkipSpace();
  if (text_.substr(pos_, token.size()) != token) return false;
  size_t end = pos_ + token.size();
  return !IsWordChar(token.back()) || end >= text_.size() || !IsWordChar(text_[end]);
}

bool Scanner::Eat(std::string_view token) {
  if (!Peek(token)) return false;
  pos_ += token.size();
  return true;
}

bool Scanner::Expect(std::string_view token) {
  if (Eat(token)) return true;
  if (!ok()) return false;
  std::string found(text_.substr(pos_, 16));
  found = found.substr(0, found.find('\n'));
  return Fail("expected \"" + std::string(token) + "\", found \"" + found + "\"");
}

std::string Scanner::Word() {
  SkipSpace();
  size_t begin = pos_;
  if (pos_ < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[pos_])) || text_[pos_] == '_'))
    while (pos_ < text_.size() && IsWordChar(text_[pos_])) ++pos_;
  return std::string(text_.substr(begin, pos_ - begin));
}

std::string Scanner::Suffix() {
  size_t begin = pos_;
  while (pos_ < text_.size() && (IsWordChar(text_[pos_]) || text_[pos_] == '-')) ++pos_;
  if (begin == pos_) Fail("expected a name");
  return std::string(text_.substr(begin, pos_ - begin));
}

bool Scanner::Integer(int64_t* value) {
  SkipSpace();
  size_t begin = pos_;
  if (pos_ < text_.size() && text_[pos_] == '-') ++pos_;
  while (pos_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[pos_]))) ++pos_;
  std::string digits(text_.substr(begin, pos_ - begin));
  if (digits.empty() || digits == "-") return Fail("expected an integer");
  *value = std::strtoll(digits.c_str(), nullptr, 10);
  return true;
}

bool Scanner::String(std::string* value) {
  if (!Expect("\"")) return false;
  value->clear();
  while (pos_ < text_.size() && text_[pos_] != '"') {
    if (text_[pos_] == '\n') break;
    if (text_[pos_] == '\\' && pos_ + 2 < text_.size()) {
      ++pos_;
      if (std::isxdigit(static_cast<unsigned char>(text_[pos_])) &&
          std::isxdigit(static_cast<unsigned char>(text_[pos_ + 1]))) {
        value->push_back(static_cast<char>(std::stoi(std::string(text_.substr(pos_, 2)), nullptr, 16)));
        pos_ += 2;
        continue;
      }
      char c = text_[pos_++];
      value->push_back(c == 'n' ? '\n' : c == 't' ? '\t' : c);
      continue;
    }
    value->push_back(text_[pos_++]);
  }
  if (pos_ >= text_.size() || text_[pos_] != '"') return Fail("unterminated string");
  ++pos_;
  return true;
}

bool Scanner::ParseType(Type* type) {
  if (!Eat("tensor")) {
    return Fail("expected a tensor type, found \"" + std::string(text_.substr(pos_, 16)) + "\"");
  }
  if (!Expect("<")) return false;
  *type = Type();
  for (;;) {
    SkipSpace();
    if (pos_ >= text_.size()) return Fail("unterminated type");
    if (text_[pos_] == '?') return Fail("dynamic dimensions are not supported");
    if (!std::isdigit(static_cast<unsigned char>(text_[pos_]))) break;
    int64_t size;
    if (!Integer(&size)) return false;
    type->dims.push_back(size);
    if (pos_ >= text_.size() || text_[pos_] != 'x') return Fail("expected \"x\" after a dimension");
    ++pos_;
  }
  std::string element = Word();
  if (element == "complex") {
    if (!Expect("<")) return false;
    element.append("<").append(Word()).append(">");
    if (!Expect(">")) return false;
  }
  type->dtype = ParseDType(element);
  if (type->dtype == DType::kInvalid) return Fail("unknown or unsupported element type \"" + element + "\"");
  return Expect(">");
}

bool Scanner::ParseTypeList(std::vector<Type>* types) {
  types->clear();
  if (!Eat("(")) {
    types->emplace_back();
    return ParseType(&types->back());
  }
  if (Eat(")")) return true;
  do {
    types->emplace_back();
    if (!ParseType(&types->back())) return false;
  } while (Eat(","));
  return Expect(")");
}

}  // namespace fake_pjrt
