// SPDX-License-Identifier: Apache-2.0
// The same module with the same random inputs on XLA's CPU plugin and on the fake: the results must agree. This
// validates the interpreter, and that the generic texts are programs for XLA.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <vector>

#include "plugin_for_test.h"
#include "tensor.h"

namespace fake_pjrt {
namespace {

// How the values of an argument are drawn.
enum Draw { kNormal, kPositive, kUnit, kSmall, kSpecial, kSmallInts };

struct Arg {
  std::string type;  // "4x5xf32"
  Draw draw = kNormal;
  int64_t low = -100, high = 100;  // of integers
};

PJRT_Buffer_Type PjrtType(DType d) {
  static constexpr PJRT_Buffer_Type kTypes[] = {
      PJRT_Buffer_Type_PRED,     PJRT_Buffer_Type_U8,    PJRT_Buffer_Type_U16, PJRT_Buffer_Type_U32, PJRT_Buffer_Type_U64,
      PJRT_Buffer_Type_S8,       PJRT_Buffer_Type_S16,   PJRT_Buffer_Type_S32, PJRT_Buffer_Type_S64, PJRT_Buffer_Type_F16,
      PJRT_Buffer_Type_BF16,     PJRT_Buffer_Type_F32,   PJRT_Buffer_Type_F64, PJRT_Buffer_Type_C64, PJRT_Buffer_Type_C128,
      PJRT_Buffer_Type_F8E4M3FN, PJRT_Buffer_Type_F8E5M2};
  return kTypes[static_cast<int>(d)];
}

DType DTypeOf(PJRT_Buffer_Type t) {
  for (int d = 0; d < static_cast<int>(DType::kInvalid); ++d)
    if (PjrtType(static_cast<DType>(d)) == t) return static_cast<DType>(d);
  return DType::kInvalid;
}

Type ParseTypeText(const std::string& text) {
  Type t;
  size_t at = 0;
  for (size_t x; (x = text.find('x', at)) != std::string::npos && isdigit(text[at]); at = x + 1)
    t.dims.push_back(std::stoll(text.substr(at, x - at)));
  t.dtype = ParseDType(text.substr(at));
  return t;
}

std::mt19937 rng(12345);

double DrawFloat(Draw draw) {
  std::normal_distribution<double> normal;
  switch (draw) {
    case kPositive:
      return std::fabs(normal(rng)) * 3 + 0.01;
    case kUnit:
      return std::uniform_real_distribution<double>(-0.99, 0.99)(rng);
    case kSmall:
      return normal(rng) * 0.5;
    case kSmallInts:
      return std::floor(std::uniform_real_distribution<double>(-3, 4)(rng));
    case kSpecial: {
      static const double special[] = {0.0, -0.0, 1.0,  -1.0, INFINITY, -INFINITY, NAN,    0.5,
                                       1.5, 2.5,  -2.5, 1e30, -1e30,    300.7,     -300.7, 70000.5};
      return special[rng() % 16];
    }
    default:
      return normal(rng) * 3;
  }
}

HostArray Random(const Arg& arg) {
  Type type = ParseTypeText(arg.type);
  int64_t n = type.numel();
  Tensor t = Tensor::Empty(type.With(tpu::OpMathType(type.dtype)));
  VisitCompute(type.dtype, [&]<class T>() {
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        t.As<T>()[i] = rng() % 2;
      } else if constexpr (std::is_integral_v<T>) {
        int64_t low = std::is_unsigned_v<T> && arg.low < 0 ? 0 : arg.low;
        t.As<T>()[i] = static_cast<T>(std::uniform_int_distribution<int64_t>(low, arg.high)(rng));
        static const int64_t special[] = {0, 1, -1, std::numeric_limits<int64_t>::min() >> (64 - 8 * sizeof(T)),
                                          std::numeric_limits<int64_t>::max() >> (64 - 8 * sizeof(T))};
        if (arg.draw == kSpecial) t.As<T>()[i] = static_cast<T>(special[rng() % 5]);
      } else if constexpr (std::is_floating_point_v<T>) {
        t.As<T>()[i] = static_cast<T>(DrawFloat(arg.draw));
      } else {
        using R = typename T::value_type;
        t.As<T>()[i] = T(static_cast<R>(DrawFloat(arg.draw)), static_cast<R>(DrawFloat(arg.draw)));
      }
    }
  });
  t = Narrowed(t, type.dtype);
  return {PjrtType(type.dtype), type.dims, std::vector<uint8_t>(t.bytes(), t.bytes() + type.bytes())};
}

double Tolerance(DType d) {
  switch (d) {
    case DType::kF64:
    case DType::kC128:
      return 1e-11;
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 1.6e-2;
    case DType::kF8E4M3FN:
    case DType::kF8E5M2:
      return 0.13;
    default:
      return 2e-5;
  }
}

bool Close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= tolerance * std::max(1.0, std::max(std::fabs(a), std::fabs(b)));
}

std::string Compare(const HostArray& xla, const HostArray& fake, double factor) {
  if (xla.type != fake.type || xla.dims != fake.dims || xla.bytes.size() != fake.bytes.size()) return "the types differ";
  DType dtype = DTypeOf(xla.type);
  auto wide = [&](const HostArray& a) {
    Tensor t = Tensor::Empty({dtype, a.dims});
    std::memcpy(t.bytes(), a.bytes.data(), a.bytes.size());
    return Widened(t);
  };
  Tensor x = wide(xla), y = wide(fake);
  double tolerance = Tolerance(dtype) * factor;
  return VisitCompute(dtype, [&]<class T>() -> std::string {
    for (int64_t i = 0; i < x.type.numel(); ++i) {
      T a = x.As<T>()[i], b = y.As<T>()[i];
      bool same;
      if constexpr (std::is_integral_v<T>)
        same = a == b;
      else if constexpr (std::is_floating_point_v<T>)
        same = Close(a, b, tolerance);
      else
        same = Close(a.real(), b.real(), tolerance) && Close(a.imag(), b.imag(), tolerance);
      if (same) continue;
      std::ostringstream s;
      s << "element " << i << ": XLA " << +a << ", fake " << +b;
      return s.str();
    }
    return "";
  });
}

