#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>

#include "fjord/common/hash.h"

namespace fjord {

/// The time of a write in microseconds since 1970 (UTC), assigned by the distributor. Timestamps are unique and
/// ascending within a bucket, so each also identifies its write. The newest timestamp of a document id wins. Zero means
/// "no entry".
struct Timestamp {
  std::uint64_t us = 0;

  friend constexpr auto operator<=>(Timestamp, Timestamp) = default;
};

inline std::ostream& operator<<(std::ostream& out, Timestamp timestamp) { return out << timestamp.us; }

}  // namespace fjord

template <>
struct std::hash<fjord::Timestamp> {
  std::size_t operator()(fjord::Timestamp timestamp) const noexcept { return fjord::mix64(timestamp.us, 1); }
};
