#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::sim {

/// What can go wrong in scenario chaos.
enum class FaultKind : unsigned {
  StorageCrash,      ///< SIGKILL and restart.
  DistributorCrash,  ///< The same.
  ControllerCrash,   ///< The same.
  PowerLoss,         ///< What was not synced is gone.
  Wipe,              ///< A storage node comes back with an empty disk.
  Pause,             ///< SIGSTOP for 0.1 to 60 s.
  Drop,              ///< Messages are lost.
  Duplicate,         ///< Messages arrive twice.
  Delay,             ///< Messages take long and overtake each other.
  Partition,         ///< Two sides that do not reach each other.
  OneWay,            ///< One side does not reach the other.
  Bridge,            ///< Two sides that reach only some processes in common.
  Swizzle,           ///< Processes are cut off one by one, and come back in another order.
  CutTogether,       ///< A distributor and a storage node are cut off from everything but one client.
  ClockSkew,         ///< A wall clock is wrong by up to an hour for a while.
  ClockJump,         ///< A wall clock jumps and stays there.
  SlowDisk,          ///< A hundred times slower.
  DiskFull,          ///< Hardly any space is left for a while.
  Corruption,        ///< Bits flip in files.
};
inline constexpr std::size_t kFaultKinds = 19;
inline constexpr unsigned kInvariants = 17;

std::string_view to_string(FaultKind kind);
/// Errors: InvalidArgument.
Result<FaultKind> fault_kind_from_string(std::string_view name);
std::set<FaultKind> all_fault_kinds();

/// How often a fault was exercised while something happened that an invariant is about: a table of fault kinds and
/// invariants 1 to 17.
class Coverage {
 public:
  void add(FaultKind kind, unsigned invariant) { ++cells_[static_cast<std::size_t>(kind)][invariant]; }
  void add(const Coverage& other);
  std::uint64_t of(FaultKind kind, unsigned invariant) const {
    return cells_[static_cast<std::size_t>(kind)][invariant];
  }
  /// For people, with columns.
  std::string to_table() const;
  /// "fault\tI1\t...", a line a kind.
  std::string to_tsv() const;

 private:
  std::string to_text(bool tabs) const;
  std::array<std::array<std::uint64_t, kInvariants + 1>, kFaultKinds> cells_{};
};

}  // namespace fjord::sim
