// Status and Result: how core code reports failure. No exceptions below the bindings.
#ifndef EDGEKIT_CORE_STATUS_H_
#define EDGEKIT_CORE_STATUS_H_

#include <optional>
#include <string>
#include <utility>

namespace edgekit {

// What kind of failure it is; the bindings map each to one exception class and the C ABI to one integer.
enum class StatusCode : int {
  kOk = 0,
  kInvalidProgram = 1,  // the file is damaged, hostile or of another format
  kInvalidInput = 2,    // the caller's tensor, name, shape or option is wrong
  kUnsupportedIsa = 3,  // the CPU lacks a feature that the program needs
  kOutOfMemory = 4,
  kIo = 5,
  kRuntime = 6,  // data-dependent failure inside an op, such as an index out of range
  kClosed = 7,   // the object was closed or the process forked
};

// A success, or a code with one line for the user.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status ok() { return {}; }
  bool is_ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// A value or the status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)
  bool is_ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace edgekit

#define EK_RETURN_IF_ERROR(expression)                                                    \
  do {                                                                                    \
    if (::edgekit::Status ek_status = (expression); !ek_status.is_ok()) return ek_status; \
  } while (false)

#endif  // EDGEKIT_CORE_STATUS_H_
