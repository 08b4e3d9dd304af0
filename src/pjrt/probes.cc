// SPDX-License-Identifier: Apache-2.0
#include "pjrt/probes.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

namespace tpu::pjrt {
namespace {

using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A multiple of the vector width: odd sizes run scalar loops, where the defects do not show.
constexpr int kN = 4096;

constexpr char kAtan[] = R"(module @probe { func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = chlo.atan %x : tensor<4096xf32> -> tensor<4096xf32>
  return %0 : tensor<4096xf32> } })";

constexpr char kReduceMax[] = R"(module @probe { func.func @main(%x: tensor<4096xf32>) -> tensor<4xf32> {
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %r = stablehlo.reshape %x : (tensor<4096xf32>) -> tensor<4x1024xf32>
  %0 = stablehlo.reduce(%r init: %m) applies stablehlo.maximum across dimensions = [1]
      : (tensor<4x1024xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32> } })";

constexpr char kSort[] = R"(module @probe { func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32> } })";

constexpr char kDouble[] = R"(module @probe { func.func @main(%x: tensor<4096xf32> {tf.aliasing_output = 0 : i32})
    -> tensor<4096xf32> {
  %0 = stablehlo.add %x, %x : tensor<4096xf32>
  return %0 : tensor<4096xf32> } })";

Result<Floats> Read(const Buffer& buffer, size_t count) {
  Floats out(count);
  Result<Event> copied = buffer.CopyToHost(out.data(), count * sizeof(float));
  if (!copied.ok()) return std::move(copied).status();
  for (;;) {
    Result<WaitOutcome> waited = copied->WaitFor(std::chrono::seconds(1));
    if (!waited.ok()) return std::move(waited).status();
    if (*waited == WaitOutcome::kReady) return out;
  }
}

Result<Buffer> Upload(const Client& client, const Floats& input) {
  return client.BufferFromHost(input.data(), TensorType(DType::kF32, {kN}), 0, HostBufferSemantics::kImmutableOnlyDuringCall);
}

Result<Floats> Launch(const Client& client, const LoadedExecutable& program, const Buffer& x, bool veto) {
  PJRT_Buffer* arg = x.get();
  PJRT_Buffer* out = nullptr;
  const int64_t first = 0;
  TPU_RETURN_IF_ERROR(program.Execute(&arg, 1, &first, veto ? 1 : 0, client.devices()[0].device, &out));
  return Read(Buffer(client.api(), out), static_cast<size_t>(program.output_types()[0].numel()));
}

Result<Floats> CompileAndRun(const Client& client, const char* text, const Floats& input) {
  Result<LoadedExecutable> program = client.Compile(text, client.DefaultCompileOptions());
  if (!program.ok()) return std::move(program).status();
  Result<Buffer> x = Upload(client, input);
  if (!x.ok()) return std::move(x).status();
  return Launch(client, *program, *x, false);
}

Floats Ramp() {
  Floats x(kN);
  for (int i = 0; i < kN; ++i) x[i] = (i - kN / 2) * 0.01f;
  return x;
}

Result<ProbeOutcome> ProbeAtan(const Client& client) {
  const Floats x = Ramp();
  Result<Floats> y = CompileAndRun(client, kAtan, x);
  if (!y.ok()) return std::move(y).status();
  int wrong = 0;
  for (int i = 0; i < kN; ++i) wrong += !(std::abs((*y)[i] - std::atan(x[i])) < 1e-4f);
  return ProbeOutcome{wrong > 0, client.profile().atan_needs_barrier,
                      "chlo.atan: " + std::to_string(wrong) + " of 4096 values wrong"};
}

