#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "fjord/common/status.h"

namespace fjord {

/// What is known of an operation's effect once it has ended.
enum class Outcome : std::uint8_t {
  Applied,     ///< Answered OK: stored, changed, removed or read.
  NotApplied,  ///< Certainly without effect; the status says why. Reads that fail are always this.
  InDoubt,     ///< A write was sent, and no answer settled whether it was applied.
};

/// "applied", "not_applied", "in_doubt".
std::string_view to_string(Outcome outcome);
inline std::ostream& operator<<(std::ostream& out, Outcome outcome) { return out << to_string(outcome); }

/// The end of one operation, retries included.
struct OperationOutcome {
  Status status;  ///< Of the last attempt. Get: NotFound if there is no such document.
  Outcome outcome = Outcome::NotApplied;
  std::uint64_t timestamp_us = 0;  ///< Of the version that was written or read.
  bool existed = false;            ///< Put, update, remove: a document of that id was there before.
  /// With TestAndSetFailed: the timestamp of the document that the condition was compared with; 0 if there is none.
  std::uint64_t version_us = 0;
  std::string token;               ///< With which it was sent; empty if without.
  std::string header;              ///< Get: wire form, for DocumentView.
  std::string body;                ///< Get.
  std::string json;                ///< Get with want_json: {"put": id, "fields": {...}}.
  std::uint32_t attempts = 0;      ///< How often it was sent; 0 if it never was.
  std::uint32_t busy_answers = 0;  ///< How many of them were refused with BUSY.

  bool is_ok() const { return status.is_ok(); }
};

}  // namespace fjord
