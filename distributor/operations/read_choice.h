#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fjord/affinity/vote.h"
#include "fjord/cluster/cluster_state.h"
#include "fjord/common/clock.h"
#include "fjord/common/random.h"
#include "fjord/common/tunable.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::distributor {

/// Returns the read shares of a bucket with at least as many bits as the distribution. The span is valid as long as the
/// state.
std::span<const ReadShare> read_shares_of(BucketId bucket, const ClusterState& state);

/// Chooses one of the nodes (at least one) at random, with a probability proportional to its share. A node without a
/// share is chosen only if none of the nodes has a share; all nodes are then equally probable.
std::uint16_t choose_by_share(const std::vector<std::uint16_t>& nodes, std::span<const ReadShare> shares,
                              Random& random);

/// Chooses one of the replicas that may serve a read, by the setting `balancer.reads`. It never decides which may serve
/// it, so neither the setting nor any load changes an answer (I24). Read shares count in each case: what a node gets is
/// its read share times its share by load.
///
/// Confined to the distributor's executor.
class ReadChoice {
 public:
  enum class By : std::uint8_t {
    Random,
    LeastLoaded,  ///< At random, nodes with less load more often.
    Affinity      ///< Reads of one document go to one replica, while the loads stay as they are.
  };
  /// A node's share changes at most once in this time: answers report a load that is an average over a second.
  static constexpr Duration kStepPause = std::chrono::milliseconds(100);

  explicit ReadChoice(TunableRegistry& tunables) : by_(tunables.declare("balancer.reads")) {}

  /// Takes in the load that a storage node reports in an answer (ApplyReply::utilisation_permille).
  void on_answer(std::uint16_t node, std::uint32_t utilisation_permille, MonotonicTime now);
  /// Chooses one of the nodes (at least one) for a read of the document; `shares`: the read shares of its bucket.
  std::uint16_t choose(const std::vector<std::uint16_t>& nodes, const GlobalId& document,
                       std::span<const ReadShare> shares, Random& random) const;
  /// Takes in the nodes of a cluster state.
  void follow(const rpc::ClusterSnapshot& state);
  double share_by_load(std::uint16_t node) const { return by_load_.share(node); }

 private:
  const Tunable& by_;
  affinity::NodeShares by_load_;
  std::map<std::uint16_t, MonotonicTime> next_step_;
  std::uint64_t state_version_ = 0;
};

}  // namespace fjord::distributor
