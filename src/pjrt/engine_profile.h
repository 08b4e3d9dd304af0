// SPDX-License-Identifier: Apache-2.0
// EngineProfile: what a plugin needs or gets wrong, as data. Lowerings and the engine ask it, never the plugin's
// version.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pjrt/compile_options.h"
#include "pjrt/plugin.h"

namespace tpu::pjrt {

class Client;

enum class EngineKind { kCpu, kTpu, kOther };

// The defaults are the careful choice for a plugin that nobody has tried.
struct EngineProfile {
  std::string name = "generic";  // "cpu-0.81", "tpu-0.112", "generic": part of the numerics word of keys
  EngineKind kind = EngineKind::kOther;
  bool tested = false;  // measured facts stand behind the fields

  std::vector<NamedOption> client_options;     // dropped together when the plugin refuses them
  std::vector<NamedOption> compile_overrides;  // see CompileOptions::overrides; trimmed by ProbeOptions

  bool host_addressable = false;         // Buffer::HostPointer may be read
  bool one_process = true;               // no collectives across processes: Gloo carries them
  bool asynchronous_false_helps = false;  // programs run on the launching thread; the worker is the asynchrony
  bool synchronous = false;               // the client was made so: results are ready when Execute returns
  // Donated updates of sizes in [min, max) cost more than copying ones: the worker vetoes them.
  size_t no_donation_min_bytes = 0;
  size_t no_donation_max_bytes = 0;

  bool atan_needs_barrier = true;         // emit atan2(x, optimization_barrier(1))
  bool native_reduce_minmax_fast = false;  // as fast as it gets; where NaN need not be carried it may be used
  bool native_reduce_minmax_ok = false;   // else the body of a max/min reduction is a select that carries NaN
  // Sums of rows are products with vectors of at most this many ones: those are vectorised. 0: plain reductions are as fast.
  int64_t sum_as_dot_width = 0;
  // Sums over leading dimensions add up so many slices first. 0: plain reductions are as fast.
  int64_t column_sum_slices = 0;
  bool row_sum_as_dot = false;             // sums of rows times a vector
  bool transposed_left_dot_is_slow = false;  // products that sum over the rows of both sides
  bool barrier_between_passes = false;     // a row kernel would otherwise compute its intermediate again in each pass
  bool integer_reduce_is_scalar = false;   // to one number: one element at a time, so slices are combined first
  bool wide_gather_indices = false;        // 64-bit indices cost nothing, narrowing them does
  bool sort_needs_nan_comparator = true;  // else a plain LT puts NaN last
  // Convolutions are computed with features last and kernels as [taps, in, out]; any other order is transposed slowly.
  bool convolution_features_last = false;
  bool pointwise_conv_as_dot = false;      // 1x1 convolutions are slower than products
  // Sums of at most this many terms an output are faster as products with copied windows.
  int64_t convolution_patch_terms = 0;
  int64_t convolution_split_groups = 0;    // up to this many groups, one convolution each is faster than one of all
  // Gradients of convolution weights are slow over many images and terms: the sum is cut into parts. 0: it is not.
  int64_t weight_grad_images = 0;
  int64_t weight_grad_terms = 0;
  bool narrow_convolution = false;         // float16 and bfloat16 are multiplied as they are
  bool depthwise_conv_as_shifts = false;  // depthwise and grouped-weight convolutions are far slower than their expansion
  int64_t convolution_shift_terms = 0;    // so also grouped ones with at most this many multiplications an output
  bool ffi_ok = false;                    // FFI handlers on platform "Host" work
  int ffi_api_minor = 1;                  // the FFI API minor to declare in handlers
  bool to_host_layout_ignored = false;    // ToHostBuffer is always row-major

  // Checks that `doctor` runs on this plugin, by name (pjrt/probes.h).
  std::vector<std::string> probes;

  bool DonationHelps(size_t bytes) const { return bytes < no_donation_min_bytes || bytes >= no_donation_max_bytes; }
};

// `platform` is the client's platform name ("cpu", "tpu"), or "" while there is no client: then it is guessed from the
// plugin's extensions. An untried version of a known plugin gets every cure.
EngineProfile ProfileFor(const Plugin& plugin, std::string_view platform);

// Removes from `profile->compile_overrides` what the plugin does not know, by compiling a program that does nothing:
// one compile (6 ms; 10 ms when it is the process's first) when all are known, 2 ms more for each that is not. Needed
// only when the profile is not `tested`. Fails when even that program does not compile.
Status ProbeOptions(Client& client, EngineProfile* profile);

}  // namespace tpu::pjrt
