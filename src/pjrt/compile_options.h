// SPDX-License-Identifier: Apache-2.0
// CompileOptions and its protobuf form (xla CompileOptionsProto), written by hand so that protobuf is not needed.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tpu::pjrt {

using OptionValue = std::variant<std::string, bool, int64_t, double>;

struct NamedOption {
  std::string name;
  OptionValue value;
};

struct CompileOptions {
  // One-device programs: compiled once, run on any device. Requires: one replica, one partition, no assignment.
  bool portable = true;
  int num_replicas = 1;
  int num_partitions = 1;
  // Device ids, replica-major: id of (replica r, partition p) at [r * num_partitions + p]. Empty: the plugin's default.
  std::vector<int> device_assignment;
  bool use_spmd_partitioning = false;
  bool use_shardy_partitioner = false;
  // XLA DebugOptions by field name (env_option_overrides). An unknown name fails the compile: see ProbeOptions.
  std::vector<NamedOption> overrides;
  // -1 (least) to 1 (most); 0 is the plugin's default.
  float exec_time_optimization_effort = 0;
  float memory_fitting_effort = 0;

  // The bytes are a function of the fields alone, so they can be part of a cache key.
  std::string Serialize() const;
};

}  // namespace tpu::pjrt
