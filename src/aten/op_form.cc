// SPDX-License-Identifier: Apache-2.0
#include "aten/op_form.h"

#include <cstring>
#include <unordered_map>

#include "base/hash.h"

namespace tpu::aten {
namespace {

using c10::TypeKind;

const lower::Rule* RuleNamed(const std::string& qualified) { return lower::FindRule(HashName(qualified.c_str())); }

std::string Qualified(const std::string& name, const std::string& overload) {
  return overload.empty() ? name : name + "." + overload;
}

// True when `name` stands in the comma-separated list.
bool Listed(const char* list, const std::string& name) {
  if (!list) return false;
  const char* at = list;
  while ((at = std::strstr(at, name.c_str()))) {
    bool begins = at == list || at[-1] == ',' || at[-1] == ' ';
    char end = at[name.size()];
    if (begins && (end == '\0' || end == ',' || end == ' ')) return true;
    at += name.size();
  }
  return false;
}

ArgUse UseOf(const c10::Argument& arg, const lower::Rule& rule) {
  c10::TypePtr type = arg.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  switch (type->kind()) {
    case TypeKind::TensorType:
      return ArgUse::kTensor;
    case TypeKind::NumberType:
      if (Listed(rule.structural_scalars, arg.name())) return ArgUse::kStructuralScalar;
      return rule.classify || arg.name() == "alpha" || arg.name() == "beta" ? ArgUse::kClassifiedScalar : ArgUse::kScalar;
    case TypeKind::FloatType:
      return Listed(rule.runtime_floats, arg.name()) ? ArgUse::kRuntimeFloat : ArgUse::kDouble;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return ArgUse::kInt;
    case TypeKind::BoolType:
      return arg.name() == "pin_memory" || arg.name() == "non_blocking" ? ArgUse::kIgnored : ArgUse::kBool;
    case TypeKind::StringType:
      return ArgUse::kString;
    case TypeKind::ScalarTypeType:
      return ArgUse::kDType;
    case TypeKind::MemoryFormatType:
      return ArgUse::kInt;  // decides result strides
    case TypeKind::GeneratorType:
      return ArgUse::kGenerator;
    case TypeKind::DeviceObjType:
      return ArgUse::kDevice;
    case TypeKind::ListType: {
      c10::TypePtr element = type->castRaw<c10::ListType>()->getElementType();
      if (auto optional = element->cast<c10::OptionalType>()) element = optional->getElementType();
      switch (element->kind()) {
        case TypeKind::TensorType:
          return ArgUse::kTensorList;
        case TypeKind::IntType:
        case TypeKind::SymIntType:
          return ArgUse::kIntList;
        case TypeKind::FloatType:
          return ArgUse::kDoubleList;
        case TypeKind::BoolType:
          return ArgUse::kBoolList;
        default:
          return ArgUse::kMissing;
      }
    }
    default:
      return ArgUse::kIgnored;
  }
}

// Operator name -> overloads that have a row.
const std::unordered_map<std::string, std::vector<std::string>>& OverloadsWithRules() {
  static const auto* map = [] {
    auto* m = new std::unordered_map<std::string, std::vector<std::string>>;
    for (const lower::Rule* rule : lower::AllRules()) {
      std::string name = lower::QualifiedName(*rule);
      size_t dot = name.find('.');
      (*m)[name.substr(0, dot)].push_back(dot == std::string::npos ? "" : name.substr(dot + 1));
    }
    return m;
  }();
  return *map;
}

// The functional overload among `op`'s siblings that has a rule and all arguments that the out= form has.
std::optional<c10::OperatorHandle> FunctionalOfOut(const c10::FunctionSchema& schema) {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::optional<c10::OperatorHandle> best;
  auto overloads = OverloadsWithRules().find(schema.name());
  if (overloads == OverloadsWithRules().end()) return best;
  for (const std::string& overload : overloads->second) {
    auto candidate = dispatcher.findSchema({schema.name(), overload});
    if (!candidate) continue;
    bool fits = true;
    for (const c10::Argument& a : schema.arguments()) {
      if (a.is_out() || a.real_type()->kind() == TypeKind::GeneratorType) continue;
      auto index = candidate->schema().argumentIndexWithName(a.name());
      if (!index) {
        fits = false;
        break;
      }
      const auto& theirs = candidate->schema().arguments()[*index];
      fits = fits && *theirs.real_type() == *a.real_type();
    }
    // Fewest extra arguments wins.
    if (fits && (!best || candidate->schema().arguments().size() < best->schema().arguments().size())) best = candidate;
  }
  return best;
}

}  // namespace

std::unique_ptr<OpForm> MakeForm(const c10::OperatorHandle& op) {
  auto form = std::make_unique<OpForm>();
  const c10::FunctionSchema& schema = op.schema();
  form->op = op;
  form->name = Qualified(schema.name(), schema.overload_name());
  form->num_stack_args = static_cast<int>(schema.arguments().size());
  form->num_returns = static_cast<int>(schema.returns().size());
  auto& dispatcher = c10::Dispatcher::singleton();
  bool in_place = false;
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& a = schema.arguments()[i];
    if (a.is_out()) {
      form->out_args.push_back(static_cast<int16_t>(i));
    } else if (a.alias_info() && a.alias_info()->isWrite()) {
      in_place = true;
    }
    if (a.real_type()->kind() == TypeKind::GeneratorType ||
        (a.real_type()->kind() == TypeKind::OptionalType &&
         a.real_type()->castRaw<c10::OptionalType>()->getElementType()->kind() == TypeKind::GeneratorType))
      form->generator = static_cast<int16_t>(i);
  }
  // The rule: by this very name (functional and in-place-only operators), else derived.
  form->functional = op;
  form->rule = RuleNamed(form->name);
  if (!form->rule && in_place && form->out_args.empty() && schema.name().back() == '_') {
    std::string base = schema.name().substr(0, schema.name().size() - 1);
    std::string functional = Qualified(base, schema.overload_name());
    if (const lower::Rule* rule = RuleNamed(functional)) {
      if (auto handle = dispatcher.findSchema({base, schema.overload_name()})) {
        form->rule = rule;
        form->functional = handle;
      }
    }
  }
  if (!form->rule && !form->out_args.empty() && !in_place) {
    if (auto handle = FunctionalOfOut(schema)) {
      form->functional = handle;
      form->rule = RuleNamed(Qualified(handle->schema().name(), handle->schema().overload_name()));
    }
  }
  if (!form->rule) {
    form->no_rule = "no rule";
    return form;
  }
  const c10::FunctionSchema& functional = form->functional->schema();
  std::string functional_name = Qualified(functional.name(), functional.overload_name());
  form->op_hash = HashName(functional_name.c_str());
  form->structured = FindStructuredMeta(functional_name);
  for (size_t i = 0; i < functional.arguments().size(); ++i) {
    const c10::Argument& a = functional.arguments()[i];
    ArgPlan plan;
    plan.position = static_cast<int16_t>(i);
    if (auto index = schema.argumentIndexWithName(a.name()); index && !schema.arguments()[*index].is_out()) {
      plan.stack = static_cast<int16_t>(*index);
      plan.use = UseOf(a, *form->rule);
      plan.is_alpha = a.name() == "alpha" || a.name() == "beta";
    }
    form->args.push_back(plan);
  }
  for (const ArgPlan& plan : form->args) {
    const std::string& name = functional.arguments()[plan.position].name();
    if (Listed(form->rule->updates, name)) form->updated_args.push_back(plan.position);
    if (form->rule->updates_if && name == form->rule->updates_if) form->updates_if = plan.position;
  }
  for (const c10::Argument& a : schema.arguments()) {
    if (a.is_out() || !a.alias_info() || !a.alias_info()->isWrite()) continue;
    // By name: polygamma_(self, n) is polygamma(n, self).
    auto index = functional.argumentIndexWithName(a.name());
    TORCH_INTERNAL_ASSERT(index, form->name, ": its functional form lacks the argument ", a.name());
    form->mutated_args.push_back(static_cast<int16_t>(*index));
  }
  return form;
}

}  // namespace tpu::aten
