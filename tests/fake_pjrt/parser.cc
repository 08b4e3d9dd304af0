// SPDX-License-Identifier: Apache-2.0
#include "parser.h"

#include <unordered_map>

#include "op_table.h"
#include "scanner.h"

namespace fake_pjrt {
namespace {

const char* KindName(Attr::Kind kind) {
  static constexpr const char* kNames[] = {"missing", "integer",    "float", "bool", "string",       "symbol", "array<...>",
                                           "dense<>", "list [...]", "dict",  "enum", "#struct<...>", "type",   "unit"};
  return kNames[static_cast<int>(kind)];
}

bool IsTerminator(const OpDef& def) {
  std::string_view name = def.name;
  return name == "func.return" || name == "stablehlo.return";
}

bool MayCapture(const OpDef& def) {
  std::string_view name = def.name;
  return name == "stablehlo.while" || name == "stablehlo.if" || name == "stablehlo.case";
}

// Whether an operator in `region` reads a value older than `first`.
bool ReadsOlder(const Region& region, int first) {
  for (const Op& op : region.ops) {
    for (int id : op.operands)
      if (id < first) return true;
    for (const Region& r : op.regions)
      if (ReadsOlder(r, first)) return true;
  }
  return false;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : s_(text) {}

  Error Run(std::unique_ptr<Module>* module) {
    module_ = std::make_unique<Module>();
    ParseTop();
    if (s_.ok()) CheckCalls();
    if (s_.ok() && !module_->Find("main")) s_.FailAt(1, "the module has no function @main");
    if (s_.ok()) *module = std::move(module_);
    return s_.error();
  }

 private:
  struct Name {
    int first = 0, count = 0;
  };

  // ---- module and functions

  bool ParseTop() {
    bool generic = s_.Eat("\"builtin.module\"");
    if (!generic && !s_.Eat("module")) return s_.Fail("expected a module");
    if (generic) {
      std::vector<NamedAttr> attrs;
      if (!s_.Expect("(") || !s_.Expect(")") || !ParseProperties(&attrs) || !s_.Expect("(")) return false;
      if (const Attr* name = FindAttr(attrs, "sym_name")) module_->name = name->text;
    } else {
      if (s_.Eat("@")) module_->name = s_.Suffix();
      std::vector<NamedAttr> attrs;
      if (s_.Eat("attributes") && !s_.ParseDict(&attrs)) return false;
    }
    if (!s_.Expect("{")) return false;
    while (s_.ok() && !s_.Peek("}"))
      if (!ParseFunction()) return false;
    if (!s_.Expect("}")) return false;
    if (generic) {
      if (!s_.Expect(")")) return false;
      std::vector<NamedAttr> attrs;
      if (s_.Peek("{") && !s_.ParseDict(&attrs)) return false;
      if (!s_.Expect(":") || !s_.Expect("(") || !s_.Expect(")") || !s_.Expect("->") || !s_.Expect("(") || !s_.Expect(")"))
        return false;
    }
    return s_.AtEnd() ? true : s_.Fail("text after the module");
  }

  bool ParseFunction() {
    auto owned = std::make_unique<Function>();
    f_ = owned.get();
    f_->line = s_.Line();
    scopes_.assign(1, {});
    bool done = s_.Eat("\"func.func\"") ? ParseGenericFunction()
                : s_.Eat("func.func")   ? ParsePrettyFunction()
                                        : s_.Fail("expected a func.func");
    if (!done) return false;
    f_->arg_attrs.resize(f_->arg_types.size());
    if (f_->body.result_types != f_->result_types)
      return s_.FailAt(f_->body.ops.back().line, "the types of func.return are not the result types of @" + f_->name);
    if (module_->Find(f_->name)) return s_.FailAt(f_->line, "function @" + f_->name + " occurs twice");
    if (!CheckAliases()) return false;
    module_->functions.push_back(std::move(owned));
    return true;
  }

  bool ParseGenericFunction() {
    std::vector<NamedAttr> attrs;
    if (!s_.Expect("(") || !s_.Expect(")") || !ParseProperties(&attrs) || !s_.Expect("(")) return false;
    if (!ParseRegion(&f_->body, /*new_scope=*/false)) return false;
    if (!s_.Expect(")")) return false;
    if (s_.Peek("{") && !s_.ParseDict(&attrs)) return false;
    if (!s_.Expect(":") || !s_.Expect("(") || !s_.Expect(")") || !s_.Expect("->") || !s_.Expect("(") || !s_.Expect(")"))
      return false;
    const Attr* name = FindAttr(attrs, "sym_name");
    const Attr* type = FindAttr(attrs, "function_type");
    if (!name || name->kind != Attr::Kind::kString || !type || type->kind != Attr::Kind::kType)
      return s_.FailAt(f_->line, "func.func needs sym_name and function_type");
    f_->name = name->text;
    f_->arg_types = type->types;
    f_->result_types = type->results;
    if (f_->body.arg_types != f_->arg_types)
      return s_.FailAt(f_->line, "the block arguments of @" + f_->name + " do not match its function_type");
    if (const Attr* list = FindAttr(attrs, "arg_attrs")) {
      if (list->list.size() != f_->arg_types.size()) return s_.FailAt(f_->line, "arg_attrs has the wrong length");
      for (const Attr& a : list->list) f_->arg_attrs.push_back(a.fields);
    }
    return true;
  }

  bool ParsePrettyFunction() {
    bool is_private = !s_.Eat("public") && s_.Eat("private");
    if (!s_.Expect("@")) return false;
    f_->name = s_.Suffix();
    if (is_private && f_->name == "main") return s_.Fail("@main is private");
    if (!s_.Expect("(")) return false;
    if (!s_.Eat(")")) {
      do {
        Type type;
        if (!ParseArgument(&f_->body, &type)) return false;
        f_->arg_types.push_back(type);
        f_->arg_attrs.emplace_back();
        if (s_.Peek("{") && !s_.ParseDict(&f_->arg_attrs.back())) return false;
      } while (s_.Eat(","));
      if (!s_.Expect(")")) return false;
    }
    if (s_.Eat("->") && !ParseResultTypes()) return false;
    std::vector<NamedAttr> attrs;
    if (s_.Eat("attributes") && !s_.ParseDict(&attrs)) return false;
    return s_.Expect("{") && ParseOps(&f_->body);
  }

  bool ParseResultTypes() {
    bool list = s_.Eat("(");
    if (list && s_.Eat(")")) return true;
    do {
      f_->result_types.emplace_back();
      if (!s_.ParseType(&f_->result_types.back())) return false;
      std::vector<NamedAttr> attrs;
      if (list && s_.Peek("{") && !s_.ParseDict(&attrs)) return false;
    } while (list && s_.Eat(","));
    return list ? s_.Expect(")") : true;
  }

  // tf.aliasing_output names an output of the same byte size, each output at most once.
  bool CheckAliases() {
    std::vector<bool> used(f_->result_types.size());
    for (size_t i = 0; i < f_->arg_attrs.size(); ++i) {
      const Attr* alias = FindAttr(f_->arg_attrs[i], "tf.aliasing_output");
      if (!alias) continue;
      std::string where = "tf.aliasing_output of argument " + std::to_string(i) + " of @" + f_->name;
      if (alias->kind != Attr::Kind::kInt || alias->dtype != DType::kI32) return s_.FailAt(f_->line, where + " is not an i32");
      if (alias->number < 0 || alias->number >= static_cast<int64_t>(used.size()))
        return s_.FailAt(f_->line, where + " names no result");
      if (used[alias->number]) return s_.FailAt(f_->line, where + " names a result that another argument has");
      used[alias->number] = true;
      if (f_->arg_types[i].bytes() != f_->result_types[alias->number].bytes())
        return s_.FailAt(f_->line, where + " names a result of another size");
    }
    return true;
  }

  void CheckCalls() {
    for (const Op& call : calls_) {
      const std::string& name = call.attr("callee").text;
      const Function* callee = module_->Find(name);
      if (!callee) {
        s_.FailAt(call.line, "func.call of unknown function @" + name);
      } else if (callee->arg_types != call.operand_types || callee->result_types != call.result_types) {
        s_.FailAt(call.line, "func.call: types differ from those of @" + name);
      }
    }
  }

  // ---- regions and operators

  int NewValue(const std::string& name, const Type& type) {
    f_->value_types.push_back(type);
    f_->value_names.push_back(name);
    return static_cast<int>(f_->value_types.size()) - 1;
  }

  const Name* FindName(const std::string& name) {
    for (size_t i = scopes_.size(); i-- > 0;)
      if (auto it = scopes_[i].find(name); it != scopes_[i].end()) return &it->second;
    return nullptr;
  }

  bool Define(const std::string& name, Name value) {
    if (FindName(name)) return s_.Fail("redefinition of %" + name);
    scopes_.back()[name] = value;
    return true;
  }

  bool ParseArgument(Region* region, Type* type) {
    if (!s_.Expect("%")) return false;
    std::string name = s_.Suffix();
    if (!s_.Expect(":") || !s_.ParseType(type)) return false;
    int id = NewValue(name, *type);
    region->args.push_back(id);
    region->arg_types.push_back(*type);
    return Define(name, {id, 1});
  }

  // `{ ^bb0(%x: t): ... }` or `{ ... }`.
  bool ParseRegion(Region* region, bool new_scope) {
    if (!s_.Expect("{")) return false;
    if (new_scope) scopes_.emplace_back();
    if (s_.Eat("^")) {
      s_.Suffix();
      if (s_.Eat("(") && !s_.Eat(")")) {
        do {
          Type type;
          if (!ParseArgument(region, &type)) return false;
        } while (s_.Eat(","));
        if (!s_.Expect(")")) return false;
      }
      if (!s_.Expect(":")) return false;
    }
    if (!ParseOps(region)) return false;
    if (new_scope) scopes_.pop_back();
    return true;
  }

  // Up to the closing brace, which is consumed.
  bool ParseOps(Region* region) {
    while (s_.ok() && !s_.Eat("}")) {
      if (!region->ops.empty() && IsTerminator(*region->ops.back().def)) return s_.Fail("operator after the terminator");
      region->ops.emplace_back();
      if (!ParseOp(&region->ops.back())) return false;
    }
    if (!s_.ok()) return false;
    if (region->ops.empty() || !IsTerminator(*region->ops.back().def)) return s_.Fail("the block has no terminator");
    region->result_types = region->ops.back().operand_types;
    return true;
  }

  bool ParseOp(Op* op) {
    op->line = s_.Line();
    std::vector<std::pair<std::string, int>> names;
    if (s_.Peek("%")) {
      do {
        if (!s_.Expect("%")) return false;
        names.emplace_back(s_.Suffix(), 1);
        int64_t count;
        if (s_.Eat(":")) {
          if (!s_.Integer(&count)) return false;
          if (count < 1) return s_.Fail("a result count must be positive");
          names.back().second = static_cast<int>(count);
        }
      } while (s_.Eat(","));
      if (!s_.Expect("=")) return false;
    }
    std::string name;
    if (s_.Peek("\"")) {
      if (!s_.String(&name)) return false;
      if (!FindDef(op, name) || !ParseGenericTail(op)) return false;
    } else {
      name = s_.Word();
      if (name == "return") name = "func.return";
      if (name != "func.return" && name != "stablehlo.return")
        return s_.Fail(name.empty() ? "expected an operator" : "operator " + name + " is not in generic form");
      if (!FindDef(op, name) || !ParsePrettyReturn(op)) return false;
    }
    if (!CheckOp(*op)) return false;
    size_t total = 0;
    for (const auto& n : names) total += n.second;
    if (total != op->result_types.size() && !(names.empty()))
      return s_.FailAt(
          op->line, name + ": " + std::to_string(total) + " names for " + std::to_string(op->result_types.size()) + " results");
    size_t next = 0;
    for (const auto& [result, count] : names) {
      int first = static_cast<int>(f_->value_types.size());
      for (int i = 0; i < count; ++i) op->results.push_back(NewValue(result, op->result_types[next++]));
      if (!Define(result, {first, count})) return false;
    }
    if (names.empty())
      for (const Type& t : op->result_types) op->results.push_back(NewValue("", t));
    return true;
  }

  bool FindDef(Op* op, const std::string& name) {
    op->def = FindOp(name);
    return op->def ? true : s_.FailAt(op->line, "unknown operator " + name);
  }

  bool ParseUse(int* id) {
    if (!s_.Expect("%")) return false;
    std::string name = s_.Suffix();
    int64_t index = 0;
    if (s_.Eat("#") && !s_.Integer(&index)) return false;
    const Name* value = FindName(name);
    if (!value) return s_.Fail("use of undefined value %" + name);
    if (index < 0 || index >= value->count) return s_.Fail("%" + name + " has no result #" + std::to_string(index));
    *id = value->first + static_cast<int>(index);
    return true;
  }

  bool ParseUses(std::vector<int>* ids) {
    do {
      ids->emplace_back();
      if (!ParseUse(&ids->back())) return false;
    } while (s_.Eat(","));
    return true;
  }

  // `<{...}>`, or nothing.
  bool ParseProperties(std::vector<NamedAttr>* attrs) {
    if (!s_.Eat("<")) return true;
    return s_.ParseDict(attrs) && s_.Expect(">");
  }

  bool ParseGenericTail(Op* op) {
    if (!s_.Expect("(")) return false;
    if (!s_.Eat(")") && !(ParseUses(&op->operands) && s_.Expect(")"))) return false;
    if (!ParseProperties(&op->attrs)) return false;
    if (s_.Eat("(")) {
      do {
        op->regions.emplace_back();
        int first = static_cast<int>(f_->value_types.size());
        if (!ParseRegion(&op->regions.back(), /*new_scope=*/true)) return false;
        if (!MayCapture(*op->def) && ReadsOlder(op->regions.back(), first))
          return s_.FailAt(op->line, std::string(op->def->name) + ": the region reads a value from outside");
      } while (s_.Eat(","));
      if (!s_.Expect(")")) return false;
    }
    if (s_.Peek("{")) {
      std::vector<NamedAttr> discardable;
      if (!s_.ParseDict(&discardable)) return false;
      for (NamedAttr& a : discardable) {
        if (op->attr(a.name)) return s_.Fail("attribute \"" + a.name + "\" occurs twice");
        bool inherent = false;
        for (const AttrSpec& spec : op->def->attrs) inherent |= a.name == spec.name;
        if (inherent) op->attrs.push_back(std::move(a));
      }
    }
    if (!s_.Expect(":") || !s_.Peek("(")) return s_.Fail("expected the operand types");
    return s_.ParseTypeList(&op->operand_types) && s_.Expect("->") && s_.ParseTypeList(&op->result_types);
  }

  // `return %a, %b : t, t`.
  bool ParsePrettyReturn(Op* op) {
    if (!s_.Peek("%")) return true;
    if (!ParseUses(&op->operands) || !s_.Expect(":")) return false;
    do {
      op->operand_types.emplace_back();
      if (!s_.ParseType(&op->operand_types.back())) return false;
    } while (s_.Eat(","));
    return true;
  }

  bool CheckOp(const Op& op) {
    const OpDef& def = *op.def;
    auto fail = [&](const std::string& what) { return s_.FailAt(op.line, std::string(def.name) + ": " + what); };
    if (op.operands.size() != op.operand_types.size()) return fail("operand count and type count differ");
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Type& actual = f_->value_types[op.operands[i]];
      if (!(actual == op.operand_types[i]))
        return fail("operand " + std::to_string(i) + " (%" + f_->value_names[op.operands[i]] + ") is " + actual.ToString() +
                    ", the operator says " + op.operand_types[i].ToString());
    }
    int operands = static_cast<int>(op.operands.size());
    if (operands < def.min_operands || (def.max_operands != kAny && operands > def.max_operands))
      return fail("wrong number of operands: " + std::to_string(operands));
    if (def.results != kAny && static_cast<int>(op.result_types.size()) != def.results)
      return fail("wrong number of results: " + std::to_string(op.result_types.size()));
    if (def.regions != kAny && static_cast<int>(op.regions.size()) != def.regions)
      return fail("wrong number of regions: " + std::to_string(op.regions.size()));
    if (def.eval || def.verify)
      for (const NamedAttr& a : op.attrs)
        if (!CheckAttr(op, a)) return false;
    for (const AttrSpec& spec : def.attrs)
      if (spec.required && !op.attr(spec.name)) return fail(std::string("attribute ") + spec.name + " is missing");
    if (def.verify)
      if (std::string wrong = def.verify(op); !wrong.empty()) return fail(wrong);
    if (std::string_view(def.name) == "func.call") calls_.push_back(op);
    return true;
  }

