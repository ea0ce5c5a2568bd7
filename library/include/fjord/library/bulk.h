#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"
#include "fjord/library/visit.h"

namespace fjord {

/// Progress of a bulk change.
struct BulkProgress {
  double fraction_done = -1;  ///< Fraction of the buckets read, 0 to 1; negative: not known yet.
  std::uint64_t written = 0;
};

struct BulkOptions {
  std::string type = {};                 ///< Type of the documents to change. Required unless all_types is set.
  bool all_types = false;                ///< Documents of all types but those of jobs; `type` is ignored.
  std::optional<VisitSlice> slice = {};  ///< Only this slice, if several runs share the work.
  bool dry_run = false;                  ///< Only count the matching documents.
  /// BulkSummary::cursor of an earlier run of the same change: this run handles the remaining documents and applies
  /// no write twice.
  std::string resume = {};
  std::size_t in_flight = 0;  ///< Writes in flight at once; 0: the library adapts it.
  Duration timeout{0};        ///< Timeout of one write; 0: the client's timeout.
  /// After this time the run begins no further bucket, but it ends at least one. BulkSummary::has_more says whether
  /// documents are left; the cursor continues. 0: no limit.
  Duration time_limit{0};
  /// A stop request ends the run soon, with the status Cancelled; the cursor continues it.
  std::stop_token stop = {};
  /// Called from time to time, on the calling thread.
  std::function<void(const BulkProgress&)> on_progress = {};
  /// Called before the first write and about once a second, on the calling thread, with the current value of
  /// BulkSummary::cursor. The run ends with the error if it returns one.
  std::function<Status(const std::string& cursor)> on_cursor = {};
  /// Called for each document that could not be written, on the client's thread.
  std::function<void(const std::string& id, const Status& error)> on_failure = {};
};

/// Result of a bulk change.
struct BulkSummary {
  Status status;          ///< OK: the run has handled every matching document, unless has_more is set.
  bool has_more = false;  ///< BulkOptions::time_limit has ended the run before its last bucket.
  std::uint64_t matched = 0;
  std::uint64_t applied = 0;
  std::uint64_t skipped = 0;  ///< Documents that no longer matched when the write arrived, or were removed.
  std::uint64_t in_doubt = 0;
  std::map<StatusCode, std::uint64_t> failed;
  double seconds = 0;
  std::string cursor;  ///< Position of the run, for BulkOptions::resume.

  std::uint64_t failed_total() const;
  explicit operator bool() const { return status.is_ok() && in_doubt == 0 && failed.empty(); }
};

}  // namespace fjord
