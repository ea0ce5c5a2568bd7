#pragma once

#include <algorithm>
#include <cstdint>

#include "fjord/client/client_options.h"
#include "fjord/common/random.h"

namespace fjord {

/// Minimum time that must be left for a further attempt. A shorter attempt would hardly be answered, and would turn an
/// operation that was certainly not applied into one in doubt.
inline constexpr Duration kRetryTimeMin = milliseconds(5);

/// Returns the pause after the `failures`-th consecutive failure (from 1): random in the upper half of a range that
/// doubles each time.
inline Duration backoff_delay(const ClientOptions& options, std::uint32_t failures, Random& random) {
  const std::int64_t most = options.backoff_max.count();
  std::int64_t range = std::min(options.backoff_min.count(), most);
  for (std::uint32_t i = 1; i < failures && range < most; ++i) range = std::min(range * 2, most);
  if (range <= 1) return Duration(range);
  const std::int64_t half = range / 2;
  return Duration(range - half + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(half) + 1)));
}

/// Like backoff_delay() without `hint`, but at least the pause `hint` that a BUSY answer asked for. The result is up to
/// 1.5 times as long, so that clients that were refused together do not return together.
inline Duration backoff_delay(const ClientOptions& options, std::uint32_t failures, Duration hint, Random& random) {
  const Duration own = backoff_delay(options, failures, random);
  if (hint <= Duration(0)) return own;
  const auto half = static_cast<std::uint64_t>(hint.count() / 2);
  return std::max(own, hint + Duration(static_cast<std::int64_t>(random.below(half + 1))));
}

}  // namespace fjord
