#pragma once

#include <cstdint>
#include <string>

#include "fjord/library/detail/admin_calls.h"

namespace fjord::cli {

/// Returns a time in UTC as "2026-11-21 12:34:56".
std::string time_text(std::int64_t unix_us);

}  // namespace fjord::cli
