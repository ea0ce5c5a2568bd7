#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "fjord/common/status.h"

namespace fjord {

/// What became of an operation that has ended.
enum class Outcome : std::uint8_t {
  Applied,     ///< The answer was OK: the document was stored, changed, removed or read.
  NotApplied,  ///< The operation certainly had no effect; the status says why. Failed reads always have this outcome.
  InDoubt,     ///< A write was sent, and no answer said whether it was applied.
};

/// Returns "applied", "not_applied" or "in_doubt".
std::string_view to_string(Outcome outcome);
inline std::ostream& operator<<(std::ostream& out, Outcome outcome) { return out << to_string(outcome); }

/// The result of one operation, retries included.
struct OperationOutcome {
  Status status;  ///< Status of the last attempt. Get: NotFound if there is no such document.
  Outcome outcome = Outcome::NotApplied;
  std::uint64_t timestamp_us = 0;  ///< Timestamp of the version that was written or read.
  bool existed = false;            ///< Put, update, remove: whether a document of that id existed before.
  /// With TestAndSetFailed: the timestamp of the document that the condition was compared with; 0 if there is none.
  std::uint64_t version_us = 0;
  std::string token;               ///< Idempotency key of the operation; empty if it had none.
  std::string header;              ///< Get: header of the document in wire form, for DocumentView.
  std::string body;                ///< Get: body of the document in wire form.
  std::string json;                ///< Get with want_json: {"put": id, "fields": {...}}.
  std::uint32_t attempts = 0;      ///< Number of attempts that were sent; 0 if none was.
  std::uint32_t busy_answers = 0;  ///< Number of attempts that were refused with BUSY.

  bool is_ok() const { return status.is_ok(); }
};

}  // namespace fjord