std::string List(const std::vector<std::string>& items) {
  std::string s;
  for (const std::string& i : items) s += (s.empty() ? "" : ", ") + i;
  return s;
}

// Arguments are %a0, %a1, ...; `body` defines the values `results` ("%0 : type").
void Check(const std::string& name, const std::vector<Arg>& args,
           const std::vector<std::pair<std::string, std::string>>& results, const std::string& body, double factor = 1) {
  static const Plugin fake(GetPjrtApi(), 1);
  const Plugin* xla = XlaCpuPlugin();
  if (!xla) GTEST_SKIP() << "XLA's CPU plugin is not installed";
  std::vector<std::string> parameters, types, values;
  for (size_t i = 0; i < args.size(); ++i) parameters.push_back("%a" + std::to_string(i) + ": tensor<" + args[i].type + ">");
  for (const auto& [value, type] : results) values.push_back(value), types.push_back("tensor<" + type + ">");
  std::string text = "module @m {\nfunc.func public @main(" + List(parameters) + ") -> (" + List(types) + ") {\n" + body +
                     "\n\"func.return\"(" + List(values) + ") : (" + List(types) + ") -> ()\n}\n}\n";
  std::vector<HostArray> inputs, theirs, mine;
  for (const Arg& a : args) inputs.push_back(Random(a));
  Failure x = xla->Run(text, inputs, &theirs, Plugin::ExactOptions()), f = fake.Run(text, inputs, &mine);
  ASSERT_EQ(x.code, 0) << name << ": XLA says " << x.message << "\n" << text;
  ASSERT_EQ(f.code, 0) << name << ": the fake says " << f.message << "\n" << text;
  ASSERT_EQ(theirs.size(), mine.size());
  for (size_t i = 0; i < theirs.size(); ++i)
    EXPECT_EQ(Compare(theirs[i], mine[i], factor), "") << name << ", result " << i << " (" << types[i] << ")";
}

std::string T(const std::string& type) { return "tensor<" + type + ">"; }

// One elementwise operator for several element types in one module.
void Elementwise(const std::string& op, int operands, const std::vector<std::string>& dtypes, Draw draw = kNormal,
                 const std::string& result = "", double factor = 1) {
  std::vector<Arg> args;
  std::vector<std::pair<std::string, std::string>> results;
  std::string body;
  for (const std::string& d : dtypes) {
    std::string type = "64x" + d, out = "64x" + (result.empty() ? d : result), value = "%r" + std::to_string(results.size());
    std::vector<std::string> names, types;
    for (int i = 0; i < operands; ++i) {
      names.push_back("%a" + std::to_string(args.size()));
      types.push_back(T(type));
      args.push_back({type, draw});
    }
    body += value + " = \"" + op + "\"(" + List(names) + ") : (" + List(types) + ") -> " + T(out) + "\n";
    results.push_back({value, out});
  }
  Check(op + (draw == kSpecial ? " (special values)" : ""), args, results, body, factor);
}

const std::vector<std::string> kFloats = {"f16", "bf16", "f32", "f64"}, kComplex = {"complex<f32>", "complex<f64>"},
                               kSigned = {"i8", "i16", "i32", "i64"}, kUnsigned = {"ui8", "ui16", "ui32", "ui64"};

std::vector<std::string> Join(std::initializer_list<std::vector<std::string>> lists) {
  std::vector<std::string> all;
  for (const auto& l : lists) all.insert(all.end(), l.begin(), l.end());
  return all;
}

TEST(Differential, Unary) {
  for (const char* op : {"abs", "negate", "sign"}) {
    Elementwise(std::string("stablehlo.") + op, 1, Join({kFloats, kSigned}));
    Elementwise(std::string("stablehlo.") + op, 1, Join({{"f32", "f64"}, kSigned}), kSpecial);
  }
  Elementwise("stablehlo.abs", 1, {"complex<f32>"}, kNormal, "f32");
  Elementwise("stablehlo.negate", 1, Join({kComplex, kUnsigned}));
  Elementwise("stablehlo.sign", 1, kComplex);
  for (const char* op : {"ceil", "floor", "round_nearest_afz", "round_nearest_even"}) {
    Elementwise(std::string("stablehlo.") + op, 1, kFloats);
    Elementwise(std::string("stablehlo.") + op, 1, kFloats, kSpecial);
  }
  for (const char* op : {"exponential", "exponential_minus_one", "sine", "cosine", "tanh", "logistic"})
    Elementwise(std::string("stablehlo.") + op, 1, Join({kFloats, kComplex}), kSmall);
  for (const char* op : {"log", "log_plus_one", "sqrt", "rsqrt"})
    Elementwise(std::string("stablehlo.") + op, 1, Join({kFloats, kComplex}), kPositive);
  Elementwise("stablehlo.cbrt", 1, kFloats);
  Elementwise("stablehlo.tan", 1, Join({kFloats, {"complex<f32>"}}), kUnit);
  for (const char* op : {"exponential", "log", "sqrt", "tanh", "logistic"})
    Elementwise(std::string("stablehlo.") + op, 1, {"f32", "f64"}, kSpecial);
  for (const char* op : {"not", "popcnt", "count_leading_zeros"}) {
    Elementwise(std::string("stablehlo.") + op, 1, Join({kSigned, kUnsigned}));
    Elementwise(std::string("stablehlo.") + op, 1, Join({kSigned, kUnsigned}), kSpecial);
  }
  Elementwise("stablehlo.not", 1, {"i1"});
  Elementwise("stablehlo.is_finite", 1, kFloats, kSpecial, "i1");
  Elementwise("stablehlo.real", 1, {"complex<f32>", "f32"}, kNormal, "f32");
  Elementwise("stablehlo.imag", 1, {"complex<f64>"}, kNormal, "f64");
}

