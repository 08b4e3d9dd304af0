// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <cstdio>

#include "base/settings.h"

namespace tpu {

bool LogEnabled(LogLevel level) {
  const std::string& s = *GetSettings().log_level.load(std::memory_order_acquire);
  LogLevel limit = s == "error"   ? LogLevel::kError
                   : s == "info"  ? LogLevel::kInfo
                   : s == "debug" ? LogLevel::kDebug
                                  : LogLevel::kWarning;
  return level <= limit;
}

void Log(LogLevel level, const std::string& message) {
  if (LogEnabled(level)) WriteLogLine(message);
}

void WriteLogLine(const std::string& message) { std::fprintf(stderr, "torch_tpu: %s\n", message.c_str()); }

}  // namespace tpu
