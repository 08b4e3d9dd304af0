// SPDX-License-Identifier: Apache-2.0
// A parsed StableHLO module. Immutable once parsed; read by any number of threads.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tensor.h"

namespace fake_pjrt {

struct OpDef;
struct NamedAttr;

struct Attr {
  enum class Kind {
    kMissing,
    kInt,     // number, dtype
    kFloat,   // real
    kBool,    // number
    kString,  // text
    kSymbol,  // text, without the @
    kArray,   // ints: array<i64: ...>, array<i32: ...>, array<i1: ...>
    kDense,   // dense
    kList,    // list
    kDict,    // fields
    kEnum,    // #dialect<name VALUE>: name, text = VALUE
    kStruct,  // #dialect.name<field = value, ...>: name, fields
    kType,    // a tensor type (types[0]), or a function type (types -> results)
    kUnit,
  };
  Kind kind = Kind::kMissing;
  int64_t number = 0;
  double real = 0;
  DType dtype = DType::kInvalid;
  std::string name, text;
  std::vector<int64_t> ints;
  Tensor dense;
  std::vector<Attr> list;
  std::vector<NamedAttr> fields;
  std::vector<Type> types, results;

  explicit operator bool() const { return kind != Kind::kMissing; }
  // The field of a dictionary or struct; a missing attribute otherwise.
  const Attr& Field(std::string_view field) const;
  // The integers of `array<...>`, of a list of integers, or of an integer `dense<...>`; empty for a missing attribute.
  std::vector<int64_t> Ints() const;
};

struct NamedAttr {
  std::string name;
  Attr value;
};

const Attr* FindAttr(const std::vector<NamedAttr>& attrs, std::string_view name);

struct Op;

struct Region {
  std::vector<int> args;  // value ids
  std::vector<Type> arg_types;
  std::vector<Op> ops;             // the last one is the terminator
  std::vector<Type> result_types;  // of the terminator's operands
};

struct Op {
  const OpDef* def = nullptr;
  int line = 0;
  std::vector<int> operands, results;  // value ids
  std::vector<Type> operand_types, result_types;
  std::vector<NamedAttr> attrs;
  std::vector<Region> regions;

  // A missing attribute when absent.
  const Attr& attr(std::string_view name) const;
  std::vector<int64_t> ints(std::string_view name) const { return attr(name).Ints(); }
  int64_t number(std::string_view name, int64_t otherwise = 0) const;
};

struct Function {
  std::string name;
  int line = 0;
  std::vector<Type> arg_types, result_types;
  std::vector<std::vector<NamedAttr>> arg_attrs;  // one for each argument
  Region body;
  std::vector<Type> value_types;         // by value id
  std::vector<std::string> value_names;  // by value id; for messages
};

struct Module {
  std::string name;
  std::vector<std::unique_ptr<Function>> functions;

  const Function* Find(std::string_view function) const;
  // Requires: a parsed module (the parser refuses modules without @main).
  const Function& main() const { return *Find("main"); }
};

}  // namespace fake_pjrt