TEST(Differential, ChloUnary) {
  for (const char* op : {"erf", "erfc", "sinh", "cosh", "asinh", "atan", "square", "tan", "bessel_i1e"})
    Elementwise(std::string("chlo.") + op, 1, kFloats, kSmall);
  for (const char* op : {"asin", "acos", "atanh", "erf_inv"}) Elementwise(std::string("chlo.") + op, 1, kFloats, kUnit, "", 4);
  Elementwise("chlo.lgamma", 1, kFloats, kPositive, "", 4);
  Elementwise("chlo.digamma", 1, kFloats, kPositive, "", 4);
  Elementwise("chlo.digamma", 1, {"f64"}, kNormal, "", 100);
  for (const char* op : {"asinh", "sinh", "cosh"}) Elementwise(std::string("chlo.") + op, 1, {"complex<f32>"}, kSmall);
  Elementwise("chlo.conj", 1, {"complex<f32>"});
  for (const char* op : {"is_inf", "is_pos_inf", "is_neg_inf"})
    Elementwise(std::string("chlo.") + op, 1, {"f32", "bf16"}, kSpecial, "i1");
  Check("acosh", {{"64xf32", kPositive}}, {{"%1", "64xf32"}},
        R"(%c = "stablehlo.constant"() <{value = dense<1.0> : tensor<64xf32>}> : () -> tensor<64xf32>
%0 = "stablehlo.add"(%a0, %c) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
%1 = "chlo.acosh"(%0) : (tensor<64xf32>) -> tensor<64xf32>)");
  Elementwise("chlo.erf_inv", 1, {"f32", "f64"}, kSpecial);
  Elementwise("chlo.erf", 1, {"f32", "f64"}, kSpecial);
}

