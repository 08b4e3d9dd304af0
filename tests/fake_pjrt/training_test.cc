// SPDX-License-Identifier: Apache-2.0
// What most tests of the project need the fake for: one training step of an MLP (784-512-512-10, cross entropy,
// gradient clipping, SGD with momentum) as one program, against XLA where it is installed.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "plugin_for_test.h"

namespace fake_pjrt {
namespace {

constexpr int kBatch = 64;
constexpr int kSizes[] = {784, 512, 512, 10};

struct Value {
  std::string name;
  std::vector<int64_t> dims;
  std::string dtype = "f32";

  std::string type() const {
    std::string s = "tensor<";
    for (int64_t d : dims) s += std::to_string(d) + "x";
    return s + dtype + ">";
  }
};

// Writes f32 programs, one operator a line.
class Writer {
 public:
  Value Op(const std::string& op, const std::vector<Value>& in, std::vector<int64_t> dims, const std::string& attrs = "",
           const std::string& dtype = "f32") {
    Value v{"%v" + std::to_string(next_++), std::move(dims), dtype};
    std::string names, types;
    for (const Value& i : in) {
      names += (names.empty() ? "" : ", ") + i.name;
      types += (types.empty() ? "" : ", ") + i.type();
    }
    text += v.name + " = \"stablehlo." + op + "\"(" + names + ")" + attrs + " : (" + types + ") -> " + v.type() + "\n";
    return v;
  }
  Value Same(const std::string& op, const std::vector<Value>& in) { return Op(op, in, in[0].dims); }
  Value Constant(const std::string& literal, std::vector<int64_t> dims = {}) {
    Value t{"", dims};
    return Op("constant", {}, dims, " <{value = dense<" + literal + "> : " + t.type() + "}>");
  }
  Value Broadcast(const Value& v, std::vector<int64_t> dims, const std::string& map) {
    return Op("broadcast_in_dim", {v}, std::move(dims),
              " <{broadcast_dimensions = array<i64" + std::string(map.empty() ? "" : ": ") + map + ">}>", v.dtype);
  }
  Value Dot(const Value& a, const Value& b, int a_dim, int b_dim) {
    return Op("dot_general", {a, b}, {a.dims[1 - a_dim], b.dims[1 - b_dim]},
              " <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [" + std::to_string(a_dim) +
                  "], rhs_contracting_dimensions = [" + std::to_string(b_dim) +
                  "]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]}>");
  }
  Value Reduce(const std::string& op, const Value& v, const std::string& init, const std::string& dims,
               std::vector<int64_t> result) {
    Value z = Constant(init);
    std::string t = "tensor<f32>";
    return Op("reduce", {v, z}, std::move(result),
              " <{dimensions = array<i64: " + dims + ">}> ({\n^bb0(%x: " + t + ", %y: " + t + "):\n%r = \"stablehlo." + op +
                  "\"(%x, %y) : (" + t + ", " + t + ") -> " + t + "\n\"stablehlo.return\"(%r) : (" + t + ") -> ()\n})");
  }
  Value Compare(const std::string& direction, const Value& a, const Value& b) {
    return Op("compare", {a, b}, a.dims, " <{comparison_direction = #stablehlo<comparison_direction " + direction + ">}>",
              "i1");
  }
  std::string text;

