// SPDX-License-Identifier: Apache-2.0
// Which texts are programs: the fake must accept and refuse what XLA's own parser accepts and refuses. What the fake
// refuses on purpose (it is stricter, or knows less) is listed as such.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugin_for_test.h"

namespace fake_pjrt {
namespace {

enum Verdict { kYes, kNo, kOnlyXla };

struct Case {
  std::string name;
  Verdict verdict;
  std::string text;
};

std::vector<Case> cases;

constexpr const char* kAdd = R"(%0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>)";

std::string Module(const std::string& body, const std::string& args = "%a: tensor<4xf32>, %b: tensor<4xf32>",
                   const std::string& result = "tensor<4xf32>", const std::string& value = "%0") {
  return "module @m {\nfunc.func public @main(" + args + ") -> (" + result + ") {\n" + body + "\n\"func.return\"(" + value +
         ") : (" + result + ") -> ()\n}\n}\n";
}

std::string Replaced(std::string s, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
  return s;
}

void Text(const char* name, Verdict verdict, const std::string& text) { cases.push_back({name, verdict, text}); }
void Body(const char* name, Verdict verdict, const std::string& body,
          const std::string& args = "%a: tensor<4xf32>, %b: tensor<4xf32>", const std::string& value = "%0") {
  Text(name, verdict, Module(body, args, "tensor<4xf32>", value));
}
void Dense(Verdict verdict, const std::string& literal, const std::string& type) {
  cases.push_back(
      {"dense<" + literal + "> : " + type, verdict,
       Module("%0 = \"stablehlo.constant\"() <{value = dense<" + literal + "> : " + type + "}> : () -> " + type, "", type)});
}
// One operator; %a, %b: 4x6xf32, %s: f32, %i: i32, %p: 4x6xi1, %z: 4xcomplex<f32>, %u: 4xui8.
void One(const char* name, Verdict verdict, const std::string& op, const std::string& operands, const std::string& attrs,
         const std::string& types, const std::string& result) {
  std::string results = result[0] == '(' ? result.substr(1, result.size() - 2) : result;
  std::string value = result[0] == '(' ? "%0#0, %0#1" : "%0";
  cases.push_back({name, verdict,
                   Module(std::string(result[0] == '(' ? "%0:2" : "%0") + " = \"" + op + "\"(" + operands + ")" + attrs +
                              " : (" + types + ") -> " + result,
                          "%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %s: tensor<f32>, %i: tensor<i32>, %j: "
                          "tensor<i64>, %p: tensor<4x6xi1>, %q: tensor<i1>, "
                          "%z: tensor<4xcomplex<f32>>, %u: tensor<4xui8>",
                          results, value)});
}

void StructureCases() {
  std::string add = Module(kAdd), line = kAdd;
  Text("pretty function", kYes, add);
  Text("generic function", kYes, R"(module @m attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>), sym_name = "main",
arg_attrs = [{tf.aliasing_output = 0 : i32}, {}]}> ({
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
})");
  Text("generic module", kYes, R"("builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%a: tensor<4xf32>):
    "func.return"(%a) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ())");
  Text("function type differs", kNo, R"(module {
  "func.func"() <{function_type = (tensor<5xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%a: tensor<4xf32>):
    "func.return"(%a) : (tensor<4xf32>) -> ()
  }) : () -> ()
})");
  Text("no visibility", kYes, Replaced(add, "public ", ""));
  Text("private main", kNo, Replaced(add, "public ", "private "));
  Text("no main", kNo, Replaced(add, "@main", "@mian"));
  Text("pretty return", kYes, Replaced(add, "\"func.return\"(%0) : (tensor<4xf32>) -> ()", "return %0 : tensor<4xf32>"));
  Text("pretty operator", kOnlyXla, Module("%0 = stablehlo.add %a, %b : tensor<4xf32>"));
  Text("text behind", kNo, add + "}");
  Text("unclosed", kNo, add.substr(0, add.size() - 2));
  Text("no terminator", kNo, Replaced(add, "\"func.return\"(%0) : (tensor<4xf32>) -> ()", ""));
  Text("return type", kNo,
       Replaced(add, "\"func.return\"(%0) : (tensor<4xf32>) -> ()", "\"func.return\"(%0) : (tensor<5xf32>) -> ()"));
  Body("unknown operator", kNo, Replaced(line, "add", "addd"));
  Body("operand types differ", kNo, Replaced(line, "(tensor<4xf32>, tensor<4xf32>)", "(tensor<4xf32>, tensor<5xf32>)"));
  Body("use of another type", kNo, Replaced(line, "tensor<4xf32>", "tensor<4xf64>"));
  Body("undefined", kNo, Replaced(line, "%b", "%c"));
  Body("redefinition", kNo, line + "\n" + line);
  Body("result shape", kNo, Replaced(line, "-> tensor<4xf32>", "-> tensor<5xf32>"));
  Body("result element type", kNo, Replaced(line, "-> tensor<4xf32>", "-> tensor<4xf64>"));
  Body("unknown property", kNo, Replaced(line, "(%a, %b)", "(%a, %b) <{foo = 1 : i64}>"));
  Body("discardable attribute", kYes, Replaced(line, "(%a, %b)", "(%a, %b) {mhlo.foo = 1 : i64}"));
  Body("plain discardable attribute", kYes, Replaced(line, "(%a, %b)", "(%a, %b) {foo = 1 : i64}"));
  Body("comments", kYes, "// hello\n" + line + " // there");
  Body("three operands", kNo, Replaced(Replaced(line, "%b)", "%b, %b)"), "(tensor<4xf32>,", "(tensor<4xf32>, tensor<4xf32>,"));
  Body("unnamed result", kYes, Replaced(line, "%0 = ", "") + "\n" + line);
  std::string two =
      R"("stablehlo.optimization_barrier"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>))";
  Body("bare name of two results", kYes, "%0:2 = " + two);
  Body("two names", kYes, "%u, %0 = " + two);
  Body("result number", kYes, "%0:2 = " + two, "%a: tensor<4xf32>, %b: tensor<4xf32>", "%0#1");
  Body("result number too large", kNo, "%0:2 = " + two, "%a: tensor<4xf32>, %b: tensor<4xf32>", "%0#2");
  Body("number of a single result", kYes, line, "%a: tensor<4xf32>, %b: tensor<4xf32>", "%0#0");
  Body("wrong result count", kNo, "%0:3 = " + two);
  Body("alias", kYes, line, "%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>");
  Body("alias of another size", kNo, line,
       "%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<5xf32> {tf.aliasing_output = 0 : i32}");
  Text("call", kYes, R"(module @m {
func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
%0 = "func.call"(%a) <{callee = @f}> : (tensor<4xf32>) -> tensor<4xf32>
"func.return"(%0) : (tensor<4xf32>) -> ()
}
func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
"func.return"(%a) : (tensor<4xf32>) -> ()
}
})");
  std::string choose = R"(%0 = "stablehlo.if"(%p) ({