TEST(Differential, Binary) {
  auto integers = Join({kSigned, kUnsigned});
  for (const char* op : {"add", "subtract", "multiply", "divide"})
    Elementwise(std::string("stablehlo.") + op, 2, Join({kFloats, kComplex, integers}), kPositive);
  for (const char* op : {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"})
    Elementwise(std::string("stablehlo.") + op, 2, integers, kSpecial);
  for (const char* op : {"maximum", "minimum"})
    Elementwise(std::string("stablehlo.") + op, 2, Join({kFloats, {"i1"}}), kNormal);
  for (const char* op : {"add", "multiply", "and", "or", "xor"}) Elementwise(std::string("stablehlo.") + op, 2, {"i1"});
  for (const char* op : {"and", "or", "xor"}) Elementwise(std::string("stablehlo.") + op, 2, integers);
  Elementwise("stablehlo.remainder", 2, Join({kFloats, integers}));
  Elementwise("stablehlo.power", 2, Join({{"f32", "f64"}, kComplex}), kPositive, "", 20);
  Elementwise("stablehlo.power", 2, {"f32", "f64"}, kSmallInts);
  Elementwise("stablehlo.power", 2, kSigned, kSpecial);
  // XLA looks at the low six bits of an integer exponent only.
  Check("power of integers",
        {{"64xi32"},
         {"64xi32", kNormal, -9, 63},
         {"64xui8"},
         {"64xui8", kNormal, 0, 63},
         {"64xi64"},
         {"64xi64", kNormal, -3, 20}},
        {{"%0", "64xi32"}, {"%1", "64xui8"}, {"%2", "64xi64"}},
        R"(%0 = "stablehlo.power"(%a0, %a1) : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
%1 = "stablehlo.power"(%a2, %a3) : (tensor<64xui8>, tensor<64xui8>) -> tensor<64xui8>
%2 = "stablehlo.power"(%a4, %a5) : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi64>)");
  Elementwise("stablehlo.atan2", 2, kFloats);
  Elementwise("stablehlo.atan2", 2, {"f32"}, kSpecial);
  Elementwise("stablehlo.complex", 2, {"f32"}, kNormal, "complex<f32>");
  Elementwise("stablehlo.complex", 2, {"f64"}, kNormal, "complex<f64>");
  for (const char* op : {"shift_left", "shift_right_logical", "shift_right_arithmetic"})
    for (int64_t high : {7, 100})
      Check(std::string(op) + " up to " + std::to_string(high),
            {{"64xi8"},
             {"64xi8", kNormal, 0, high},
             {"64xui32"},
             {"64xui32", kNormal, 0, high},
             {"64xi64"},
             {"64xi64", kNormal, -1, high}},
            {{"%0", "64xi8"}, {"%1", "64xui32"}, {"%2", "64xi64"}},
            "%0 = \"stablehlo." + std::string(op) +
                "\"(%a0, %a1) : (tensor<64xi8>, tensor<64xi8>) -> tensor<64xi8>\n%1 = \"stablehlo." + op +
                "\"(%a2, %a3) : (tensor<64xui32>, tensor<64xui32>) -> tensor<64xui32>\n%2 = \"stablehlo." + op +
                "\"(%a4, %a5) : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi64>");
  Elementwise("chlo.next_after", 2, {"f32", "f64"});
  Elementwise("chlo.zeta", 2, {"f32", "f64"}, kPositive, "", 100);
  Check("polygamma", {{"64xf64", kPositive}}, {{"%0", "64xf64"}},
        R"(%n = "stablehlo.constant"() <{value = dense<2.0> : tensor<64xf64>}> : () -> tensor<64xf64>
%0 = "chlo.polygamma"(%n, %a0) : (tensor<64xf64>, tensor<64xf64>) -> tensor<64xf64>)",
        1e3);
}

TEST(Differential, CompareSelectClamp) {
  for (const char* direction : {"EQ", "NE", "LT", "LE", "GT", "GE"}) {
    std::string body;
    std::vector<Arg> args;
    std::vector<std::pair<std::string, std::string>> results;
    for (auto [dtype, kind, draw] : std::vector<std::tuple<const char*, const char*, Draw>>{{"f32", "FLOAT", kSpecial},
                                                                                            {"f32", "TOTALORDER", kSpecial},
                                                                                            {"bf16", "FLOAT", kSmallInts},
                                                                                            {"i8", "SIGNED", kSpecial},
                                                                                            {"ui32", "UNSIGNED", kSpecial},
                                                                                            {"i1", "UNSIGNED", kNormal},
                                                                                            {"f64", "TOTALORDER", kSpecial}}) {
      std::string a = "%a" + std::to_string(args.size()), b = "%a" + std::to_string(args.size() + 1),
                  type = std::string("64x") + dtype, r = "%r" + std::to_string(results.size());
      args.insert(args.end(), 2, Arg{type, draw});
      body += r + " = \"stablehlo.compare\"(" + a + ", " + b + ") <{comparison_direction = #stablehlo<comparison_direction " +
              direction + ">, compare_type = #stablehlo<comparison_type " + kind + ">}> : (" + T(type) + ", " + T(type) +
              ") -> tensor<64xi1>\n";
      results.push_back({r, "64xi1"});
    }
    Check(std::string("compare ") + direction, args, results, body);
  }
  Check("select", {{"64xi1"}, {"i1"}, {"64xf32"}, {"64xf32"}, {"64xcomplex<f64>"}, {"64xcomplex<f64>"}},
        {{"%0", "64xf32"}, {"%1", "64xcomplex<f64>"}},
        R"(%0 = "stablehlo.select"(%a0, %a2, %a3) : (tensor<64xi1>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
%1 = "stablehlo.select"(%a1, %a4, %a5) : (tensor<i1>, tensor<64xcomplex<f64>>,
tensor<64xcomplex<f64>>) -> tensor<64xcomplex<f64>>)");
  Check("clamp", {{"f32"}, {"64xf32"}, {"64xf32", kPositive}, {"i32", kNormal, -50, 0}, {"64xi32"}, {"i32", kNormal, 0, 50}},
        {{"%0", "64xf32"}, {"%1", "64xi32"}},
        R"(%0 = "stablehlo.clamp"(%a0, %a1, %a2) : (tensor<f32>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
%1 = "stablehlo.clamp"(%a3, %a4, %a5) : (tensor<i32>, tensor<64xi32>, tensor<i32>) -> tensor<64xi32>)");
}

TEST(Differential, Convert) {
  std::vector<std::string> all = Join({kFloats, kSigned, kUnsigned, {"i1", "f8E4M3FN", "f8E5M2"}});
  for (const std::string& from : all) {
    std::string body;
    std::vector<Arg> args = {{"64x" + from, kNormal}, {"64x" + from, kSpecial}};
    std::vector<std::pair<std::string, std::string>> results;
    for (const std::string& to : all) {
      std::string r = "%r" + std::to_string(results.size());
      body += r + " = \"stablehlo.convert\"(%a" + std::to_string(results.size() % 2) + ") : (tensor<64x" + from +
              ">) -> tensor<64x" + to + ">\n";
      results.push_back({r, "64x" + to});
      if (tpu::IsFloat(ParseDType(from)) && tpu::IsInteger(ParseDType(to))) {  // saturation
        body += r + "s = \"stablehlo.convert\"(%a1) : (tensor<64x" + from + ">) -> tensor<64x" + to + ">\n";
        results.push_back({r + "s", "64x" + to});
      }
    }
    Check("convert from " + from, args, results, body);
  }
  Check("convert complex", {{"64xcomplex<f32>"}, {"64xf32"}, {"64xi32"}},
        {{"%0", "64xcomplex<f64>"}, {"%1", "64xcomplex<f32>"}, {"%2", "64xcomplex<f64>"}, {"%3", "64xf32"}},
        R"(%0 = "stablehlo.convert"(%a0) : (tensor<64xcomplex<f32>>) -> tensor<64xcomplex<f64>>
%1 = "stablehlo.convert"(%a1) : (tensor<64xf32>) -> tensor<64xcomplex<f32>>
%2 = "stablehlo.convert"(%a2) : (tensor<64xi32>) -> tensor<64xcomplex<f64>>
%3 = "stablehlo.convert"(%a0) : (tensor<64xcomplex<f32>>) -> tensor<64xf32>)");
  Check("bitcast", {{"8xf32"}, {"8xf64"}, {"8x2xi32"}, {"8xbf16"}},
        {{"%0", "8xi32"}, {"%1", "8x2xui32"}, {"%2", "8xi64"}, {"%3", "8xui16"}, {"%4", "8x4xui8"}},
        R"(%0 = "stablehlo.bitcast_convert"(%a0) : (tensor<8xf32>) -> tensor<8xi32>
%1 = "stablehlo.bitcast_convert"(%a1) : (tensor<8xf64>) -> tensor<8x2xui32>
%2 = "stablehlo.bitcast_convert"(%a2) : (tensor<8x2xi32>) -> tensor<8xi64>
%3 = "stablehlo.bitcast_convert"(%a3) : (tensor<8xbf16>) -> tensor<8xui16>
%4 = "stablehlo.bitcast_convert"(%a0) : (tensor<8xf32>) -> tensor<8x4xui8>)");
  Check("reduce_precision", {{"64xf32"}, {"64xf32", kSpecial}, {"64xf64"}},
        {{"%0", "64xf32"}, {"%1", "64xf32"}, {"%2", "64xf64"}},
        R"(%0 = "stablehlo.reduce_precision"(%a0) <{exponent_bits = 5 : i32, mantissa_bits = 3 : i32}> :
(tensor<64xf32>) -> tensor<64xf32>
%1 = "stablehlo.reduce_precision"(%a1) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> :
(tensor<64xf32>) -> tensor<64xf32>
%2 = "stablehlo.reduce_precision"(%a2) <{exponent_bits = 8 : i32, mantissa_bits = 7 : i32}> :
(tensor<64xf64>) -> tensor<64xf64>)");
}

TEST(Differential, Shape) {
  Check("shape", {{"4x6xf32"}, {"6xi16"}, {"1x6xbf16"}, {"f32"}},
        {{"%0", "2x3x6xi16"},
         {"%1", "4x6xbf16"},
         {"%2", "3x8xf32"},
         {"%3", "6x4xf32"},
         {"%4", "4x6xf32"},
         {"%5", "8x6xf32"},
         {"%6", "4x7xf32"},
         {"%7", "5x6xi32"},
         {"%8", "5x6xf32"},
         {"%9", "9x13xf32"},
         {"%10", "2x3xf32"}},
        R"(%0 = "stablehlo.broadcast_in_dim"(%a1) <{broadcast_dimensions = array<i64: 2>}> :
(tensor<6xi16>) -> tensor<2x3x6xi16>
%1 = "stablehlo.broadcast_in_dim"(%a2) <{broadcast_dimensions = array<i64: 0, 1>}> :
(tensor<1x6xbf16>) -> tensor<4x6xbf16>
%2 = "stablehlo.reshape"(%a0) : (tensor<4x6xf32>) -> tensor<3x8xf32>
%3 = "stablehlo.transpose"(%a0) <{permutation = array<i64: 1, 0>}> : (tensor<4x6xf32>) -> tensor<6x4xf32>
%4 = "stablehlo.reverse"(%a0) <{dimensions = array<i64: 0, 1>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
%5 = "stablehlo.concatenate"(%a0, %a0) <{dimension = 0 : i64}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
%s = "stablehlo.slice"(%a0) <{start_indices = array<i64: 0, 5>, limit_indices = array<i64: 4, 6>, strides = array<i64:
1, 1>}> : (tensor<4x6xf32>) -> tensor<4x1xf32>
%6 = "stablehlo.concatenate"(%a0, %s) <{dimension = 1 : i64}> : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x7xf32>
%7 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x6xi32>
%8 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<5x6xf32>
%9 = "stablehlo.pad"(%a0, %a3) <{edge_padding_low = array<i64: 1, -1>, edge_padding_high = array<i64: 1, 3>,
interior_padding = array<i64: 1, 1>}> : (tensor<4x6xf32>, tensor<f32>) -> tensor<9x13xf32>
%10 = "stablehlo.slice"(%a0) <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 4, 6>, strides = array<i64:
2, 2>}> : (tensor<4x6xf32>) -> tensor<2x3xf32>)");
  for (int64_t at : {-3, 0, 2, 9})
    Check(
        "dynamic slices at " + std::to_string(at),
        {{"4x6xf32"}, {"2x3xf32"}, {"i32", kNormal, at, at}, {"ui32", kNormal, at, at < 0 ? 0 : at}, {"i64", kNormal, at, at}},
        {{"%0", "2x3xf32"}, {"%1", "4x6xf32"}, {"%2", "2x3xf32"}},
        R"(%0 = "stablehlo.dynamic_slice"(%a0, %a2, %a2) <{slice_sizes = array<i64: 2, 3>}> : (tensor<4x6xf32>,
tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
%1 = "stablehlo.dynamic_update_slice"(%a0, %a1, %a4, %a4) : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<i64>,
tensor<i64>) -> tensor<4x6xf32>
%2 = "stablehlo.dynamic_slice"(%a0, %a3, %a3) <{slice_sizes = array<i64: 2, 3>}> : (tensor<4x6xf32>, tensor<ui32>,
tensor<ui32>) -> tensor<2x3xf32>)");
  Check("constants", {},
        {{"%0", "4xf32"},
         {"%1", "2x2xi32"},
         {"%2", "4xi1"},
         {"%3", "4xf32"},
         {"%4", "2xcomplex<f32>"},
         {"%5", "3xbf16"},
         {"%6", "4xui64"},
         {"%7", "2xf8E4M3FN"},
         {"%8", "0xf32"},
         {"%9", "3xf16"}},
        R"(%0 = "stablehlo.constant"() <{value = dense<"0x0000803F000000400000404000008040"> : tensor<4xf32>}> :
() -> tensor<4xf32>
%1 = "stablehlo.constant"() <{value = dense<[[1, -2], [3, 4]]> : tensor<2x2xi32>}> : () -> tensor<2x2xi32>
%2 = "stablehlo.constant"() <{value = dense<[true, false, false, true]> : tensor<4xi1>}> : () -> tensor<4xi1>
%3 = "stablehlo.constant"() <{value = dense<0x7F800000> : tensor<4xf32>}> : () -> tensor<4xf32>
%4 = "stablehlo.constant"() <{value = dense<[(1.0, 2.0), (-1.5, 0xFF800000)]> : tensor<2xcomplex<f32>>}> :
() -> tensor<2xcomplex<f32>>
%5 = "stablehlo.constant"() <{value = dense<[1.0, 0x7F80, 3.14159]> : tensor<3xbf16>}> : () -> tensor<3xbf16>
%6 = "stablehlo.constant"() <{value = dense<18446744073709551615> : tensor<4xui64>}> : () -> tensor<4xui64>
%7 = "stablehlo.constant"() <{value = dense<[1.5, 448.0]> : tensor<2xf8E4M3FN>}> : () -> tensor<2xf8E4M3FN>
%8 = "stablehlo.constant"() <{value = dense<> : tensor<0xf32>}> : () -> tensor<0xf32>
%9 = "stablehlo.constant"() <{value = dense<[65504.0, 6.0e-8, 1.0e-5]> : tensor<3xf16>}> : () -> tensor<3xf16>)");
}

