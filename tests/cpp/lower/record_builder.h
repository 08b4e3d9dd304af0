// SPDX-License-Identifier: Apache-2.0
// Builds an operation record by hand, lowers it, compiles and runs it on the plugin under test, and
// hands back the results in logical order. Header-only: every test of the room includes it.
//
//   Outcome out = RecordBuilder("add.Tensor").Tensor(x).Tensor(y).Scalar(2.0).Result(F32({2, 3})).Run();
//   ExpectValues(out.results[0], {…});
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/settings.h"
#include "cpp/lower/host_tensor.h"
#include "cpp/test_plugin.h"
#include "graph/access.h"
#include "graph/op_record.h"
#include "lower/lowering.h"
#include "pjrt/client.h"

namespace tpu::lower {

// Null, once reported, when the plugin cannot be used.
inline pjrt::Client* TestClient() {
  static pjrt::Client* client = []() -> pjrt::Client* {
    auto plugin = pjrt::Plugin::Load(TestPluginPath());
    if (!plugin.ok()) {
      ADD_FAILURE() << plugin.status().message();
      return nullptr;
    }
    auto made = pjrt::Client::Create(*plugin, {});
    if (!made.ok()) {
      ADD_FAILURE() << made.status().message();
      return nullptr;
    }
    Status probed = pjrt::ProbeOptions(**made, (*made)->mutable_profile());
    if (!probed.ok()) ADD_FAILURE() << probed.message();
    return *made;
  }();
  return client;
}

// Skips the test when no plugin is named.
class LowerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (TestPluginPath().empty()) GTEST_SKIP() << "TORCH_TPU_TEST_PLUGIN is not set";
  }
};

struct Outcome {
  Status status;                     // of lowering, compile or run
  Lowered lowered;
  std::vector<HostTensor> results;   // results without target: in the tensor's own order; with target: the new base
  std::vector<int32_t> traps;
};

// A strided view, in elements.
struct Geometry {
  DType dtype;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
};

class RecordBuilder {
 public:
  // `op` without "aten::".
  explicit RecordBuilder(const std::string& op) { record_.op = HashName(("aten::" + op).c_str()); }

