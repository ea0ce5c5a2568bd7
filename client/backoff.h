#pragma once

#include <algorithm>
#include <cstdint>

#include "fjord/client/client_options.h"
#include "fjord/common/random.h"

namespace fjord {

/// With less time than this left there is no further attempt: it would hardly be answered, and would turn an operation
/// that was certainly not applied into one in doubt.
inline constexpr Duration kRetryTimeMin = milliseconds(5);

/// How long to wait after the `failures`-th failure in a row (from 1): the upper half of a range that doubles each
/// time.
inline Duration backoff_delay(const ClientOptions& options, std::uint32_t failures, Random& random) {
  const std::int64_t most = options.backoff_max.count();
  std::int64_t range = std::min(options.backoff_min.count(), most);
  for (std::uint32_t i = 1; i < failures && range < most; ++i) range = std::min(range * 2, most);
  if (range <= 1) return Duration(range);
  const std::int64_t half = range / 2;
  return Duration(range - half + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(half) + 1)));
}

/// The same, and not before what a BUSY answer asked for: up to one and a half times as long, so that those who were
/// refused together do not come back together.
inline Duration backoff_delay(const ClientOptions& options, std::uint32_t failures, Duration hint, Random& random) {
  const Duration own = backoff_delay(options, failures, random);
  if (hint <= Duration(0)) return own;
  const auto half = static_cast<std::uint64_t>(hint.count() / 2);
  return std::max(own, hint + Duration(static_cast<std::int64_t>(random.below(half + 1))));
}

}  // namespace fjord