  bool CheckAttr(const Op& op, const NamedAttr& a) {
    auto fail = [&](const std::string& what) { return s_.FailAt(op.line, std::string(op.def->name) + ": " + what); };
    for (const AttrSpec& spec : op.def->attrs) {
      if (a.name != spec.name) continue;
      if (a.value.kind != spec.kind)
        return fail("attribute " + a.name + " should be " + KindName(spec.kind) + ", is " + KindName(a.value.kind));
      if (!spec.detail) return true;
      if (spec.kind == Attr::Kind::kInt || spec.kind == Attr::Kind::kArray) {
        if (a.value.dtype != ParseDType(spec.detail))
          return fail("attribute " + a.name + " should have elements of " + spec.detail);
      } else if (a.value.name != spec.detail) {
        return fail("attribute " + a.name + " should be a #" + spec.detail + ", is #" + a.value.name);
      }
      return true;
    }
    return fail("unknown attribute " + a.name);
  }

  Scanner s_;
  std::unique_ptr<Module> module_;
  Function* f_ = nullptr;
  std::vector<std::unordered_map<std::string, Name>> scopes_;
  std::vector<Op> calls_;
};

}  // namespace

Error ParseModule(std::string_view text, std::unique_ptr<Module>* module) { return Parser(text).Run(module); }

}  // namespace fake_pjrt