std::string Combine(const std::string& op, const std::string& dtype) {
  std::string t = T(dtype);
  return "({\n^bb0(%x: " + t + ", %y: " + t + "):\n%r = \"" + op + "\"(%x, %y) : (" + t + ", " + t + ") -> " + t +
         "\n\"stablehlo.return\"(%r) : (" + t + ") -> ()\n})";
}

TEST(Differential, Reduce) {
  for (auto [op, dtype] : std::vector<std::pair<const char*, const char*>>{{"stablehlo.add", "f32"},
                                                                           {"stablehlo.add", "bf16"},
                                                                           {"stablehlo.add", "i32"},
                                                                           {"stablehlo.maximum", "f32"},
                                                                           {"stablehlo.minimum", "i64"},
                                                                           {"stablehlo.multiply", "f64"},
                                                                           {"stablehlo.or", "i1"},
                                                                           {"stablehlo.and", "i1"},
                                                                           {"stablehlo.add", "complex<f32>"}})
    for (auto [dims, out] : std::vector<std::pair<const char*, const char*>>{{"1", "5x4x"}, {"0, 2", "7x"}, {"0, 1, 2", ""}}) {
      std::string d = dtype;
      Check(std::string(op) + " over " + dims, {{"5x7x4x" + d, kSmall}, {d}}, {{"%0", out + d}},
            "%0 = \"stablehlo.reduce\"(%a0, %a1) <{dimensions = array<i64: " + std::string(dims) + ">}> " + Combine(op, d) +
                " : (" + T("5x7x4x" + d) + ", " + T(d) + ") -> " + T(out + d),
            d == "bf16" ? 4 : 10);
    }
  Check("reduce of nothing", {{"0x4xf32"}, {"f32"}, {"4x0xf32"}}, {{"%0", "4xf32"}, {"%1", "0xf32"}},
        "%0 = \"stablehlo.reduce\"(%a0, %a1) <{dimensions = array<i64: 0>}> " + Combine("stablehlo.add", "f32") +
            " : (tensor<0x4xf32>, tensor<f32>) -> tensor<4xf32>\n" +
            "%1 = \"stablehlo.reduce\"(%a2, %a1) <{dimensions = array<i64: 0>}> " + Combine("stablehlo.add", "f32") +
            " : (tensor<4x0xf32>, tensor<f32>) -> tensor<0xf32>");
  Check("argmax", {{"8x33xf32", kSmallInts}}, {{"%0#0", "8xf32"}, {"%0#1", "8xi32"}},
        R"(%z = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
%k = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
%io = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<8x33xi32>
%0:2 = "stablehlo.reduce"(%a0, %io, %z, %k) <{dimensions = array<i64: 1>}> ({
^bb0(%x: tensor<f32>, %xi: tensor<i32>, %y: tensor<f32>, %yi: tensor<i32>):
%c = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>,
tensor<f32>) -> tensor<i1>
%v = "stablehlo.select"(%c, %x, %y) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
%w = "stablehlo.select"(%c, %xi, %yi) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%v, %w) : (tensor<f32>, tensor<i32>) -> ()
}) : (tensor<8x33xf32>, tensor<8x33xi32>, tensor<f32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xi32>))");
}