"stablehlo.return"(%a) : (tensor<4xf32>) -> ()
}, {
"stablehlo.return"(%b) : (tensor<4xf32>) -> ()
}) : (tensor<i1>) -> tensor<4xf32>)";
  Body("if", kYes, choose, "%a: tensor<4xf32>, %b: tensor<4xf32>, %p: tensor<i1>");
  Body("if with block labels", kYes, Replaced(choose, "({\n", "({\n^bb0:\n"),
       "%a: tensor<4xf32>, %b: tensor<4xf32>, %p: tensor<i1>");
  Body("while with captures", kYes, R"(%0 = "stablehlo.while"(%a) ({
^bb0(%x: tensor<4xf32>):
"stablehlo.return"(%p) : (tensor<i1>) -> ()
}, {
^bb0(%x: tensor<4xf32>):
"stablehlo.return"(%b) : (tensor<4xf32>) -> ()
}) : (tensor<4xf32>) -> tensor<4xf32>)",
       "%a: tensor<4xf32>, %b: tensor<4xf32>, %p: tensor<i1>");
}

void DenseCases() {
  for (const char* s :
       {"1.0", "1.0e5", "1.0E+05", "1.", "0x7FC00000", "0x7fc00000", "-1.5", "[1.0, 2.0, 3.0, 4.0]",
        "[1.0, 0x7F800000, 3.0, 4.0]", "\"0x0000803F000000400000404000008040\"", "\"0x0000803F\"", "\"0x0000803f\""})
    Dense(kYes, s, "tensor<4xf32>");
  for (const char* s :
       {"1", "1e5", "inf", "[1.0, 2.0]", "[1.0]", "", "\"0x0000803F0000\"", "\"0000803F\"", "true", "[[1.0, 2.0], [3.0, 4.0]]"})
    Dense(kNo, s, "tensor<4xf32>");
  Dense(kOnlyXla, "0x7FC0", "tensor<4xf32>");  // low bits; surely not what was meant
  Dense(kYes, "0x7FC0", "tensor<4xbf16>");
  Dense(kYes, "0x7E00", "tensor<4xf16>");
  Dense(kYes, "0x7FF8000000000000", "tensor<4xf64>");
  Dense(kYes, "0x7F", "tensor<4xf8E4M3FN>");
  Dense(kYes, "\"0x803F803F803F803F\"", "tensor<4xbf16>");
  Dense(kNo, "-1", "tensor<4xui8>");
  Dense(kNo, "256", "tensor<4xui8>");
  Dense(kYes, "255", "tensor<4xui8>");
  Dense(kOnlyXla, "200", "tensor<4xi8>");
  Dense(kYes, "0xFF", "tensor<4xui8>");
  Dense(kYes, "0xFF", "tensor<4xi8>");
  Dense(kYes, "0xFFFFFFFF", "tensor<4xi32>");
  Dense(kYes, "0x7FFFFFFF", "tensor<4xi32>");
  Dense(kNo, "1.0", "tensor<4xi32>");
  Dense(kNo, "true", "tensor<4xi32>");
  Dense(kYes, "true", "tensor<4xi1>");
  Dense(kYes, "[true, false, true, false]", "tensor<4xi1>");
  Dense(kYes, "1", "tensor<4xi1>");
  Dense(kYes, "[1, 0, 1, 0]", "tensor<4xi1>");
  Dense(kNo, "2", "tensor<4xi1>");
  Dense(kYes, "18446744073709551615", "tensor<4xui64>");
  Dense(kYes, "-9223372036854775808", "tensor<4xi64>");
  Dense(kOnlyXla, "9223372036854775808", "tensor<4xi64>");
  Dense(kYes, "(1.0, 2.0)", "tensor<4xcomplex<f32>>");
  Dense(kYes, "(0x7FC00000, 2.0)", "tensor<4xcomplex<f32>>");
  Dense(kYes, "[(1.0, 2.0), (3.0, 4.0)]", "tensor<2xcomplex<f32>>");
  Dense(kNo, "1.0", "tensor<4xcomplex<f32>>");
  Dense(kYes, "\"0x0000803F00000040\"", "tensor<4xcomplex<f32>>");
  Dense(kYes, "", "tensor<0xf32>");
  Dense(kYes, "1.0", "tensor<0xf32>");
  Dense(kYes, "[[1, 2], [3, 4]]", "tensor<2x2xi32>");
  Dense(kNo, "[1, 2, 3, 4]", "tensor<2x2xi32>");
  Dense(kNo, "[[1, 2], [3]]", "tensor<2x2xi32>");
  Dense(kYes, "1.0", "tensor<f32>");
  Dense(kNo, "[1.0]", "tensor<f32>");
  Dense(kYes, "[[], []]", "tensor<2x0xf32>");
  Dense(kYes, "[]", "tensor<0xf32>");
}

