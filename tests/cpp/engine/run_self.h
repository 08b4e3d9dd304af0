// SPDX-License-Identifier: Apache-2.0
// Runs tests of this executable in a process of their own: what happens once a process, or ends it.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace tpu::engine {

struct SelfRun {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string output;
};

// `environment`: "NAME=value NAME=value". The tests named may be disabled ones.
inline SelfRun RunSelf(const std::string& environment, const std::string& filter) {
  // Leaks are looked for in the parent: these processes end in the middle of things, and fork.
  std::string command = "env ASAN_OPTIONS=detect_leaks=0 " + environment + " timeout 100 /proc/" + std::to_string(getpid()) +
                        "/exe --gtest_also_run_disabled_tests --gtest_filter='" + filter + "' 2>&1";
  SelfRun run;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return run;
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) run.output.append(buffer, n);
  int status = pclose(pipe);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

}  // namespace tpu::engine