TEST(Differential, Windows) {
  Check("max pool", {{"2x3x16x15xf32"}}, {{"%0", "2x3x8x7xf32"}},
        R"(%z = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
%0 = "stablehlo.reduce_window"(%a0, %z) <{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1,
2, 2>, padding = dense<[[0, 0], [0, 0], [1, 1], [0, 0]]> : tensor<4x2xi64>}> )" +
            Combine("stablehlo.maximum", "f32") + " : (tensor<2x3x16x15xf32>, tensor<f32>) -> tensor<2x3x8x7xf32>");
  Check("cumsum", {{"8x33xf32"}}, {{"%0", "8x33xf32"}},
        R"(%z = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
%0 = "stablehlo.reduce_window"(%a0, %z) <{window_dimensions = array<i64: 1, 33>, padding = dense<[[0, 0], [32, 0]]> :
tensor<2x2xi64>}> )" +
            Combine("stablehlo.add", "f32") + " : (tensor<8x33xf32>, tensor<f32>) -> tensor<8x33xf32>");
  Check("dilated window", {{"9x9xi32"}}, {{"%0", "11x7xi32"}},
        R"(%z = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
%0 = "stablehlo.reduce_window"(%a0, %z) <{window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 1>,
base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 2, 3>, padding = dense<[[3, 3], [1, 0]]> :
tensor<2x2xi64>}> )" +
            Combine("stablehlo.add", "i32") + " : (tensor<9x9xi32>, tensor<i32>) -> tensor<11x7xi32>");
  Check("base dilation", {{"5xi32"}}, {{"%0", "8xi32"}},
        R"(%z = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
%0 = "stablehlo.reduce_window"(%a0, %z) <{window_dimensions = array<i64: 2>, base_dilations = array<i64: 2>}> )" +
            Combine("stablehlo.add", "i32") + " : (tensor<5xi32>, tensor<i32>) -> tensor<8xi32>");
  Check("select_and_scatter", {{"2x8x8xf32"}, {"2x4x4xf32"}, {"f32"}}, {{"%0", "2x8x8xf32"}},
        R"(%0 = "stablehlo.select_and_scatter"(%a0, %a1, %a2) <{window_dimensions = array<i64: 1, 3, 3>,
window_strides = array<i64: 1, 2, 2>, padding = dense<[[0, 0], [1, 0], [0, 1]]> : tensor<3x2xi64>}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
%r = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>,
tensor<f32>) -> tensor<i1>
"stablehlo.return"(%r) : (tensor<i1>) -> ()
}, {
^bb0(%u: tensor<f32>, %v: tensor<f32>):
%s = "stablehlo.add"(%u, %v) : (tensor<f32>, tensor<f32>) -> tensor<f32>
"stablehlo.return"(%s) : (tensor<f32>) -> ()
}) : (tensor<2x8x8xf32>, tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x8x8xf32>)");
  Check("map", {{"4x6xf32"}, {"4x6xf32"}}, {{"%0", "4x6xf32"}},
        "%0 = \"stablehlo.map\"(%a0, %a1) <{dimensions = array<i64: 0, 1>}> " + Combine("stablehlo.subtract", "f32") +
            " : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>");
}

