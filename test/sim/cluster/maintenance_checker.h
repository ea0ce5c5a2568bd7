#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fault.h"
#include "fjord/cluster/cluster_view.h"

namespace fjord::sim {

/// Nothing is copied for a node in maintenance: while nothing else has changed since the state before, no node that
/// holds nothing of a bucket gets a replica of it in the place of the node that is away.
///
/// It looks at what distributors tell storage nodes, in which cluster state. Only buckets of which the node that is
/// away was a member count: others have to be repaired, or are moved. Threading: the scheduler's.
class MaintenanceChecker {
 public:
  explicit MaintenanceChecker(Exposure& exposure) : exposure_(exposure) {}
  /// From here on it can look into storage nodes.
  void watch(SimCluster& cluster) { cluster_ = &cluster; }
  /// A state that is pending or active.
  void see_state(std::uint64_t version, const std::string& state, const std::string& distribution);
  void see_sets(const std::string& to, const rpc::SetReplicaSets& request);
  void see_delete(const std::string& to, const rpc::DeleteBuckets& request);
  /// Empty, or what was broken.
  const std::string& failure() const { return failure_; }

 private:
  /// The only difference between a state and the last one in which no node was in maintenance.
  struct Away {
    std::uint16_t node = 0;
    ClusterView places;  ///< As if the node were up.
  };
  std::optional<Away> only_away(std::uint64_t version) const;
  void check_filling(const std::string& to, std::uint64_t version, BucketId bucket);
  bool was_member(std::uint16_t node, BucketId bucket) const;
  bool holds_some(const std::string& name, BucketId bucket) const;

  Exposure& exposure_;
  SimCluster* cluster_ = nullptr;
  std::map<std::uint64_t, ClusterView> states_;
  std::map<std::uint16_t, std::map<std::uint64_t, ReplicaSet>> told_;  ///< The last set, by node and bucket.
  std::string failure_;
};

}  // namespace fjord::sim
