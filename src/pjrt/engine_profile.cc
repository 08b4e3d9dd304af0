// SPDX-License-Identifier: Apache-2.0
#include "pjrt/engine_profile.h"

#include <algorithm>
#include <string>

#include "pjrt/client.h"

namespace tpu::pjrt {
namespace {

// Numbers of extensions that only one kind of plugin has.
constexpr int kGpuCustomCall = 0, kStream = 3, kTriton = 7, kTpuTopology = 16, kTpuExecutable = 17;

// The CPU plugins that were measured, by ABI minor.
constexpr int kCpu81 = 81, kCpu106 = 106, kCpu115 = 115;
// From here on plugins know the client option "asynchronous", and refuse options that they do not know.
constexpr int kFirstWithAsynchronous = 112;

constexpr char kTrialProgram[] =
    "module @probe { func.func @main(%arg0: tensor<f32>) -> tensor<f32> { return %arg0 : tensor<f32> } }";
constexpr char kUnknownOption[] = "No such compile option";

EngineKind KindOf(const Plugin& plugin, std::string_view platform) {
  if (!platform.empty()) {
    if (platform == "cpu" || platform == "Host") return EngineKind::kCpu;
    return platform == "tpu" ? EngineKind::kTpu : EngineKind::kOther;
  }
  if (plugin.extension(kTpuTopology) || plugin.extension(kTpuExecutable)) return EngineKind::kTpu;
  if (plugin.extension(kGpuCustomCall) || plugin.extension(kStream) || plugin.extension(kTriton)) return EngineKind::kOther;
  return EngineKind::kCpu;
}

void FillCpu(int minor, EngineProfile* p) {
  p->tested = minor == kCpu81 || minor == kCpu106 || minor == kCpu115;
  p->compile_overrides.push_back({"xla_cpu_enable_fast_min_max", false});
  // Its products by XNNPACK race with each other where a program has several: gradients that are wrong now and then.
  if (minor == kCpu81) p->compile_overrides.push_back({"xla_cpu_use_xnnpack", false});
  p->host_addressable = true;
  p->asynchronous_false_helps = minor >= kFirstWithAsynchronous;
  if (p->asynchronous_false_helps) p->client_options.push_back({"asynchronous", false});
  p->no_donation_min_bytes = 4 << 10;
  p->no_donation_max_bytes = 1 << 20;
  p->atan_needs_barrier = minor != kCpu81 && minor != kCpu106;
  p->native_reduce_minmax_ok = false;  // 0.81: 20 to 100 times slower; 0.115: loses NaN
  p->native_reduce_minmax_fast = minor == kCpu115;
  if (minor == kCpu81 || minor == kCpu106) {
    p->sum_as_dot_width = 512;
    p->column_sum_slices = 8;
  }
  p->row_sum_as_dot = true;
  p->transposed_left_dot_is_slow = minor != kCpu81;
  p->barrier_between_passes = minor == kCpu115;
  p->integer_reduce_is_scalar = true;
  p->wide_gather_indices = true;
  p->sort_needs_nan_comparator = minor != kCpu115;
  p->convolution_features_last = true;
  p->pointwise_conv_as_dot = true;
  p->convolution_patch_terms = 32;
  p->convolution_split_groups = 32;
  p->weight_grad_images = 16;
  p->weight_grad_terms = 1 << 12;
  p->depthwise_conv_as_shifts = true;
  p->convolution_shift_terms = 48;
  p->ffi_ok = true;
  p->to_host_layout_ignored = minor <= kCpu81;
  p->probes = {"atan_vectorised", "reduce_max_nan", "sort_nan", "donation", "reload"};
}

void FillTpu(EngineProfile* p) {
  p->one_process = false;
  p->narrow_convolution = true;
  p->native_reduce_minmax_ok = true;
  p->atan_needs_barrier = false;
  p->probes = {"atan_vectorised", "reduce_max_nan", "sort_nan", "donation", "reload"};
}

// The option that an error message names in quotes, or "".
std::string QuotedName(const std::string& message) {
  size_t begin = message.find('\'');
  size_t end = begin == std::string::npos ? begin : message.find('\'', begin + 1);
  return end == std::string::npos ? "" : message.substr(begin + 1, end - begin - 1);
}

bool RemoveOption(std::vector<NamedOption>* options, const std::string& name) {
  auto it = std::find_if(options->begin(), options->end(), [&](const NamedOption& o) { return o.name == name; });
  if (it == options->end()) return false;
  options->erase(it);
  return true;
}

Status TrialCompile(const Client& client, const std::vector<NamedOption>& overrides) {
  CompileOptions options;
  options.overrides = overrides;
  return client.Compile(kTrialProgram, options).status();
}

}  // namespace

EngineProfile ProfileFor(const Plugin& plugin, std::string_view platform) {
  EngineProfile profile;
  const std::string version = "0." + std::to_string(plugin.minor_version());
  profile.kind = KindOf(plugin, platform);
  profile.compile_overrides.push_back({"xla_allow_excess_precision", false});
  if (profile.kind == EngineKind::kCpu) {
    profile.name = "cpu-" + version;
    FillCpu(plugin.minor_version(), &profile);
  } else if (profile.kind == EngineKind::kTpu) {
    profile.name = "tpu-" + version;
    FillTpu(&profile);
  }
  return profile;
}

Status ProbeOptions(Client& client, EngineProfile* profile) {
  std::vector<NamedOption>& options = profile->compile_overrides;
  Status status = TrialCompile(client, options);
  // Plugins look at the options before they compile, so a refused trial is cheap.
  while (!status.ok() && status.message().find(kUnknownOption) != std::string::npos &&
         RemoveOption(&options, QuotedName(status.message()))) {
    status = TrialCompile(client, options);
  }
  if (status.ok()) return {};
  if (Status bare = TrialCompile(client, {}); !bare.ok())
    return std::move(bare).WithContext("plugin " + client.plugin().path() + " cannot compile an empty program");
  // Other words for a refusal: each option alone.
  std::erase_if(options, [&](const NamedOption& option) { return !TrialCompile(client, {option}).ok(); });
  return {};
}

}  // namespace tpu::pjrt
