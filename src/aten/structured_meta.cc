// SPDX-License-Identifier: Apache-2.0
#include "aten/structured_meta.h"

namespace tpu::aten {

// Written by tools/structured_meta.py at configure time.
void AddStructuredMeta0(StructuredMetaTable* table);
void AddStructuredMeta1(StructuredMetaTable* table);
void AddStructuredMeta2(StructuredMetaTable* table);
void AddStructuredMeta3(StructuredMetaTable* table);

const StructuredMeta* FindStructuredMeta(const std::string& name) {
  static const auto* table = [] {
    auto* t = new StructuredMetaTable;
    AddStructuredMeta0(t);
    AddStructuredMeta1(t);
    AddStructuredMeta2(t);
    AddStructuredMeta3(t);
    return t;
  }();
  auto it = table->find(name);
  return it == table->end() ? nullptr : &it->second;
}

}  // namespace tpu::aten
