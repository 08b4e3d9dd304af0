// SPDX-License-Identifier: Apache-2.0
// Characters, names, types and attributes of MLIR text. The first error stays; after it every call fails quickly.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "error.h"
#include "program.h"

namespace fake_pjrt {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool ok() const { return error_.ok(); }
  const Error& error() const { return error_; }
  // Records "line N: message" unless there is an error already. Returns false.
  bool Fail(const std::string& message);
  bool FailAt(int line, const std::string& message);
  // The line of the next token.
  int Line();
  bool AtEnd();

  // True when the next token is `token` (a word is matched as a whole).
  bool Peek(std::string_view token);
  bool Eat(std::string_view token);
  bool Expect(std::string_view token);
  // [A-Za-z_][A-Za-z0-9_$.]*, "" when there is none.
  std::string Word();
  // What follows % or @ (digits or a word).
  std::string Suffix();
  bool Integer(int64_t* value);
  bool String(std::string* value);

  bool ParseType(Type* type);
  // `(t, t)` or a single type.
  bool ParseTypeList(std::vector<Type>* types);
  // `{name = value, name}`, braces included.
  bool ParseDict(std::vector<NamedAttr>* fields);
  bool ParseAttr(Attr* attr);

 private:
  // One number or word of a dense<...> payload.
  struct Literal {
    std::string text, imaginary;  // imaginary: of (re, im)
  };

  void SkipSpace();
  bool ParseNumberAttr(Attr* attr);
  bool ParseArray(Attr* attr);
  bool ParseDense(Attr* attr);
  bool ParseDialectAttr(Attr* attr);
  bool ParseNested(std::vector<Literal>* literals, Dims* dims, size_t depth);
  bool ParseLiteral(Literal* literal);
  std::string NumberText();
  bool StoreLiteral(const Literal& literal, const Tensor& dense, int64_t index);
  template <class T>
  bool ConvertNumber(const std::string& text, DType dtype, T* value);
  bool StoreHex(const std::string& digits, const Tensor& dense);
  // Text up to the closing `>` of an already opened `<`; the `>` is consumed.
  bool RawUntilClose(std::string* text);

  std::string_view text_;
  size_t pos_ = 0, line_pos_ = 0;
  int line_ = 1;
  Error error_;
};

}  // namespace fake_pjrt