TEST(Differential, Sort) {
  for (int dim : {0, 1}) {
    std::string text = R"(%i = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<13x29xi32>
%0:2 = "stablehlo.sort"(%a0, %i) <{dimension = DIM : i64, is_stable = true}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>, %xi: tensor<i32>, %yi: tensor<i32>):
%r = "stablehlo.compare"(%x, %y) <{comparison_direction = #stablehlo<comparison_direction GT>,
compare_type = #stablehlo<comparison_type TOTALORDER>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
"stablehlo.return"(%r) : (tensor<i1>) -> ()
}) : (tensor<13x29xf32>, tensor<13x29xi32>) -> (tensor<13x29xf32>, tensor<13x29xi32>))";
    text.replace(text.find("DIM"), 3, std::to_string(dim));
    Check("sort", {{"13x29xf32", kSmallInts}}, {{"%0#0", "13x29xf32"}, {"%0#1", "13x29xi32"}}, text);
  }
  Check("top_k", {{"5x40xf32", kSmallInts}, {"5x40xi32", kNormal, -3, 3}},
        {{"%0#0", "5x6xf32"}, {"%0#1", "5x6xi32"}, {"%1#0", "5x6xi32"}, {"%1#1", "5x6xi32"}},
        R"(%0:2 = "chlo.top_k"(%a0) <{k = 6 : i64}> : (tensor<5x40xf32>) -> (tensor<5x6xf32>, tensor<5x6xi32>)
%1:2 = "chlo.top_k"(%a1) <{k = 6 : i64}> : (tensor<5x40xi32>) -> (tensor<5x6xi32>, tensor<5x6xi32>))");
  for (std::string t : {"f32", "bf16", "f64"}) {
    std::string x = "tensor<5x40x" + t + ">", tops = "(" + x + ", tensor<5x40xi32>)";
    std::string top = "\"(%x) <{k = 40 : i64}> : (" + x + ") -> " + tops + "\n";
    // Negation makes the NaNs of the other sign.
    Check("top_k (special values)", {{"5x40x" + t, kSpecial}, {"5x40x" + t, kSpecial}},
          {{"%0#0", "5x40x" + t}, {"%0#1", "5x40xi32"}},
          "%n = \"stablehlo.negate\"(%a0) : (" + x + ") -> " + x +
              "\n%z = \"stablehlo.constant\"() <{value = dense<0.0> : " + x + "}> : () -> " + x +
              "\n%p = \"stablehlo.compare\"(%a1, %z) <{comparison_direction = " + "#stablehlo<comparison_direction GT>}> : (" +
              x + ", " + x + ") -> tensor<5x40xi1>\n" + "%x = \"stablehlo.select\"(%p, %a0, %n) : (tensor<5x40xi1>, " + x +
              ", " + x + ") -> " + x + "\n%0:2 = \"chlo.top_k" + top);
  }
}

TEST(Differential, Dot) {
  auto dot = [](const char* fields) {
    return std::string("<{dot_dimension_numbers = #stablehlo.dot<") + fields +
           ">, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]}>";
  };
  for (auto [in, out] : std::vector<std::pair<std::string, std::string>>{{"f32", "f32"},
                                                                         {"f64", "f64"},
                                                                         {"bf16", "bf16"},
                                                                         {"bf16", "f32"},
                                                                         {"f16", "f16"},
                                                                         {"i32", "i32"},
                                                                         {"i8", "i32"},
                                                                         {"complex<f32>", "complex<f32>"},
                                                                         {"ui8", "ui32"}}) {
    Check("dot " + in + " -> " + out,
          {{"9x17x" + in, kSmall}, {"17x5x" + in, kSmall}, {"3x9x17x" + in, kSmall}, {"3x5x17x" + in, kSmall}},
          {{"%0", "9x5x" + out}, {"%1", "3x9x5x" + out}, {"%2", "9x5x" + out}},
          "%0 = \"stablehlo.dot_general\"(%a0, %a1) " +
              dot("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]") + " : (" + T("9x17x" + in) + ", " +
              T("17x5x" + in) + ") -> " + T("9x5x" + out) + "\n%1 = \"stablehlo.dot_general\"(%a2, %a3) " +
              dot("lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], "
                  "rhs_contracting_dimensions = [2]") +
              " : (" + T("3x9x17x" + in) + ", " + T("3x5x17x" + in) + ") -> " + T("3x9x5x" + out) +
              "\n%2 = \"stablehlo.dot_general\"(%a2, %a3) " +
              dot("lhs_contracting_dimensions = [0, 2], rhs_contracting_dimensions = [0, 2]") + " : (" + T("3x9x17x" + in) +
              ", " + T("3x5x17x" + in) + ") -> " + T("9x5x" + out),
          4);
  }
}

