// SPDX-License-Identifier: Apache-2.0
#include "program.h"

namespace fake_pjrt {
namespace {
const Attr kMissingAttr;
}

const Attr* FindAttr(const std::vector<NamedAttr>& attrs, std::string_view name) {
  for (const NamedAttr& a : attrs)
    if (a.name == name) return &a.value;
  return nullptr;
}

const Attr& Attr::Field(std::string_view field) const {
  const Attr* a = FindAttr(fields, field);
  return a ? *a : kMissingAttr;
}

std::vector<int64_t> Attr::Ints() const {
  if (kind == Kind::kArray) return ints;
  std::vector<int64_t> values;
  if (kind == Kind::kList)
    for (const Attr& a : list) values.push_back(a.number);
  if (kind == Kind::kDense && dense.memory)
    for (int64_t i = 0; i < dense.type.numel(); ++i) values.push_back(IntegerAt(dense, i));
  return values;
}

const Attr& Op::attr(std::string_view name) const {
  const Attr* a = FindAttr(attrs, name);
  return a ? *a : kMissingAttr;
}

int64_t Op::number(std::string_view name, int64_t otherwise) const {
  const Attr& a = attr(name);
  return a ? a.number : otherwise;
}

const Function* Module::Find(std::string_view function) const {
  for (const auto& f : functions)
    if (f->name == function) return f.get();
  return nullptr;
}

}  // namespace fake_pjrt
