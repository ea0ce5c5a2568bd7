#pragma once

#include <cstdint>
#include <memory>
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
  // Permanent errors: a retry gives the same answer. No data was stored.
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
/// Returns the code of a name, as the inverse of to_string(); Unknown if there is no such name.
StatusCode status_code_from_string(std::string_view name);

/// Returns whether the operation was certainly not applied and a retry can succeed.
bool is_transient(StatusCode code);

/// What an error is about. A member is empty if it is not known or does not apply.
struct ErrorDetails {
  std::string node = {};     ///< Node that reported the error or did not answer: "storage.2".
  std::string limit = {};    ///< The limit that was exceeded, or the permitted values: "67108864", "1 to 256".
  std::string setting = {};  ///< Setting that is wrong or that sets the limit: "mapreduce.task_memory_bytes".
  /// Key of a write in doubt: a retry with this key applies the write at most once. Set by the client, never sent.
  std::string idempotency_key = {};

  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

/// Success, or an error: a code, a message that names the input and its position, and the known details as values. What
/// an error has beside its code is immutable and shared by copies, so success costs nothing, and copies little.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);
  /// `details` are ignored if `code` is Ok.
  Status(StatusCode code, std::string message, ErrorDetails details);

  static Status ok() { return {}; }

  bool is_ok() const { return code_ == StatusCode::Ok; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const;
  const ErrorDetails& details() const;
  const std::string& node() const { return details().node; }
  const std::string& limit() const { return details().limit; }
  const std::string& setting() const { return details().setting; }
  const std::string& idempotency_key() const { return details().idempotency_key; }

  /// Returns "NOT_FOUND: no such file"; "OK" for success.
  std::string to_string() const;
  /// Returns the same error with `context` and a colon before the message.
  Status with_context(std::string_view context) const;
  /// Returns the same error, with each detail that it lacks taken from `more`.
  Status with_details(ErrorDetails more) const;
  /// Returns the same error as an error of the node `name`: the name is put before the message, and becomes the node in
  /// the details if these do not name a node yet.
  Status from_node(std::string_view name) const { return with_context(name).with_details({.node = std::string(name)}); }

  friend bool operator==(const Status& a, const Status& b) {
    return a.code_ == b.code_ && a.message() == b.message() && a.details() == b.details();
  }

 private:
  struct About {
    std::string message;
    ErrorDetails details;
  };

  StatusCode code_ = StatusCode::Ok;
  std::shared_ptr<const About> about_;  ///< Null: no message and no details.
};

inline std::ostream& operator<<(std::ostream& out, const Status& status) { return out << status.to_string(); }

}  // namespace fjord