void OperatorCases() {
  std::string a = "tensor<4x6xf32>", p = "tensor<4x6xi1>", z = "tensor<4xcomplex<f32>>", u = "tensor<4xui8>", aa = a + ", " + a;
  auto compare = [](const char* type) {
    std::string t = *type ? std::string(", compare_type = #stablehlo<comparison_type ") + type + ">" : "";
    return " <{comparison_direction = #stablehlo<comparison_direction LT>" + t + "}>";
  };
  One("compare", kYes, "stablehlo.compare", "%a, %b", compare(""), aa, p);
  One("compare FLOAT", kYes, "stablehlo.compare", "%a, %b", compare("FLOAT"), aa, p);
  One("compare NOTYPE", kYes, "stablehlo.compare", "%a, %b", compare("NOTYPE"), aa, p);
  One("compare f32 SIGNED", kNo, "stablehlo.compare", "%a, %b", compare("SIGNED"), aa, p);
  One("compare i1 UNSIGNED", kYes, "stablehlo.compare", "%p, %p", compare("UNSIGNED"), p + ", " + p, p);
  One("compare, attributes outside", kYes, "stablehlo.compare", "%a, %b",
      " {comparison_direction = #stablehlo<comparison_direction LT>}", aa, p);
  One("compare without direction", kNo, "stablehlo.compare", "%a, %b", "", aa, p);
  One("compare bad direction", kNo, "stablehlo.compare", "%a, %b",
      " <{comparison_direction = #stablehlo<comparison_direction XX>}>", aa, p);
  One("transpose", kYes, "stablehlo.transpose", "%a", " <{permutation = array<i64: 1, 0>}>", a, "tensor<6x4xf32>");
  One("transpose dense", kNo, "stablehlo.transpose", "%a", " <{permutation = dense<[1, 0]> : tensor<2xi64>}>", a,
      "tensor<6x4xf32>");
  One("transpose i32", kNo, "stablehlo.transpose", "%a", " <{permutation = array<i32: 1, 0>}>", a, "tensor<6x4xf32>");
  One("transpose result", kNo, "stablehlo.transpose", "%a", " <{permutation = array<i64: 1, 0>}>", a, a);
  One("transpose permutation", kNo, "stablehlo.transpose", "%a", " <{permutation = array<i64: 1, 1>}>", a, "tensor<6x6xf32>");
  One("reshape", kYes, "stablehlo.reshape", "%a", "", a, "tensor<24xf32>");
  One("reshape count", kNo, "stablehlo.reshape", "%a", "", a, "tensor<23xf32>");
  One("slice", kYes, "stablehlo.slice", "%a",
      " <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 6>, strides = array<i64: 1, 2>}>", a,
      "tensor<2x3xf32>");
  One("slice without strides", kNo, "stablehlo.slice", "%a",
      " <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 3, 6>}>", a, "tensor<2x6xf32>");
  One("slice out of range", kNo, "stablehlo.slice", "%a",
      " <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 5, 6>, strides = array<i64: 1, 1>}>", a,
      "tensor<4x6xf32>");
  One("iota", kYes, "stablehlo.iota", "", " <{iota_dimension = 0 : i64}>", "", "tensor<4xi32>");
  One("iota untyped", kYes, "stablehlo.iota", "", " <{iota_dimension = 0}>", "", "tensor<4xi32>");
  One("iota i32", kNo, "stablehlo.iota", "", " <{iota_dimension = 0 : i32}>", "", "tensor<4xi32>");
  One("iota dimension", kNo, "stablehlo.iota", "", " <{iota_dimension = 1 : i64}>", "", "tensor<4xi32>");
  One("iota of i1", kNo, "stablehlo.iota", "", " <{iota_dimension = 0 : i64}>", "", "tensor<4xi1>");
  One("broadcast of a scalar", kYes, "stablehlo.broadcast_in_dim", "%s", " <{broadcast_dimensions = array<i64>}>",
      "tensor<f32>", a);
  One("broadcast array<i64: >", kNo, "stablehlo.broadcast_in_dim", "%s", " <{broadcast_dimensions = array<i64: >}>",
      "tensor<f32>", a);
  One("broadcast size", kNo, "stablehlo.broadcast_in_dim", "%a", " <{broadcast_dimensions = array<i64: 0, 1>}>", a,
      "tensor<4x7xf32>");
  One("concatenate", kYes, "stablehlo.concatenate", "%a, %b", " <{dimension = 1 : i64}>", aa, "tensor<4x12xf32>");
  One("concatenate result", kNo, "stablehlo.concatenate", "%a, %b", " <{dimension = 1 : i64}>", aa, "tensor<8x6xf32>");
  One("pad", kYes, "stablehlo.pad", "%a, %s",
      " <{edge_padding_low = array<i64: 1, -1>, edge_padding_high = array<i64: 0, 0>, interior_padding = array<i64: 1, "
      "0>}>",
      a + ", tensor<f32>", "tensor<8x5xf32>");
  std::string dot =
                  " <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
                  "rhs_contracting_dimensions = [1]>}>",
              r = "tensor<4x4xf32>";
  One("dot", kYes, "stablehlo.dot_general", "%a, %b", dot, aa, r);
  One("dot result", kNo, "stablehlo.dot_general", "%a, %b", dot, aa, "tensor<4x6xf32>");
  One("dot, all fields", kYes, "stablehlo.dot_general", "%a, %b",
      " <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
      "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, "
      "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]}>",
      aa, r);
  One("dot, other order", kYes, "stablehlo.dot_general", "%a, %b",
      " <{dot_dimension_numbers = #stablehlo.dot<rhs_contracting_dimensions = [1], lhs_contracting_dimensions = [1]>}>", aa, r);
  One("dot, one precision", kOnlyXla, "stablehlo.dot_general", "%a, %b",
      Replaced(dot, "}>", ", precision_config = [#stablehlo<precision HIGHEST>]}>"), aa, r);
  One("dot<>", kYes, "stablehlo.dot_general", "%a, %b", " <{dot_dimension_numbers = #stablehlo.dot<>}>", aa,
      "tensor<4x6x4x6xf32>");
  One("dot f32 -> f64", kYes, "stablehlo.dot_general", "%a, %b", dot, aa, "tensor<4x4xf64>");
  One("dot f32 -> bf16", kYes, "stablehlo.dot_general", "%a, %b", dot, aa, "tensor<4x4xbf16>");
  One("dot contracting sizes", kNo, "stablehlo.dot_general", "%a, %b",
      Replaced(dot, "rhs_contracting_dimensions = [1]", "rhs_contracting_dimensions = [0]"), aa, r);
  std::string add = R"( ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
%r = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
"stablehlo.return"(%r) : (tensor<f32>) -> ()
}))",
              dims = " <{dimensions = array<i64: 1>}>", as = a + ", tensor<f32>";
  One("reduce", kYes, "stablehlo.reduce", "%a, %s", dims + add, as, "tensor<4xf32>");
  One("reduce, dimensions unsorted", kYes, "stablehlo.reduce", "%a, %s", " <{dimensions = array<i64: 1, 0>}>" + add, as,
      "tensor<f32>");
  One("reduce result", kNo, "stablehlo.reduce", "%a, %s", dims + add, as, "tensor<6xf32>");
  One("reduce, other label", kYes, "stablehlo.reduce", "%a, %s", dims + Replaced(add, "^bb0", "^entry"), as, "tensor<4xf32>");
  One("reduce, no label", kNo, "stablehlo.reduce", "%a, %s",
      dims + Replaced(add, "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n", ""), as, "tensor<4xf32>");
  One("reduce, numbered names", kYes, "stablehlo.reduce", "%a, %s",
      dims + Replaced(Replaced(Replaced(add, "%x", "%10"), "%y", "%11"), "%r", "%12"), as, "tensor<4xf32>");
  One("reduce, shadowing", kNo, "stablehlo.reduce", "%a, %s", dims + Replaced(add, "%x", "%a"), as, "tensor<4xf32>");
  One("reduce, attributes behind the region", kYes, "stablehlo.reduce", "%a, %s", add + " {dimensions = array<i64: 1>}", as,
      "tensor<4xf32>");
  One("reduce, pretty return", kYes, "stablehlo.reduce", "%a, %s",
      dims + Replaced(add, "\"stablehlo.return\"(%r) : (tensor<f32>) -> ()", "stablehlo.return %r : tensor<f32>"), as,
      "tensor<4xf32>");
  One("reduce, capture", kNo, "stablehlo.reduce", "%a, %s", dims + Replaced(add, "(%x, %y) :", "(%x, %s) :"), as,
      "tensor<4xf32>");
  One("reduce, constant inside", kYes, "stablehlo.reduce", "%a, %s",
      dims + Replaced(Replaced(add, "%r =",
                               "%k = \"stablehlo.constant\"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>\n%r ="),
                      "(%x, %y) :", "(%x, %k) :"),
      as, "tensor<4xf32>");
  One("reduce, initial type", kNo, "stablehlo.reduce", "%a, %i", dims + add, a + ", tensor<i32>", "tensor<4xf32>");
  std::string less = R"( ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
