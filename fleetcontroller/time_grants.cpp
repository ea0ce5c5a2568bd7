#include "time_grants.h"

#include <algorithm>

namespace fjord::fleetcontroller {
namespace {

/// Least distance between two floors.
constexpr std::uint64_t kFloorStepUs = 1'000'000;
/// Distance of a floor from what was granted under earlier states. A distributor that has reached the granted time
/// advances by a microsecond for each write to a bucket, so this is also the number of writes that fit in between.
constexpr std::uint64_t kRoomUs = 100'000;

std::uint64_t micros(WallTime now) { return static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.us)); }

}  // namespace

void TimeGrants::begin(std::uint64_t limit_us) {
  limit_us_ = limit_us;
  granted_us_ = limit_us;
  frozen_ = true;
  pending_floor_us_.reset();
}

std::optional<std::uint64_t> TimeGrants::limit_to_store(WallTime now) const {
  const std::uint64_t now_us = micros(now);
  if (now_us + kStoredAheadUs / 2 <= limit_us_) return std::nullopt;
  return now_us + kStoredAheadUs;
}

void TimeGrants::stored(std::uint64_t limit_us) { limit_us_ = std::max(limit_us_, limit_us); }

std::uint64_t TimeGrants::grant(WallTime now) {
  if (!frozen_) granted_us_ = std::max(granted_us_, std::min(limit_us_, micros(now) + kAheadUs));
  return pending_floor_us_ ? std::min(granted_us_, std::max(*pending_floor_us_, kRoomUs) - kRoomUs) : granted_us_;
}

std::uint64_t TimeGrants::freeze(std::uint64_t before_us) {
  frozen_ = true;
  return std::max(granted_us_ + kRoomUs, before_us + kFloorStepUs);
}

void TimeGrants::follow(std::uint64_t active_floor_us, std::optional<std::uint64_t> pending_floor_us) {
  granted_us_ = std::max(granted_us_, active_floor_us);
  frozen_ = pending_floor_us.has_value();
  pending_floor_us_ = pending_floor_us;
}

}  // namespace fjord::fleetcontroller
