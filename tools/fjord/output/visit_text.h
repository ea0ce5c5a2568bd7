#pragma once

#include <cstdint>
#include <string>

#include "fjord/common/result.h"
#include "fjord/document/timestamp.h"
#include "fjord/library/visit.h"

namespace fjord::cli {

/// Parses the time of an option: "2026-11-21T19:00:00Z"; an age "15m", "2h" or "3d"; seconds since 1970; or
/// microseconds since 1970 as "1763751600000000us". Errors: InvalidArgument.
Result<Timestamp> parse_time(const std::string& text, std::int64_t now_us);
/// Parses "k/n" with 1 <= k <= n. Errors: InvalidArgument.
Result<VisitSlice> parse_slice(const std::string& text);

/// Returns lines for people that say which buckets were read or skipped, and why.
std::string explain_text(const VisitStatistics& visit, double seconds);
/// Returns the same as a JSON object.
std::string explain_json(const VisitStatistics& visit, double seconds);

}  // namespace fjord::cli
