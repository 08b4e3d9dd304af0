// SPDX-License-Identifier: Apache-2.0
// The one list of settings. Each is read once from the environment (TORCH_TPU_<NAME>) and can be changed from Python
// (torch.tpu.settings). getenv elsewhere fails CI (tools/check_rooms.py).
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace tpu {

// INT(name, default, help) | TEXT(name, default, choices or "", help). TEXT settings without choices are free text.
#define TPU_SETTINGS(INT, TEXT)                                                                                            \
  TEXT(engine, "auto", "auto|tpu|cpu|off", "who answers to \"tpu\": libtpu when a TPU is on the bus, else the CPU engine") \
  TEXT(plugin_path, "", "", "path of a PJRT plugin to load, before any search")                                            \
  TEXT(cpu_plugin, "xla-cpu-pjrt", "xla-cpu-pjrt|fastatomstruct-xla-cpu|lammps-jax-pjrt-cpu",                              \
       "which installed CPU plugin is the CPU engine")                                                                     \
  INT(device_count, 1, "number of devices of the CPU engine: tpu:0 ... tpu:N-1")                                           \
  TEXT(eager_mode, "strict", "strict|fused|debug",                                                                         \
       "strict: run each operation at once; fused: run them together; debug: wait after each, errors appear at the call")  \
  INT(fused_records, 4096, "fused eager: the most operations that are recorded before they run")                           \
  TEXT(fallback, "warn", "warn|silent|forbid", "what happens to operators that run on the CPU")                            \
  INT(worker_spin_us, 50, "how long the idle worker spins before it sleeps, microseconds; 0 on one CPU")                   \
  INT(max_in_flight, 1024, "entries in the queue before the caller runs them itself")                                      \
  INT(max_in_flight_bytes, 1ll << 30, "bytes of unfinished results before the caller waits")                               \
  INT(max_executables, 4096, "loaded executables; the least recently used are dropped")                                    \
  INT(memory_limit, 0, "device memory in bytes for the CPU engine; 0: the machine's memory")                               \
  INT(keep_freed_memory, 1,                                                                                                \
      "CPU engine: memory that is freed stays with the process until empty_cache(), as malloc allows it")                  \
  INT(exit_timeout_ms, 5000, "how long the interpreter's exit waits for the queue")                                        \
  INT(explain, 0, "1: log every compile, fallback and host wait with its reason")                                          \
  TEXT(log_level, "warning", "error|warning|info|debug", "messages of the library, on stderr")

struct Settings {
#define TPU_INT(name, def, help) std::atomic<int64_t> name{def};
#define TPU_TEXT(name, def, choices, help) std::atomic<const std::string*> name{nullptr};
  TPU_SETTINGS(TPU_INT, TPU_TEXT)
#undef TPU_INT
#undef TPU_TEXT
};

// The process-wide settings, read from the environment at first use. An unusable value in the environment is reported
// once through the log and the default stands.
Settings& GetSettings();

struct SettingInfo {
  std::string name, value, default_value, choices, help;
  bool is_int;
};
std::vector<SettingInfo> ListSettings();
// Fails with ValueError for an unknown name or a value outside the choices. Old strings are kept alive: readers on other
// threads may still hold them.
Status SetSetting(const std::string& name, const std::string& value);

// The value of an environment variable that other software defines (XLA_FLAGS, TPU_LIBRARY_PATH, ...), or "".
std::string ForeignEnv(const char* name);
// Sets such a variable when it has no value yet. Requires: called before the plugin that reads it is loaded.
void SetForeignEnvDefault(const char* name, const char* value);

}  // namespace tpu
