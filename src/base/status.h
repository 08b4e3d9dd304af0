// SPDX-License-Identifier: Apache-2.0
// Status and Result: how errors travel through base, pjrt, compile and engine. No exceptions below src/aten.
#pragma once
#include <optional>
#include <string>
#include <utility>

namespace tpu {

// The kind decides which Python exception the user sees (src/aten/errors.h maps it).
enum class ErrorKind : unsigned char {
  kOk,
  kRuntime,         // RuntimeError
  kIndex,           // IndexError
  kValue,           // ValueError
  kType,            // TypeError
  kNotImplemented,  // NotImplementedError
  kOutOfMemory,     // torch.OutOfMemoryError
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  bool ok() const { return kind_ == ErrorKind::kOk; }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }

  // Adds context in front of the message: "context: message".
  Status WithContext(const std::string& context) && {
    message_ = context + ": " + message_;
    return std::move(*this);
  }

 private:
  ErrorKind kind_ = ErrorKind::kOk;
  std::string message_;
};

inline Status RuntimeError(std::string message) { return {ErrorKind::kRuntime, std::move(message)}; }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  // Requires: ok().
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T& operator*() { return *value_; }
  T* operator->() { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

// TPU_RETURN_IF_ERROR(expr): leaves the enclosing function with the Status of `expr` when it is not ok.
#define TPU_RETURN_IF_ERROR(expr)                        \
  do {                                                   \
    if (::tpu::Status status_ = (expr); !status_.ok()) { \
      return status_;                                    \
    }                                                    \
  } while (0)

// Invariants that no user input can break: prints and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
#define TPU_CHECK(condition) \
  (__builtin_expect(static_cast<bool>(condition), 1) ? (void)0 : ::tpu::CheckFailed(__FILE__, __LINE__, #condition))

}  // namespace tpu
