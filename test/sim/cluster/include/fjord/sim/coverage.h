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
  Corruption,        ///< Bits flip in files, and files are cut off.
  StoreCut,          ///< A fleet controller, mostly the leader, does not reach the store of states.
  NodeAdd,           ///< A storage node or a distributor that nobody knew joins.
  NodeRemove,        ///< A storage node is retired, and removed when it is empty; or taken back.
  Maintenance,       ///< A storage node is announced to be away, is away and comes back.
  Capacity,          ///< A storage node gets another weight.
  Redundancy,        ///< More or fewer copies.
  Bits,              ///< More or fewer distribution bits.
  Limits,            ///< Buckets are to be split or joined; data is not to be moved for a while.
  MaintenanceLong,   ///< As Maintenance, for most of the run.
  ClusterDown,       ///< Storage nodes are away, and with so few the cluster is to be down.
  Retention,         ///< Removes and tokens are kept for some seconds only.
  FullNode,  ///< A storage node whose disk is as good as full, beside others that have space, for most of the run.
};
inline constexpr std::size_t kFaultKinds = 31;
/// I1 to I17, and the theorems 5.1 to 5.6 of seed 003.
inline constexpr unsigned kInvariants = 17 + 6;
/// The column of theorem 5.n.
constexpr unsigned theorem(unsigned n) { return 17 + n; }

std::string_view to_string(FaultKind kind);
/// Errors: InvalidArgument.
Result<FaultKind> fault_kind_from_string(std::string_view name);
std::set<FaultKind> all_fault_kinds();

/// What an operator does, and not something that goes wrong.
bool is_change_of_membership(FaultKind kind);

/// How often a fault was exercised while something happened that an invariant is about: a table of fault kinds and
/// invariants 1 to 17 and theorems.
class Coverage {
 public:
  void add(FaultKind kind, unsigned invariant) { ++cells_[static_cast<std::size_t>(kind)][invariant]; }
  void add(const Coverage& other);
  std::uint64_t of(FaultKind kind, unsigned invariant) const {
    return cells_[static_cast<std::size_t>(kind)][invariant];
  }
  /// For people, with columns.
  std::string to_table() const;
  /// "fault\tI1\t...\tT5.6", a line a kind.
  std::string to_tsv() const;

 private:
  std::string to_text(bool tabs) const;
  std::array<std::array<std::uint64_t, kInvariants + 1>, kFaultKinds> cells_{};
};

}  // namespace fjord::sim