 private:
  int next_ = 0;
};

// Arguments: W1 b1 W2 b2 W3 b3, their momenta (all aliased to the results), x, labels. Results: the same, and the loss.
std::string TrainingStep() {
  Writer w;
  std::vector<Value> params, momenta;
  for (int kind = 0; kind < 2; ++kind)
    for (int layer = 0; layer < 3; ++layer) {
      auto& list = kind ? momenta : params;
      std::string p = kind ? "%m" : "%p", n = std::to_string(2 * layer), m = std::to_string(2 * layer + 1);
      list.push_back({p + n, {kSizes[layer + 1], kSizes[layer]}});
      list.push_back({p + m, {kSizes[layer + 1]}});
    }
  Value x{"%x0", {kBatch, kSizes[0]}}, labels{"%labels", {kBatch}, "i64"};
  std::vector<Value> activations = {x};
  Value logits;
  for (int layer = 0; layer < 3; ++layer) {
    std::vector<int64_t> dims = {kBatch, kSizes[layer + 1]};
    Value h =
        w.Same("add", {w.Dot(activations.back(), params[2 * layer], 1, 1), w.Broadcast(params[2 * layer + 1], dims, "1")});
    if (layer < 2)
      activations.push_back(w.Same("maximum", {h, w.Constant("0.0", dims)}));
    else
      logits = h;
  }
  std::vector<int64_t> dims = logits.dims, row = {kBatch};
  Value shifted = w.Same("subtract", {logits, w.Broadcast(w.Reduce("maximum", logits, "0xFF800000", "1", row), dims, "0")});
  Value exps = w.Same("exponential", {shifted});
  Value sums = w.Reduce("add", exps, "0.0", "1", row);
  Value log_probs = w.Same("subtract", {shifted, w.Broadcast(w.Same("log", {sums}), dims, "0")});
  Value classes = w.Op("iota", {}, dims, " <{iota_dimension = 1 : i64}>", "i64");
  Value hit = w.Compare("EQ", w.Broadcast(labels, dims, "0"), classes);
  Value one_hot = w.Op("convert", {hit}, dims);
  Value picked = w.Op("select", {hit, log_probs, w.Constant("0.0", dims)}, dims);
  Value scale = w.Constant("0.015625");  // 1 / 64
  Value loss = w.Same("negate", {w.Same("multiply", {w.Reduce("add", picked, "0.0", "0, 1", {}), scale})});
  Value grad = w.Same("multiply", {w.Same("subtract", {w.Same("divide", {exps, w.Broadcast(sums, dims, "0")}), one_hot}),
                                   w.Broadcast(scale, dims, "")});
  std::vector<Value> grads(6);
  for (int layer = 2; layer >= 0; --layer) {
    grads[2 * layer] = w.Dot(grad, activations[layer], 0, 0);
    grads[2 * layer + 1] = w.Reduce("add", grad, "0.0", "0", {kSizes[layer + 1]});
    if (layer == 0) break;
    Value back = w.Dot(grad, params[2 * layer], 1, 0), zero = w.Constant("0.0", back.dims);
    grad = w.Op("select", {w.Compare("GT", activations[layer], zero), back, zero}, back.dims);
  }
  Value total = w.Constant("0.0");
  for (const Value& g : grads)
    total = w.Same("add", {total, w.Reduce("add", w.Same("multiply", {g, g}), "0.0", g.dims.size() == 2 ? "0, 1" : "0", {})});
  Value norm = w.Same("add", {w.Same("sqrt", {total}), w.Constant("1.0e-6")});
  Value clip = w.Same("minimum", {w.Same("divide", {w.Constant("0.5"), norm}), w.Constant("1.0")});
  std::string arguments, results, types;
  std::vector<Value> outputs;
  for (int i = 0; i < 6; ++i) {
    const std::vector<int64_t>& d = params[i].dims;
    Value g = w.Same("multiply", {grads[i], w.Broadcast(clip, d, "")});
    Value m = w.Same("add", {w.Same("multiply", {momenta[i], w.Constant("0.9", d)}), g});
    outputs.insert(outputs.begin() + i, w.Same("subtract", {params[i], w.Same("multiply", {m, w.Constant("0.1", d)})}));
    outputs.push_back(m);
  }
  params.insert(params.end(), momenta.begin(), momenta.end());
  for (size_t i = 0; i < params.size(); ++i)
    arguments += params[i].name + ": " + params[i].type() + " {tf.aliasing_output = " + std::to_string(i) + " : i32}, ";
  outputs.push_back(loss);
  for (const Value& o : outputs) {
    results += (results.empty() ? "" : ", ") + o.name;
    types += (types.empty() ? "" : ", ") + o.type();
  }
  return "module @step {\nfunc.func public @main(" + arguments + x.name + ": " + x.type() + ", " + labels.name + ": " +
         labels.type() + ") -> (" + types + ") {\n" + w.text + "\"func.return\"(" + results + ") : (" + types +
         ") -> ()\n}\n}\n";
}

std::vector<HostArray> Inputs() {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  std::vector<HostArray> inputs;
  auto add = [&](std::vector<int64_t> dims, float scale) {
    std::vector<float> values(dims.size() == 2 ? dims[0] * dims[1] : dims[0]);
    for (float& v : values) v = scale == 0 ? 0 : normal(rng) * scale;
    inputs.push_back(HostArray::F32(dims, values));
  };
  for (float scale : {1.0f, 0.0f})
    for (int layer = 0; layer < 3; ++layer) {
      add({kSizes[layer + 1], kSizes[layer]}, scale / std::sqrt(static_cast<float>(kSizes[layer])));
      add({kSizes[layer + 1]}, scale * 0.01f);
    }
  add({kBatch, kSizes[0]}, 1);
  std::vector<int64_t> labels(kBatch);
  for (int64_t& l : labels) l = rng() % 10;
  inputs.push_back(HostArray::Of(PJRT_Buffer_Type_S64, {kBatch}, labels));
  return inputs;
}

// Returns the losses; `state` ends as the last parameters and momenta.
std::vector<float> Train(const Plugin& plugin, int steps, std::vector<HostArray>* state) {
  PJRT_LoadedExecutable* step;
  Failure f = plugin.Compile(TrainingStep(), &step);
  EXPECT_EQ(f.code, 0) << f.message;
  std::vector<PJRT_Buffer*> args, out;
  for (const HostArray& a : Inputs()) args.push_back(plugin.Upload(a));
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    f = plugin.Execute(step, args, &out);
    EXPECT_EQ(f.code, 0) << f.message;
    HostArray loss;
    plugin.Download(out[12], &loss);
    losses.push_back(loss.As<float>().at(0));
    plugin.Destroy(out[12]);
    for (int k = 0; k < 12; ++k) {
      plugin.Destroy(args[k]);
      args[k] = out[k];
    }
  }
  state->resize(12);
  for (int k = 0; k < 12; ++k) plugin.Download(args[k], &(*state)[k]);
  for (PJRT_Buffer* b : args) plugin.Destroy(b);
  plugin.Destroy(step);
  return losses;
}

TEST(Training, MlpStep) {
  static const Plugin fake(GetPjrtApi(), 1);
  std::vector<HostArray> mine, theirs;
  auto start = std::chrono::steady_clock::now();
  std::vector<float> losses = Train(fake, 5, &mine);
  auto end = std::chrono::steady_clock::now();
  RecordProperty("ms_per_step", std::to_string(std::chrono::duration<double, std::milli>(end - start).count() / 5));
  EXPECT_LT(losses.back(), losses.front());
  const Plugin* xla = XlaCpuPlugin();
  if (!xla) GTEST_SKIP() << "XLA's CPU plugin is not installed: only the fake was tested";
  std::vector<float> expected = Train(*xla, 5, &theirs);
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(losses[i], expected[i], 1e-5) << "step " << i;
  // After more steps a rounding difference may flip a ReLU: the states are compared after one.
  Train(fake, 1, &mine);
  Train(*xla, 1, &theirs);
  for (int k = 0; k < 12; ++k) {
    std::vector<float> a = mine[k].As<float>(), b = theirs[k].As<float>();
    ASSERT_EQ(a.size(), b.size());
    float worst = 0;
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
    EXPECT_LT(worst, 1e-6) << "state " << k;
  }
}

}  // namespace
}  // namespace fake_pjrt
