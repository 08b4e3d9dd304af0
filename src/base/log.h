// SPDX-License-Identifier: Apache-2.0
// Messages of the library, on stderr, one line each, prefixed "torch_tpu: ".
#pragma once
#include <string>

namespace tpu {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// True when the setting log_level admits `level`. Ask before building a costly message.
bool LogEnabled(LogLevel level);
void Log(LogLevel level, const std::string& message);
// Writes at once, whatever the level.
void WriteLogLine(const std::string& message);

}  // namespace tpu
