#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"

namespace fjord {

/// How far a bulk change is.
struct BulkProgress {
  double fraction_done = -1;  ///< Of reading; negative while it is not known.
  std::uint64_t written = 0;
};

struct BulkOptions {
  std::string type = {};  ///< Of the documents. Must be given.
  bool dry_run = false;   ///< Only count what matches.
  /// BulkSummary::cursor of an earlier run of the same change: this one goes on with what is left, and applies nothing
  /// twice.
  std::string resume = {};
  std::size_t in_flight = 0;  ///< Writes under way at once; 0: found by itself.
  Duration timeout{0};        ///< Of one write; 0: the client's.
  /// Called now and then on the calling thread.
  std::function<void(const BulkProgress&)> on_progress = {};
  /// Called about once a second on the calling thread with what BulkSummary::cursor would be now. An error ends the
  /// run with it.
  std::function<Status(const std::string& cursor)> on_cursor = {};
  /// Called for each document that could not be written, on the client's thread.
  std::function<void(const std::string& id, const Status& error)> on_failure = {};
};

/// What became of the documents that matched.
struct BulkSummary {
  Status status;  ///< OK: every document that matched was dealt with.
  std::uint64_t matched = 0;
  std::uint64_t applied = 0;
  std::uint64_t skipped = 0;  ///< Changed meanwhile so that the selection does not hold any more, or gone.
  std::uint64_t in_doubt = 0;
  std::map<StatusCode, std::uint64_t> failed;
  double seconds = 0;
  std::string cursor;  ///< What is done; for BulkOptions::resume.

  std::uint64_t failed_total() const;
  explicit operator bool() const { return status.is_ok() && in_doubt == 0 && failed.empty(); }
};

}  // namespace fjord
