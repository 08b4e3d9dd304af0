// SPDX-License-Identifier: Apache-2.0
// Errors inside the fake plugin: a PJRT code and a message. Code 0 is success.
#pragma once
#include <string>
#include <utility>

namespace fake_pjrt {

inline constexpr int kInvalidArgument = 3;
inline constexpr int kResourceExhausted = 8;
inline constexpr int kFailedPrecondition = 9;
inline constexpr int kUnimplemented = 12;

struct [[nodiscard]] Error {
  int code = 0;
  std::string message;

  bool ok() const { return code == 0; }
};

inline Error Invalid(std::string message) { return {kInvalidArgument, std::move(message)}; }

}  // namespace fake_pjrt
