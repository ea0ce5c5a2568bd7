#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace fjord {

/// Kinds of errors, as far as callers handle them differently. The numbers are part of the wire format and of the
/// command line's JSON: a number is never reused. Zero means "unknown", so that a missing code never reads as OK.
enum class StatusCode : std::int32_t {
  Unknown = 0,
  Ok = 1,
  // Transient: a retry can succeed, and the operation was certainly not applied.
  Busy = 10,
  WrongDistribution = 11,  ///< The receiver does not own the bucket; its answer carries a newer cluster state.
  Unavailable = 12,        ///< No in-sync replica of the bucket is up.
  NotReady = 13,           ///< The request was never sent, or the receiver does not serve yet.
  // Transient, but in doubt: the operation was possibly applied.
  Timeout = 20,
  // Permanent: a retry gives the same answer. No data was stored.
  InvalidId = 30,
  UnknownType = 31,
  InvalidField = 32,
  InvalidSelection = 33,
  TooLarge = 34,
  NoSpace = 35,
  Unauthorized = 36,
  InvalidArgument = 37,
  TestAndSetFailed = 38,
  // Facts about the requested object.
  NotFound = 50,
  AlreadyExists = 51,
  // Errors of the machine or the program.
  Corruption = 60,
  IoError = 61,
  Cancelled = 62,
  NotImplemented = 63,  ///< The receiver does not support this call.
};

/// Returns the code as users see it, for example "WRONG_DISTRIBUTION".
std::string_view to_string(StatusCode code);
/// The inverse of to_string(); Unknown if there is no such name.
StatusCode status_code_from_string(std::string_view name);

/// Returns whether the operation was certainly not applied and a retry can succeed.
bool is_transient(StatusCode code);

/// Success, or a code with a message that names the input and its position.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }

  bool is_ok() const { return code_ == StatusCode::Ok; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// Returns "NOT_FOUND: no such file"; "OK" for success.
  std::string to_string() const;
  /// Returns the same code with `context` and a colon before the message.
  Status with_context(std::string_view context) const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  StatusCode code_ = StatusCode::Ok;
  std::string message_;
};

inline std::ostream& operator<<(std::ostream& out, const Status& status) { return out << status.to_string(); }

}  // namespace fjord