%r = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>,
tensor<f32>) -> tensor<i1>
"stablehlo.return"(%r) : (tensor<i1>) -> ()
}))";
  One("sort", kYes, "stablehlo.sort", "%a", " <{dimension = 1 : i64, is_stable = true}>" + less, a, a);
  One("sort, defaults", kYes, "stablehlo.sort", "%a", less, a, a);
  One("sort, comparator returns f32", kNo, "stablehlo.sort", "%a", add, a, a);
  One("erf", kYes, "chlo.erf", "%a", "", a, a);
  One("top_k", kYes, "chlo.top_k", "%a", " <{k = 2 : i64}>", a, "(tensor<4x2xf32>, tensor<4x2xi32>)");
  One("select, scalar predicate", kYes, "stablehlo.select", "%q, %a, %b", "", "tensor<i1>, " + aa, a);
  One("clamp, scalar bounds", kYes, "stablehlo.clamp", "%s, %a, %s", "", "tensor<f32>, " + as, a);
  One("reduce_precision", kYes, "stablehlo.reduce_precision", "%a", " <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}>", a,
      a);
  One("dynamic_slice", kYes, "stablehlo.dynamic_slice", "%a, %i, %i", " <{slice_sizes = array<i64: 2, 3>}>",
      a + ", tensor<i32>, tensor<i32>", "tensor<2x3xf32>");
  One("dynamic_slice, mixed indices", kNo, "stablehlo.dynamic_slice", "%a, %i, %j", " <{slice_sizes = array<i64: 2, 3>}>",
      a + ", tensor<i32>, tensor<i64>", "tensor<2x3xf32>");
  One("i1 add", kYes, "stablehlo.add", "%p, %p", "", p + ", " + p, p);
  One("i1 subtract", kNo, "stablehlo.subtract", "%p, %p", "", p + ", " + p, p);
  One("i1 negate", kNo, "stablehlo.negate", "%p", "", p, p);
  One("i1 abs", kNo, "stablehlo.abs", "%p", "", p, p);
  One("ui8 abs", kNo, "stablehlo.abs", "%u", "", u, u);
  One("ui8 sign", kNo, "stablehlo.sign", "%u", "", u, u);
  One("ui8 negate", kYes, "stablehlo.negate", "%u", "", u, u);
  One("complex maximum", kOnlyXla, "stablehlo.maximum", "%z, %z", "", z + ", " + z, z);
  // XLA's plugin (0.81) dies of stablehlo.remainder of complex numbers; nothing to compare.
  One("complex cbrt", kNo, "stablehlo.cbrt", "%z", "", z, z);
  One("i32 exponential", kNo, "stablehlo.exponential", "%i", "", "tensor<i32>", "tensor<i32>");
  One("i1 bitcast", kNo, "stablehlo.bitcast_convert", "%p", "", p, "tensor<4x6xi8>");
  One("complex bitcast", kNo, "stablehlo.bitcast_convert", "%z", "", z, "tensor<4x2xf32>");
  One("f32 real", kYes, "stablehlo.real", "%a", "", a, a);
  One("i32 square", kNo, "chlo.square", "%i", "", "tensor<i32>", "tensor<i32>");
}

TEST(Agreement, SameProgramsAsXla) {
  StructureCases();
  DenseCases();
  OperatorCases();
  static const Plugin fake(GetPjrtApi(), 1);
  const Plugin* xla = XlaCpuPlugin();
  for (const Case& c : cases) {
    PJRT_LoadedExecutable* executable;
    Failure mine = fake.Compile(c.text, &executable);
    if (!mine.code) fake.Destroy(executable);
    EXPECT_EQ(mine.code == 0, c.verdict == kYes) << c.name << ": " << mine.message << "\n" << c.text;
    EXPECT_TRUE(mine.code == 0 || (mine.code == 3 && mine.message.starts_with("line "))) << c.name << ": " << mine.message;
    if (!xla) continue;
    Failure theirs = xla->Compile(c.text, &executable);
    if (!theirs.code) xla->Destroy(executable);
    EXPECT_EQ(theirs.code == 0, c.verdict != kNo) << "XLA, " << c.name << ": " << theirs.message << "\n" << c.text;
  }
  if (!xla) GTEST_SKIP() << "XLA's CPU plugin is not installed: only the fake was tested";
}

}  // namespace
}  // namespace fake_pjrt
