#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord {

/// Reads a number of bytes with an optional unit: "64MiB", "1.5 GB", "800". Units: B; k, kB, M, MB, G, GB, T and TB are
/// powers of 1000; KiB, MiB, GiB and TiB are powers of 1024. Returns whole bytes, at most 2^62, rounded to the nearest.
/// Errors: InvalidArgument that names the text and shows an example.
Result<std::int64_t> parse_bytes(std::string_view text);

/// Returns bytes in the largest unit that is exact, as parse_bytes() reads it: "64MiB", "1500B".
std::string exact_bytes_text(std::int64_t bytes);
/// Returns bytes for display, with three digits: "1.5 GiB".
std::string bytes_text(double bytes);

}  // namespace fjord