Result<ProbeOutcome> ProbeReduceMax(const Client& client) {
  Floats x = Ramp();
  for (int row = 0; row < 4; ++row) x[row * 1024 + 37 * row] = kNan;
  Result<Floats> y = CompileAndRun(client, kReduceMax, x);
  if (!y.ok()) return std::move(y).status();
  int lost = 0;
  for (float max : *y) lost += !std::isnan(max);
  return ProbeOutcome{lost > 0, !client.profile().native_reduce_minmax_ok,
                      "reduce by maximum: NaN lost in " + std::to_string(lost) + " of 4 rows"};
}

Result<ProbeOutcome> ProbeSort(const Client& client) {
  Floats x(kN);
  for (int i = 0; i < kN; ++i) x[i] = i % 97 == 0 ? kNan : static_cast<float>((i * 1103) % kN);
  Result<Floats> y = CompileAndRun(client, kSort, x);
  if (!y.ok()) return std::move(y).status();
  int wrong = 0;
  for (int i = 1; i < kN; ++i) wrong += std::isnan((*y)[i - 1]) ? !std::isnan((*y)[i]) : (*y)[i - 1] > (*y)[i];
  return ProbeOutcome{wrong > 0, client.profile().sort_needs_nan_comparator,
                      "sort by LT with NaN: " + std::to_string(wrong) + " neighbours out of order"};
}

bool IsDouble(const Floats& y, const Floats& x) {
  for (int i = 0; i < kN; ++i) {
    if (y[i] != 2 * x[i]) return false;
  }
  return true;
}

Result<ProbeOutcome> ProbeDonation(const Client& client) {
  Result<LoadedExecutable> program = client.Compile(kDouble, client.DefaultCompileOptions());
  if (!program.ok()) return std::move(program).status();
  const Floats x = Ramp();
  Result<Buffer> buffer = Upload(client, x);
  if (!buffer.ok()) return std::move(buffer).status();
  Result<Floats> kept = Launch(client, *program, *buffer, true);
  if (!kept.ok()) return std::move(kept).status();
  Result<Floats> after = Read(*buffer, kN);
  if (!after.ok()) return std::move(after).status();
  Result<Floats> donated = Launch(client, *program, *buffer, false);
  if (!donated.ok()) return std::move(donated).status();
  const bool right = IsDouble(*kept, x) && *after == x && IsDouble(*donated, x) && buffer->IsDeleted();
  return ProbeOutcome{!right, false, right ? "donation and its veto are honoured" : "donation or its veto gives wrong values"};
}

Result<ProbeOutcome> ProbeReload(const Client& client) {
  Result<LoadedExecutable> program = client.Compile(kDouble, client.DefaultCompileOptions());
  if (!program.ok()) return std::move(program).status();
  Result<std::string> bytes = program->Serialize();
  if (!bytes.ok()) return std::move(bytes).status();
  Result<LoadedExecutable> loaded = client.Load(*bytes);
  if (!loaded.ok()) return std::move(loaded).status();
  const Floats x = Ramp();
  Result<Buffer> buffer = Upload(client, x);
  if (!buffer.ok()) return std::move(buffer).status();
  Result<Floats> y = Launch(client, *loaded, *buffer, false);
  if (!y.ok()) return std::move(y).status();
  const bool right = IsDouble(*y, x);
  return ProbeOutcome{!right, false,
                      right ? "a reloaded program gives the same values" : "a reloaded program gives wrong values"};
}

struct Probe {
  const char* name;
  Result<ProbeOutcome> (*run)(const Client&);
};
constexpr Probe kProbes[] = {{"atan_vectorised", ProbeAtan},
                             {"reduce_max_nan", ProbeReduceMax},
                             {"sort_nan", ProbeSort},
                             {"donation", ProbeDonation},
                             {"reload", ProbeReload}};

}  // namespace

Result<ProbeOutcome> RunProbe(const Client& client, std::string_view name) {
  for (const Probe& probe : kProbes) {
    if (name == probe.name) return probe.run(client);
  }
  return Status(ErrorKind::kValue, "no probe is named \"" + std::string(name) + "\"");
}

}  // namespace tpu::pjrt