  // ---- arguments, in the schema's order
  RecordBuilder& Tensor(const HostTensor& base) { return View(AddBase(base), WholeOf(base.type)); }
  // A view of `base`, which becomes a new argument of the graph.
  RecordBuilder& View(const HostTensor& base, const Geometry& g) { return View(AddBase(base), g); }
  // A view of the argument of the graph number `value`.
  RecordBuilder& View(int value, const Geometry& g) {
    graph::Argument a;
    a.kind = graph::ArgKind::kTensor;
    a.tensors.push_back(MakeOperand(value, g));
    return Add(std::move(a));
  }
  // Undefined elements: HostTensors with dtype kInvalid.
  RecordBuilder& TensorList(const std::vector<HostTensor>& list) {
    graph::Argument a;
    a.kind = graph::ArgKind::kTensorList;
    for (const HostTensor& t : list) {
      a.tensors.push_back(t.type.dtype == DType::kInvalid ? graph::Operand() : MakeOperand(AddBase(t), WholeOf(t.type)));
    }
    return Add(std::move(a));
  }
  RecordBuilder& None() { return Add({}); }
  RecordBuilder& Scalar(double v) { return AddRaw(graph::ArgKind::kScalar, DType::kF64, Bits(v)); }
  RecordBuilder& Scalar(int64_t v) { return AddRaw(graph::ArgKind::kScalar, DType::kI64, static_cast<uint64_t>(v)); }
  RecordBuilder& Scalar(int v) { return Scalar(static_cast<int64_t>(v)); }
  RecordBuilder& Scalar(bool v) { return AddRaw(graph::ArgKind::kScalar, DType::kBool, v); }
  RecordBuilder& Scalar(std::complex<double> v) {
    AddRaw(graph::ArgKind::kScalar, DType::kC128, Bits(v.real()));
    raws_.push_back(Bits(v.imag()));
    return *this;
  }
  // A structural class other than 0: the value is not recorded.
  RecordBuilder& ScalarOfClass(uint8_t scalar_class, DType kind = DType::kI64) {
    graph::Argument a;
    a.kind = graph::ArgKind::kScalar;
    a.dtype = kind;
    a.scalar_class = scalar_class;
    return Add(std::move(a));
  }
  // A 0-dim CPU tensor.
  RecordBuilder& HostNumber(DType dtype, double v, bool wrapped = false) {
    AddRaw(graph::ArgKind::kHostTensor, dtype, IsFloat(dtype) ? Bits(v) : static_cast<uint64_t>(static_cast<int64_t>(v)));
    record_.args.back().wrapped_number = wrapped;
    return *this;
  }
  RecordBuilder& Int(int64_t v) { return AddInt(graph::ArgKind::kInt, v); }
  RecordBuilder& Bool(bool v) { return AddInt(graph::ArgKind::kBool, v); }
  RecordBuilder& Double(double v) {
    graph::Argument a;
    a.kind = graph::ArgKind::kDouble;
    a.d = v;
    return Add(std::move(a));
  }
  RecordBuilder& IntList(std::vector<int64_t> v) {
    graph::Argument a;
    a.kind = graph::ArgKind::kIntList;
    a.ints = std::move(v);
    return Add(std::move(a));
  }
  RecordBuilder& BoolList(std::vector<int64_t> v) {
    IntList(std::move(v));
    record_.args.back().kind = graph::ArgKind::kBoolList;
    return *this;
  }
  RecordBuilder& DoubleList(std::vector<double> v) {
    graph::Argument a;
    a.kind = graph::ArgKind::kDoubleList;
    a.doubles = std::move(v);
    return Add(std::move(a));
  }
  RecordBuilder& Text(std::string v) {
    graph::Argument a;
    a.kind = graph::ArgKind::kString;
    a.text = std::move(v);
    return Add(std::move(a));
  }
  RecordBuilder& Type(DType v) {
    graph::Argument a;
    a.kind = graph::ArgKind::kDType;
    a.dtype = v;
    return Add(std::move(a));
  }
  // Sets the conj or neg bit of the operand added last.
  RecordBuilder& Conj() { return record_.args.back().tensors[0].conj = true, *this; }
  RecordBuilder& Neg() { return record_.args.back().tensors[0].neg = true, *this; }

  // ---- results, in order
  RecordBuilder& Result(const TensorType& type) { return Result(type, WholeOf(type).strides); }
  RecordBuilder& Result(const TensorType& type, const std::vector<int64_t>& strides) {
    graph::RecordResult r;
    r.dtype = type.dtype;
    r.rank = type.rank;
    for (int i = 0; i < type.rank; ++i) {
      r.sizes[i] = type.dims[i].size();
      r.strides[i] = strides[static_cast<size_t>(i)];
    }
    record_.results.push_back(r);
    return *this;
  }
  RecordBuilder& NoResult() {
    record_.results.emplace_back();
    record_.results.back().defined = false;
    return *this;
  }
  // The result added last goes to tensor argument `argument` (in-place) ...
  RecordBuilder& InPlace(int argument) { return Into(record_.args[static_cast<size_t>(argument)].tensors[0]); }
  // ... or to a view of a new argument of the graph (out=).
  RecordBuilder& Out(const HostTensor& base, const Geometry& g) { return Into(MakeOperand(AddBase(base), g)); }

  // ---- running
  graph::Graph graph() const {
    graph::Graph g;
    for (const HostTensor& t : bases_) g.arguments.push_back(t.type);
    g.records.push_back(record_);
    g.records[0].num_raw = static_cast<int>(raws_.size());
    return g;
  }
  tpu::Result<Lowered> Lower(const pjrt::EngineProfile& profile = {}) const { return LowerGraph(graph(), profile); }
  // seed and offset of the generator.
  Outcome Run(uint64_t seed = 0, uint64_t offset = 0) const {
    pjrt::Client* client = TestClient();
    return RunOn(client ? client->profile() : pjrt::EngineProfile(), seed, offset);
  }
  // Lowered for another engine, run on this one.
  Outcome RunOn(const pjrt::EngineProfile& profile, uint64_t seed = 0, uint64_t offset = 0) const {
    Outcome out;
    out.status = RunInto(&out, profile, seed, offset);
    EXPECT_TRUE(out.status.ok() || expect_error_) << out.status.message() << "\n" << out.lowered.text;
    // So that a test may look at the results it asked for even after a failure.
    if (!out.status.ok()) {
      for (const graph::RecordResult& r : record_.results) out.results.push_back(HostTensor::Zeros(r.type()));
    }
    return out;
  }
  RecordBuilder& ExpectError() { return expect_error_ = true, *this; }

