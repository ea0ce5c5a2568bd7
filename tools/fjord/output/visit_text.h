#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/document/timestamp.h"
#include "fjord/library/visit.h"

namespace fjord::cli {

/// Parses the time of an option: a date of ISO 8601, with or without a time of the day and a zone (UTC if none is
/// given), "2026-11-21" or "2026-11-21T20:00:00+01:00"; an age "15m", "2h" or "3d"; seconds since 1970; or microseconds
/// since 1970 as "1763751600000000us". Errors: InvalidArgument, also for days that do not exist.
Result<Timestamp> parse_time(const std::string& text, std::int64_t now_us);
/// Parses "k/n" with 1 <= k <= n. Errors: InvalidArgument.
Result<VisitSlice> parse_slice(const std::string& text);

/// Sets `from`, `to` and `slice` of the options of a visit or an export from the arguments of the same names. Errors:
/// those of parse_time() and parse_slice().
template <typename Args, typename Options>
Status parse_part(const Args& args, Options& options) {
  const std::int64_t now_us = SystemClock().wall_now().us;
  if (!args.from.empty()) {
    FJORD_TRY_ASSIGN(options.from, parse_time(args.from, now_us));
  }
  if (!args.to.empty()) {
    FJORD_TRY_ASSIGN(options.to, parse_time(args.to, now_us));
    // 0 has no limit; nothing is as old as the first microsecond.
    options.to = std::max(options.to, Timestamp{1});
  }
  if (!args.slice.empty()) {
    FJORD_TRY_ASSIGN(options.slice, parse_slice(args.slice));
  }
  return Status::ok();
}

/// Returns lines for people that say which buckets were read or skipped, and why.
std::string explain_text(const VisitStatistics& visit, double seconds);
/// Returns the content of explain_text() as a JSON object.
std::string explain_json(const VisitStatistics& visit, double seconds);

}  // namespace fjord::cli
