#pragma once

#include <cstdint>
#include <string>

namespace fjord::cli {

/// Returns a time in UTC as "2026-11-21 12:34:56".
std::string time_text(std::int64_t unix_us);

}  // namespace fjord::cli
