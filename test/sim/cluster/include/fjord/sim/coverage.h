#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::sim {

/// The kinds of faults of scenario chaos.
enum class FaultKind : unsigned {
  StorageCrash,      ///< SIGKILL and restart of a storage node.
  DistributorCrash,  ///< SIGKILL and restart of a distributor.
  ControllerCrash,   ///< SIGKILL and restart of a fleet controller.
  PowerLoss,         ///< Everything that was not synced is lost.
  Wipe,              ///< A storage node comes back with an empty disk.
  Pause,             ///< SIGSTOP for 0.1 to 60 s.
  Drop,              ///< Messages are lost.
  Duplicate,         ///< Messages arrive twice.
  Delay,             ///< Messages take long and overtake each other.
  Partition,         ///< Two groups of processes do not reach each other.
  OneWay,            ///< One group of processes does not reach the other; the other direction works.
  Bridge,            ///< Two groups of processes reach each other only through some processes that both reach.
  Swizzle,           ///< Processes are cut off one by one, and come back in another order.
  CutTogether,       ///< A distributor and a storage node are cut off from everything but one client.
  ClockSkew,         ///< A wall clock is wrong by up to an hour for a while.
  ClockJump,         ///< A wall clock jumps and stays there.
  SlowDisk,          ///< A disk is a hundred times slower.
  DiskFull,          ///< A disk has hardly any space left for a while.
  Corruption,        ///< Bits flip in files, and files are truncated.
  StoreCut,          ///< A fleet controller, usually the leader, does not reach the store of cluster states.
  NodeAdd,           ///< A new storage node or distributor joins.
  NodeRemove,        ///< A storage node is retired and, once it is empty, removed; or it is taken back.
  Maintenance,       ///< A storage node is set to maintenance, goes down and comes back.
  Capacity,          ///< A storage node gets another weight.
  Redundancy,        ///< The redundancy is raised or lowered.
  Bits,              ///< The number of distribution bits is raised or lowered.
  Limits,            ///< The limits of splits and joins change, or maintenance is paused for a while.
  MaintenanceLong,   ///< As Maintenance, but for most of the run.
  ClusterDown,       ///< Enough storage nodes are down that the cluster state becomes down.
  Retention,         ///< Remove entries and idempotency keys are kept for a few seconds only.
  FullNode,          ///< For most of the run the disk of one storage node is nearly full; others have space.
  Balance,           ///< The balancer moves buckets by load, and an operator applies and takes back steps.
  DamageRestart,     ///< Drill: parts of a node's files are destroyed, repaired; nodes restart, and other copies die.
  Silence,           ///< Drill: nodes are silent for 0.1 to 5 s while another one is dead.
  LostFiles,         ///< Drill: files vanish under a running node, or it starts with an empty or another node's folder.
  GroupMaintenance,  ///< Drill: all nodes of a group are in maintenance and away.
  FullReturn,        ///< Drill: a node comes back from maintenance, and its disk is nearly full.
  ControlledStop,    ///< Drill: nodes are told to stop and are started again, one of them many times.
  ScrubStep,         ///< Drill: as DamageRestart, with a scrub, a rewrite or a checkpoint at each step of the repair.
  ManyBuckets,       ///< Drill: a node dies in a cluster of thousands of buckets, on disks that take their time.
  WrongClock,        ///< The wall clock of one storage node is wrong from before the start to the end of the run.
};
inline constexpr std::size_t kFaultKinds = 41;
/// Number of columns: invariants I1 to I17, theorems 5.1 to 5.6 of [Tell 2016, 5], and the claims of I25.
inline constexpr unsigned kInvariants = 17 + 6 + 8;
/// Returns the column of theorem 5.n of [Tell 2016, 5].
constexpr unsigned theorem(unsigned n) { return 17 + n; }
/// Returns the column of a claim of I25: 1 to 6 for the trials of ClaimTrial in their order, 7 for NOT_FOUND, 8
/// for outages.
constexpr unsigned claim(unsigned n) { return 17 + 6 + n; }

std::string_view to_string(FaultKind kind);
/// Errors: InvalidArgument if no fault has this name.
Result<FaultKind> fault_kind_from_string(std::string_view name);
std::set<FaultKind> all_fault_kinds();

/// True for changes that an operator makes, false for failures.
bool is_change_of_membership(FaultKind kind);

/// True for faults of several steps that wait for what the cluster says of itself (drill.h).
constexpr bool is_drill(FaultKind kind) { return kind > FaultKind::Balance && kind != FaultKind::WrongClock; }

/// False for kinds that are drawn only if --faults names them, because a known fault of Fjord makes their runs fail.
bool is_drawn_by_default(FaultKind kind);

/// A table of fault kinds against invariants 1 to 17 and theorems. A cell counts how often a fault was exercised while
/// an event happened that could break the invariant.
class Coverage {
 public:
  void add(FaultKind kind, unsigned invariant) { ++cells_[static_cast<std::size_t>(kind)][invariant]; }
  void add(const Coverage& other);
  std::uint64_t of(FaultKind kind, unsigned invariant) const {
    return cells_[static_cast<std::size_t>(kind)][invariant];
  }
  /// Returns the table in aligned columns, for reading.
  std::string to_table() const;
  /// Returns the table as TSV: the heading "fault\tI1\t...\tI25.8", then one line per kind.
  std::string to_tsv() const;

 private:
  std::string to_text(bool tabs) const;
  std::array<std::array<std::uint64_t, kInvariants + 1>, kFaultKinds> cells_{};
};

}  // namespace fjord::sim
