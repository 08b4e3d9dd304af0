// SPDX-License-Identifier: Apache-2.0
#include "graph/op_record.h"

namespace tpu::graph {
namespace {

std::string Describe(const Operand& o) {
  static constexpr const char* kModes[] = {"", " reshaped", " sliced", " flat window", " gathered", " empty"};
  if (o.value < 0) return "undefined";
  return "%" + std::to_string(o.value) + ":" + o.type().ToHlo().substr(6) + kModes[static_cast<int>(o.access.mode)];
}

std::string Describe(const Argument& a) {
  switch (a.kind) {
    case ArgKind::kNone:
      return "none";
    case ArgKind::kTensor:
      return Describe(a.tensors[0]);
    case ArgKind::kTensorList: {
      std::string s = "[";
      for (const Operand& o : a.tensors) s += (s.size() > 1 ? ", " : "") + Describe(o);
      return s + "]";
    }
    case ArgKind::kHostTensor:
      return std::string("host ") + HloName(a.dtype);
    case ArgKind::kScalar:
      return a.scalar_class ? "scalar class " + std::to_string(a.scalar_class) : "scalar";
    case ArgKind::kInt:
      return std::to_string(a.i);
    case ArgKind::kBool:
      return a.i ? "true" : "false";
    case ArgKind::kDouble:
      return std::to_string(a.d);
    case ArgKind::kIntList:
    case ArgKind::kBoolList: {
      std::string s = "[";
      for (int64_t v : a.ints) s += (s.size() > 1 ? ", " : "") + std::to_string(v);
      return s + "]";
    }
    case ArgKind::kDoubleList:
      return "[doubles]";
    case ArgKind::kString:
      return "\"" + a.text + "\"";
    case ArgKind::kDType:
      return HloName(a.dtype);
  }
  return "?";
}

}  // namespace

std::string ToString(const Graph& graph) {
  std::string s;
  for (const OpRecord& r : graph.records) {
    s += "op " + std::to_string(r.op) + "(";
    for (size_t i = 0; i < r.args.size(); ++i) s += (i ? ", " : "") + Describe(r.args[i]);
    s += ")";
    for (const Target& t : r.targets) s += " -> " + Describe(t.operand);
    for (const RecordResult& res : r.results) s += " : " + res.type().ToHlo();
    s += "\n";
  }
  return s;
}

}  // namespace tpu::graph
