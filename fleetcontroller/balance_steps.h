#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cluster_record.h"
#include "fjord/cluster/cluster_view.h"

/// Changes of the table of overrides, and the steps that the record keeps of them. Pure functions.
namespace fjord::fleetcontroller {

/// Replicas that lie elsewhere than the placement algorithm says, and replicas that serve more or fewer reads than
/// their equal part.
struct OverrideTable {
  std::vector<PlacementException> exceptions;
  std::vector<ReadShare> reads;

  /// Rows as they are counted against the limit: the read shares of a bucket are one.
  std::size_t rows() const;
  friend bool operator==(const OverrideTable&, const OverrideTable&) = default;
};

/// Returns the view with these rows in place of its own.
ClusterView with_exceptions(const ClusterView& places, std::vector<PlacementException> exceptions);

/// The table of a cluster state.
OverrideTable table_of(const ClusterState& state);
/// The table of overrides in the record.
OverrideTable table_of(const NodeTable& nodes);

/// Replaces the table by `table`, which is about buckets of `bits` bits, and adds `step` to the record with its id and
/// rows. Returns the id; 0 if the table stays as it is. The table and its step are in one record, so a cluster state
/// has all rows of a step or none. Steps about another number of bits are dropped.
std::uint64_t change_table(ClusterRecord& record, OverrideTable table, unsigned bits, BalanceStep step);

/// Returns the table before the step with that id: all later steps are taken back as well. Errors: NotFound if the step
/// is not kept.
Result<OverrideTable> table_before(const ClusterRecord& record, std::uint64_t id);

/// Returns the replicas that change their node, and then the reads that do, when `after` replaces the table of
/// `places`, the view of places with the table in force. `bucket_bytes` has the bytes of one replica of each bucket;
/// empty: not known.
std::vector<BalancedReplica> moves_between(const ClusterView& places, const OverrideTable& after,
                                           std::span<const std::uint64_t> bucket_bytes);

struct TableChange {
  OverrideTable table;
  std::vector<BalancedReplica> moves;  ///< The moves that `table` brings about.
  std::vector<std::string> left_out;   ///< A line for each of the other moves.
};

/// Returns the table with which replicas lie, and are read, as `moves` say. A move is left out if its source has no
/// such replica or fewer reads, if its target cannot take it, if two replicas would share more groups than
/// before, or if the table would have more than `rows_max` rows. A replica that moves keeps its reads.
TableChange with_moves(const ClusterView& places, std::span<const BalancedReplica> moves, std::size_t rows_max);

/// "bucket 1f from storage.4 to storage.7", or "20.0 % of the reads of bucket 1f from ...".
std::string text_of(const BalancedReplica& move);

}  // namespace fjord::fleetcontroller
