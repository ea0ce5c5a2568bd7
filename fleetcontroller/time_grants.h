#pragma once

#include <cstdint>
#include <optional>

#include "fjord/common/clock.h"

namespace fjord::fleetcontroller {

/// Up to which time distributors may give timestamps, so that those of a later cluster state are always the higher
/// ones, whatever the clocks say and whoever is cut off: a leader grants times a little ahead of its clock, and each
/// new state has a floor that is not below anything granted before (docs/design/0005, "Timestamps"). What is granted
/// never falls. A leader grants nothing above a limit that is in the store, where the next leader begins.
///
/// All times in microseconds since 1970, by the leader's clock. Threading: confined to the controller.
class TimeGrants {
 public:
  /// How far ahead of the clock: more than distributors go without a poll.
  static constexpr std::uint64_t kAheadUs = 1'000'000;
  /// How far ahead the limit is stored.
  static constexpr std::uint64_t kStoredAheadUs = 10'000'000;

  /// A term begins; `limit_us` is what is in the store.
  void begin(std::uint64_t limit_us);
  /// The limit that should be stored now, if it is another one than is there.
  std::optional<std::uint64_t> limit_to_store(WallTime now) const;
  void stored(std::uint64_t limit_us);
  /// What distributors may be told.
  std::uint64_t grant(WallTime now);
  /// The floor of the state after one that had `before_us`. Nothing more is granted until follow().
  std::uint64_t freeze(std::uint64_t before_us);
  /// These states are stored. While one is pending nothing more is granted: those under the active one must stay below.
  void follow(std::uint64_t active_floor_us, std::optional<std::uint64_t> pending_floor_us);

 private:
  std::uint64_t limit_us_ = 0;
  std::uint64_t granted_us_ = 0;
  bool frozen_ = false;
};

}  // namespace fjord::fleetcontroller
