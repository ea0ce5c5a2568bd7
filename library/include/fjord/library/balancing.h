#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"

/// Balancing by load: what the storage nodes of a cluster are asked to do, and which buckets to move.
/// docs/operating/balancing.md
namespace fjord {

class ClientCore;

/// The unit of all loads: a share of time, or a number of operations.
enum class LoadUnit : std::uint8_t {
  ProcessorShare,  ///< Time of execution in each second: 1 is one stripe that is never idle.
  OperationsPerSecond,
};

/// The move of one replica from node to node, or of a part of the reads of a bucket.
struct BucketMove {
  std::uint64_t bucket = 0;  ///< Number of the bucket: its distribution bits.
  std::string from;          ///< "storage.4"
  std::string to;
  std::uint64_t bytes = 0;
  double load = 0;  ///< Load that leaves `from`.
  std::string reason;
  double read_part = 0;  ///< Part of all reads of the bucket that goes to `to`, above 0 to 1; 0: the replica moves.
};

struct BalancePlan {
  std::uint64_t state_version = 0;  ///< The only cluster state in which the plan can be applied.
  std::string algorithm;
  std::vector<BucketMove> moves;
  std::uint64_t bytes = 0;
  Duration duration{0};         ///< Estimated time that the moves take.
  double imbalance_before = 0;  ///< Load of the hottest node over the mean of all nodes.
  double imbalance_after = 0;
  std::uint32_t rows = 0;             ///< Rows of the table of overrides after the plan.
  std::vector<std::string> notes;     ///< Moves that were left out, and why.
  std::vector<std::string> refusals;  ///< Why nothing can be moved now; empty: moves are possible.
  bool is_initial = false;            ///< Made by plan_initial().
};

struct NodeLoad {
  std::string node;
  double load = 0;
  double over_mean = 0;  ///< Load of the node over the mean of all, by capacity; 0: not known.
  std::uint64_t reads_per_s = 0;
  std::uint64_t writes_per_s = 0;
  std::uint64_t bytes = 0;
  std::string note;  ///< Why no replica may be moved to the node; empty: it may.
};

struct BucketLoadInfo {
  std::uint64_t bucket = 0;
  double load = 0;
  std::uint64_t reads_per_s = 0;
  std::uint64_t writes_per_s = 0;
  std::uint64_t bytes = 0;  ///< Bytes of one replica.
  std::vector<std::string> nodes;
  std::string why_not;  ///< Why the bucket is not about to move; empty: it is.
};

struct BalanceStatus {
  std::string mode;  ///< "off", "advise" or "on".
  std::string algorithm;
  LoadUnit unit = LoadUnit::ProcessorShare;
  double imbalance = 0;  ///< 0: not known.
  std::string doing;
  std::vector<std::string> waits_for;  ///< Why nothing is moved now.
  std::uint64_t state_version = 0;
  std::uint32_t distribution_bits = 0;
  std::uint32_t rows = 0;  ///< Rows of the table of overrides.
  std::uint32_t rows_max = 0;
  std::uint64_t round = 0;
  Duration round_time{0};
  Duration round_age{-1};  ///< Negative: there was no round.
  Duration moves_left{0};  ///< Estimate for the moves of the last step; 0: they are done.
  std::vector<NodeLoad> nodes;
  std::vector<BucketLoadInfo> buckets;  ///< Hottest first.
};

/// A change of the table of overrides.
struct BalanceStepInfo {
  std::uint64_t step = 0;
  std::string kind;  ///< "load", "initial" (of a sample), "bytes" (fjord node balance) or "revert".
  std::int64_t unix_us = 0;
  std::uint64_t state_version = 0;  ///< Cluster state for which the step was planned.
  std::vector<BucketMove> moves;
  std::uint64_t bytes = 0;
  std::uint32_t rows_removed = 0;
  std::uint32_t rows_added = 0;
  double imbalance_before = 0;  ///< Before the step; 0: not known.
  double imbalance_after = 0;   ///< Expected by the plan.
  std::string who;
  std::string why;
  std::uint64_t reverts = 0;  ///< The oldest step that this step takes back; 0: it takes none back.
};

/// The balancer of a cluster. Its settings (`balancer.*`) are live settings: Admin::set().
///
/// Threading: any thread; each member blocks until the cluster answers. Lifetime: the client must outlive it.
class Balancing {
 public:
  explicit Balancing(ClientCore& core) : core_(&core) {}

  /// Returns the loads of all nodes and of the hottest `buckets` buckets; 0: of all.
  Result<BalanceStatus> status(std::uint32_t buckets = 10);
  /// Plans a step by the loads of the last round, with the algorithm in force or another one. Errors: InvalidArgument
  /// for an unknown algorithm or mode `off`; Unavailable while loads are not known.
  Result<BalancePlan> plan(const std::string& algorithm = {});
  /// Plans where buckets go before documents are put, so that nothing has to move afterwards [KBD 2020, 6.3.12]. The
  /// bytes of the puts in `feed_file` (document/FEED.md; "-": standard input), a sample of the documents, are levelled
  /// in place of loads. Errors: as plan(); NotFound or IoError for the file; InvalidArgument that names the line of a
  /// record which cannot be read, or if the file has no put.
  Result<BalancePlan> plan_initial(const std::string& feed_file, const std::string& algorithm = {});
  /// Carries out a plan. Returns the reasons against it; empty: it is carried out. Errors: TestAndSetFailed if the
  /// cluster state is not the one of the plan.
  Result<std::vector<std::string>> apply(const BalancePlan& plan, const std::string& reason = {});
  /// Returns the steps that are kept, oldest first.
  Result<std::vector<BalanceStepInfo>> history();
  /// Makes the table what it was before `step`, and returns what moves. With `dry_run` it only says so. Errors:
  /// NotFound if the step is not kept; Unavailable while another change is on its way.
  Result<BalancePlan> revert(std::uint64_t step, bool dry_run, const std::string& reason = {});

 private:
  ClientCore* core_;
};

}  // namespace fjord
