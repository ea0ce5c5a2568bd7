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

/// Checks that a node in maintenance is not replaced (I12): as long as that node's absence is the only change since the
/// state before, no node without data of a bucket gets a replica of it in place of the absent node.
///
/// The checker sees what distributors send to storage nodes, and in which cluster state. It looks only at buckets whose
/// replica set contained the absent node; other buckets need repair or are moved anyway. Threading: the scheduler's.
class MaintenanceChecker {
 public:
  explicit MaintenanceChecker(Exposure& exposure) : exposure_(exposure) {}
  /// Lets the checker look into storage nodes from here on.
  void watch(SimCluster& cluster) { cluster_ = &cluster; }
  /// Records a state that is pending or active.
  void see_state(std::uint64_t version, const std::string& state, const std::string& distribution);
  void see_sets(const std::string& to, const rpc::SetReplicaSets& request);
  void see_delete(const std::string& to, const rpc::DeleteBuckets& request);
  /// Returns an empty string, or how I12 was broken.
  const std::string& failure() const { return failure_; }

 private:
  /// A state that differs from the last one without maintenance only in one node that is in maintenance.
  struct Away {
    std::uint16_t node = 0;
    ClusterView places;  ///< The cluster view as if the node in maintenance were up.
  };
  std::optional<Away> only_away(std::uint64_t version) const;
  void check_filling(const std::string& to, std::uint64_t version, BucketId bucket);
  bool was_member(std::uint16_t node, BucketId bucket) const;
  bool holds_some(const std::string& name, BucketId bucket) const;

  Exposure& exposure_;
  SimCluster* cluster_ = nullptr;
  std::map<std::uint64_t, ClusterView> states_;
  std::map<std::uint16_t, std::map<std::uint64_t, ReplicaSet>> told_;  ///< By node and bucket: last set sent.
  std::string failure_;
};

}  // namespace fjord::sim