TEST(Differential, GatherScatter) {
  Check("gather",
        {{"64x12xf32"},
         {"10x1xi32", kNormal, -3, 70},
         {"4x64xf32"},
         {"4x10x1xi32", kNormal, -3, 70},
         {"5x2xi64", kNormal, -5, 70}},
        {{"%0", "10x12xf32"}, {"%1", "4x10xf32"}, {"%2", "5x3x4xf32"}, {"%3", "12x10x1xf32"}},
        R"(%0 = "stablehlo.gather"(%a0, %a1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false,
slice_sizes = array<i64: 1, 12>}> : (tensor<64x12xf32>, tensor<10x1xi32>) -> tensor<10x12xf32>
%1 = "stablehlo.gather"(%a2, %a3) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>,
slice_sizes = array<i64: 1, 1>}> : (tensor<4x64xf32>, tensor<4x10x1xi32>) -> tensor<4x10xf32>
%2 = "stablehlo.gather"(%a0, %a4) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [1,
0], index_vector_dim = 1>, slice_sizes = array<i64: 3, 4>}> : (tensor<64x12xf32>, tensor<5x2xi64>) -> tensor<5x3x4xf32>
%3 = "stablehlo.gather"(%a0, %a1) <{dimension_numbers = #stablehlo.gather<offset_dims = [0],
collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 12>}> :
(tensor<64x12xf32>, tensor<10x1xi32>) -> tensor<12x10x1xf32>)");
  std::string add = R"(({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
%r = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
"stablehlo.return"(%r) : (tensor<f32>) -> ()
}))",
              set = R"(({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
"stablehlo.return"(%y) : (tensor<f32>) -> ()
}))";
  for (const std::string& region : {add, set})
    Check("scatter",
          {{"8x12xf32"},
           {"10x1xi32", kNormal, -3, 10},
           {"10x12xf32"},
           {"4x9xf32"},
           {"4x10x1xi32", kNormal, -2, 10},
           {"4x10xf32"}},
          {{"%0", "8x12xf32"}, {"%1", "4x9xf32"}},
          R"(%0 = "stablehlo.scatter"(%a0, %a1, %a2) <{indices_are_sorted = false,
scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> )" +
              region + R"( : (tensor<8x12xf32>, tensor<10x1xi32>, tensor<10x12xf32>) -> tensor<8x12xf32>
%1 = "stablehlo.scatter"(%a3, %a4, %a5) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1],
input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1],
index_vector_dim = 2>}> )" +
              region + " : (tensor<4x9xf32>, tensor<4x10x1xi32>, tensor<4x10xf32>) -> tensor<4x9xf32>");
  // Windows that stick out.
  Check("scatter windows", {{"8x12xf32"}, {"20x2xi32", kNormal, -2, 12}, {"20x3x4xf32"}}, {{"%0", "8x12xf32"}},
        R"(%0 = "stablehlo.scatter"(%a0, %a1,
%a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0,
1], index_vector_dim = 1>}> )" +
            add + " : (tensor<8x12xf32>, tensor<20x2xi32>, tensor<20x3x4xf32>) -> tensor<8x12xf32>");
  Check("scatter of two", {{"16xf32"}, {"16xi32"}, {"30x1xi32", kNormal, 0, 15}, {"30xf32"}, {"30xi32"}},
        {{"%0#0", "16xf32"}, {"%0#1", "16xi32"}},
        R"(%0:2 = "stablehlo.scatter"(%a0, %a1, %a2, %a3,
%a4) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
index_vector_dim = 1>}> ({
^bb0(%x: tensor<f32>, %xi: tensor<i32>, %y: tensor<f32>, %yi: tensor<i32>):
%r = "stablehlo.maximum"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>
%s = "stablehlo.add"(%xi, %yi) : (tensor<i32>, tensor<i32>) -> tensor<i32>
"stablehlo.return"(%r, %s) : (tensor<f32>, tensor<i32>) -> ()
}) : (tensor<16xf32>, tensor<16xi32>, tensor<30x1xi32>, tensor<30xf32>, tensor<30xi32>) -> (tensor<16xf32>,
tensor<16xi32>))");
}

TEST(Differential, Control) {
  Check("while, if, case", {{"4xf32", kUnit}, {"i1"}, {"i32", kNormal, -1, 4}},
        {{"%0#1", "4xf32"}, {"%1", "4xf32"}, {"%2", "4xf32"}, {"%3#1", "i32"}},
        R"(%c = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
%n = "stablehlo.constant"() <{value = dense<10> : tensor<i32>}> : () -> tensor<i32>
%one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
%0:2 = "stablehlo.while"(%c, %a0) ({
^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
%p = "stablehlo.compare"(%i, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>,
tensor<i32>) -> tensor<i1>
"stablehlo.return"(%p) : (tensor<i1>) -> ()
}, {
^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
%j = "stablehlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
%y = "stablehlo.add"(%x, %a0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
"stablehlo.return"(%j, %y) : (tensor<i32>, tensor<4xf32>) -> ()
}) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
%1 = "stablehlo.if"(%a1) ({
"stablehlo.return"(%a0) : (tensor<4xf32>) -> ()
}, {
%m = "stablehlo.negate"(%a0) : (tensor<4xf32>) -> tensor<4xf32>
"stablehlo.return"(%m) : (tensor<4xf32>) -> ()
}) : (tensor<i1>) -> tensor<4xf32>
%2 = "stablehlo.case"(%a2) ({
"stablehlo.return"(%a0) : (tensor<4xf32>) -> ()
}, {
%m = "stablehlo.negate"(%a0) : (tensor<4xf32>) -> tensor<4xf32>
"stablehlo.return"(%m) : (tensor<4xf32>) -> ()
}, {
%m = "stablehlo.exponential"(%a0) : (tensor<4xf32>) -> tensor<4xf32>
"stablehlo.return"(%m) : (tensor<4xf32>) -> ()
}) : (tensor<i32>) -> tensor<4xf32>
%3:2 = "stablehlo.optimization_barrier"(%1, %c) : (tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>))");
}

}  // namespace
}  // namespace fake_pjrt