 private:
  static uint64_t Bits(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, 8);
    return bits;
  }
  static Geometry WholeOf(const TensorType& type) {
    Geometry g{type.dtype, {}, std::vector<int64_t>(type.rank), 0};
    int64_t s = 1;
    for (Dim d : type) g.sizes.push_back(d.size());
    for (int i = type.rank - 1; i >= 0; --i) {
      g.strides[static_cast<size_t>(i)] = s;
      s *= std::max<int64_t>(type.dims[i].size(), 1);
    }
    return g;
  }
  int AddBase(const HostTensor& base) {
    bases_.push_back(base);
    return static_cast<int>(bases_.size()) - 1;
  }
  graph::Operand MakeOperand(int value, const Geometry& g) {
    graph::Operand o;
    o.value = value;
    o.base = bases_[static_cast<size_t>(value)].type;
    o.dtype = g.dtype;
    o.rank = static_cast<uint8_t>(g.sizes.size());
    for (size_t i = 0; i < g.sizes.size(); ++i) {
      o.sizes[i] = g.sizes[i];
      o.strides[i] = g.strides[i];
    }
    graph::View view{g.dtype, o.rank, g.sizes.data(), g.strides.data(), g.offset};
    int64_t starts[kMaxRank] = {};
    graph::Analyse(view, o.base, &o.access, starts);
    int n = o.access.num_starts(view);
    if (n) o.first_start = static_cast<int>(raws_.size());
    for (int k = 0; k < n; ++k) raws_.push_back(static_cast<uint64_t>(starts[k]));
    return o;
  }
  RecordBuilder& Into(const graph::Operand& operand) {
    graph::Target t;
    t.operand = operand;
    std::vector<int64_t> sizes;
    for (Dim d : operand.type()) sizes.push_back(d.size());
    graph::View view{operand.dtype, operand.rank, sizes.data(), operand.strides, 0};
    bool at_start = operand.access.mode == graph::AccessMode::kWhole || operand.access.mode == graph::AccessMode::kReshape ||
                    operand.first_start < 0;
    t.overwrites = at_start && graph::CoversStorage(view, operand.base.bytes(), t.order);
    record_.targets.push_back(t);
    return *this;
  }
  RecordBuilder& Add(graph::Argument a) {
    record_.args.push_back(std::move(a));
    return *this;
  }
  RecordBuilder& AddInt(graph::ArgKind kind, int64_t v) {
    graph::Argument a;
    a.kind = kind;
    a.i = v;
    return Add(std::move(a));
  }
  RecordBuilder& AddRaw(graph::ArgKind kind, DType dtype, uint64_t bits) {
    graph::Argument a;
    a.kind = kind;
    a.dtype = dtype;
    a.raw = static_cast<int>(raws_.size());
    raws_.push_back(bits);
    return Add(std::move(a));
  }

  std::vector<uint32_t> PackHost(const Lowered& lowered, uint64_t seed, uint64_t offset) const {
    std::vector<uint32_t> words(static_cast<size_t>(lowered.host_words));
    for (const HostField& f : lowered.host_fields) {
      HostTensor value = HostTensor::Zeros(TensorType::Scalar(f.to));
      // A random operator's seed and first counter stand behind its own raw values.
      const auto at = static_cast<size_t>(f.raw);
      const uint64_t re = at < raws_.size() ? raws_[at] : at == raws_.size() ? seed : offset;
      double real, imag = 0;
      std::memcpy(&real, &re, 8);
      if (f.from == DType::kC128) std::memcpy(&imag, &raws_[at + 1], 8);
      if (f.from == DType::kI64 || f.from == DType::kU64)
        value.SetInt(0, static_cast<int64_t>(re));
      else
        value.Set(0, {real, imag});
      std::memcpy(&words[static_cast<size_t>(f.word)], value.bytes.data(), value.bytes.size());
    }
    return words;
  }

  Status RunInto(Outcome* out, const pjrt::EngineProfile& profile, uint64_t seed, uint64_t offset) const {
    pjrt::Client* client = TestClient();
    if (!client) return RuntimeError("no client");
    tpu::Result<Lowered> lowered = LowerGraph(graph(), profile);
    if (!lowered.ok()) return lowered.status();
    out->lowered = *lowered;
    auto program = client->Compile(out->lowered.text, client->DefaultCompileOptions());
    if (!program.ok()) return program.status();
    std::vector<pjrt::Buffer> buffers;
    auto upload = [&](const void* data, const TensorType& type) -> Status {
      auto buffer = client->BufferFromHost(data, type, 0, pjrt::HostBufferSemantics::kImmutableOnlyDuringCall);
      if (!buffer.ok()) return buffer.status();
      buffers.push_back(std::move(*buffer));
      return {};
    };
    for (int a : out->lowered.arguments) {
      const HostTensor& t = bases_[static_cast<size_t>(a)];
      TPU_RETURN_IF_ERROR(upload(t.bytes.data(), t.type));
    }
    std::vector<uint32_t> words = PackHost(out->lowered, seed, offset);
    if (!words.empty()) TPU_RETURN_IF_ERROR(upload(words.data(), TensorType(DType::kU32, {out->lowered.host_words})));
    std::vector<PJRT_Buffer*> args;
    for (const pjrt::Buffer& b : buffers) args.push_back(b.get());
    size_t n = out->lowered.outputs.size() + !out->lowered.traps.empty();
    std::vector<PJRT_Buffer*> made(n);
    TPU_RETURN_IF_ERROR(program->Execute(args.data(), args.size(), nullptr, 0, client->devices()[0].device, made.data()));
    for (size_t i = 0; i < n; ++i) {
      pjrt::Buffer buffer(client->api(), made[i]);
      bool trap = i == out->lowered.outputs.size();
      TensorType type =
          trap ? TensorType(DType::kI32, {static_cast<int64_t>(out->lowered.traps.size())}) : out->lowered.outputs[i].type;
      HostTensor t = HostTensor::Zeros(type);
      TPU_RETURN_IF_ERROR(buffer.CheckType(type));
      auto event = buffer.CopyToHost(t.bytes.data(), t.bytes.size());
      if (!event.ok()) return event.status();
      for (;;) {
        auto waited = event->WaitFor(std::chrono::seconds(1));
        if (!waited.ok()) return waited.status();
        if (*waited == pjrt::WaitOutcome::kReady) break;
      }
      if (trap) {
        out->traps.resize(out->lowered.traps.size());
        std::memcpy(out->traps.data(), t.bytes.data(), t.bytes.size());
      } else {
        out->results.push_back(Logical(t, out->lowered.outputs[i]));
      }
    }
    return {};
  }
  // Undoes the memory order of results without target.
  HostTensor Logical(const HostTensor& t, const Lowered::Output& output) const {
    auto k = static_cast<size_t>(output.result);
    if (k < record_.targets.size()) return t;
    const graph::RecordResult& r = record_.results[k];
    std::vector<int> order(r.rank);
    for (int i = 0; i < r.rank; ++i) order[static_cast<size_t>(i)] = i;
    int64_t expect = 1;
    bool row_major = true;
    for (int i = r.rank - 1; i >= 0; --i) {
      if (r.sizes[i] != 1 && r.strides[i] != expect) row_major = false;
      expect *= r.sizes[i];
    }
    if (row_major) return t;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return r.strides[a] > r.strides[b]; });
    return t.Permuted(r.type(), order);
  }

  graph::OpRecord record_;
  std::vector<HostTensor> bases_;
  std::vector<uint64_t> raws_;
  bool expect_error_ = false;
};

// Elementwise within `tolerance` relative plus absolute; NaN equals NaN.
inline void ExpectValues(const HostTensor& t, const std::vector<double>& expected, double tolerance = 0) {
  ASSERT_EQ(t.type.numel(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    double v = t.Get(static_cast<int64_t>(i)).real();
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(v) : v == expected[i]) << "element " << i << " is " << v;
    } else {
      EXPECT_LE(std::fabs(v - expected[i]), tolerance * (1 + std::fabs(expected[i])))
          << "element " << i << " is " << v << ", should be " << expected[i];
    }
  }
}

}  // namespace tpu::lower
