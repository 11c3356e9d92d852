// Status and Result<T>: how the core reports failures that a caller can expect and act on.
//
// Bugs are not statuses: they are FLUX_CHECK (base/check.h). Nothing that came from a disk, a
// network or a person may end in a CHECK; it ends here, with a message that says what is wrong,
// where, and what to do. A code exists only if some caller acts on it.
// Threads: values, freely copied and moved. No exceptions.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "flux/base/check.h"

namespace flux {

enum class Code : unsigned char {
  kOk = 0,
  kInvalid,      // a person's input is wrong: print the message, exit 2
  kNotFound,     // a file or name is absent: a caller may create it or look elsewhere
  kIo,           // the operating system failed a read or write: a caller may retry or warn
  kCorrupt,      // bytes on disk or wire fail their checksum or format: look for an older good copy
  kUnavailable,  // a peer does not answer now: retry later
  kStale,        // the request belongs to an older incarnation, epoch or geometry: refresh, resend
  kCancelled,    // somebody asked us to stop
};

const char* code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }

  bool is_ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // The same failure with "context: " put before its message.
  Status with_context(std::string_view context) const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

template <typename... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
Status invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kInvalid, fmt::format(format, std::forward<Args>(args)...));
}

// "what: strerror(errno)": kNotFound for ENOENT, kInvalid when the path itself is the mistake (no
// permission, a file where a folder is needed), else kIo.
Status errno_status(std::string_view what, int error_number);

// Either a T or a Status that is not ok.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit on purpose
    FLUX_CHECK(!status_.is_ok(), "a Result without a value needs a failure");
  }

  bool is_ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    FLUX_CHECK(is_ok(), "value() of a failed Result: {}", status_.message());
    return *value_;
  }
  const T& value() const& {
    FLUX_CHECK(is_ok(), "value() of a failed Result: {}", status_.message());
    return *value_;
  }
  T&& value() && {
    FLUX_CHECK(is_ok(), "value() of a failed Result: {}", status_.message());
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

#define FLUX_RETURN_IF_ERROR(expr)                  \
  do {                                              \
    ::flux::Status flux_status_ = (expr);           \
    if (!flux_status_.is_ok()) return flux_status_; \
  } while (false)

#define FLUX_CONCAT_(a, b) a##b
#define FLUX_CONCAT(a, b) FLUX_CONCAT_(a, b)
// FLUX_ASSIGN_OR_RETURN(auto x, make_x());
#define FLUX_ASSIGN_OR_RETURN(lhs, expr) \
  FLUX_ASSIGN_OR_RETURN_(FLUX_CONCAT(flux_result_, __LINE__), lhs, expr)
#define FLUX_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                           \
  if (!tmp.is_ok()) return tmp.status();       \
  lhs = std::move(tmp).value()

}  // namespace flux
