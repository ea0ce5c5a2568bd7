#pragma once

#include <cstdint>
#include <optional>

#include "fjord/common/clock.h"

namespace fjord::fleetcontroller {

/// The highest timestamps that distributors may give. They make the timestamps of a later cluster state higher than
/// those of earlier states, whatever the clocks say and whichever nodes are cut off. A leader grants times slightly
/// ahead of its clock, and the granted time never falls. Each new state has a floor that is above any granted time
/// (docs/design/0005, "Timestamps"). A leader grants no time above a limit in the store; the next leader begins there.
///
/// All times are microseconds since 1970 by the leader's clock. Threading: confined to the controller.
class TimeGrants {
 public:
  /// Distance of granted times from the leader's clock; longer than distributors are without a poll.
  static constexpr std::uint64_t kAheadUs = 1'000'000;
  /// Distance of the stored limit from the leader's clock.
  static constexpr std::uint64_t kStoredAheadUs = 10'000'000;

  /// Begins a term. `limit_us`: the limit in the store, above which no earlier leader has granted times.
  void begin(std::uint64_t limit_us);
  /// Returns the limit to store if the stored one is too close.
  std::optional<std::uint64_t> limit_to_store(WallTime now) const;
  /// Notes that this limit is stored.
  void stored(std::uint64_t limit_us);
  /// Returns the time that may be granted to distributors.
  std::uint64_t grant(WallTime now);
  /// Returns the floor of the state after one with the floor `before_us`. The granted time does not rise until
  /// follow().
  std::uint64_t freeze(std::uint64_t before_us);
  /// Notes the floors of the stored states. While a state is pending the granted time does not rise, because timestamps
  /// under the active state must not exceed the pending floor. A leader that takes over a pending state begins at a
  /// limit above that floor; it grants less than the floor until the state is active or replaced.
  void follow(std::uint64_t active_floor_us, std::optional<std::uint64_t> pending_floor_us);

 private:
  std::uint64_t limit_us_ = 0;
  std::uint64_t granted_us_ = 0;
  bool frozen_ = false;
  std::optional<std::uint64_t> pending_floor_us_;
};

}  // namespace fjord::fleetcontroller
