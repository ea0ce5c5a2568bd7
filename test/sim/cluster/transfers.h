#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "fault.h"
#include "fjord/sim/sim_transport.h"

namespace fjord::sim {

/// Theorems of seed 003, chapter 5, about data that moves while it is used, as properties of what distributors and
/// storage nodes say to each other. docs/testing.md says how the partitions, sources and destinations of those theorems
/// are Fjord's buckets, members of a replica set and replicas that are being filled. A transfer is: a node is told that
/// its replica of a bucket is being filled, until it is told of a replica set that it is a member of.
///
/// Theorem 5.6 is about clients and is looked at by their workload.
///
/// Threading: the scheduler's.
class TransferChecker {
 public:
  using SeeReply = NetworkObserver::SeeReply;

  explicit TransferChecker(Exposure& exposure) : exposure_(exposure) {}
  /// From here on it can look into storage nodes. With `damage` they may forget what they had taken.
  void watch(SimCluster& cluster, bool damage);

  SeeReply see_sets(const std::string& to, const rpc::SetReplicaSets& request);
  SeeReply see_apply(const std::string& to, const rpc::Apply& request);
  SeeReply see_merge(const std::string& to, const rpc::MergeBucket& request);
  SeeReply see_delete(const std::string& to, const rpc::DeleteBuckets& request);
  SeeReply see_execute(const rpc::Execute& request);

  /// Buckets of which a replica is being filled now.
  bool is_transferring() const { return !transfers_.empty(); }
  /// Theorem 5.2 when everything is steady: no replica is left that is being filled. Empty if so.
  std::string check_transfers_end();
  /// Empty, or what was broken.
  const std::string& failure() const { return failure_; }

 private:
  struct Version {
    std::uint64_t timestamp_us = 0;
    bool removed = false;
  };
  /// What a storage node has confirmed since its process started.
  struct Node {
    std::uint64_t life = 0;
    std::map<std::uint64_t, ReplicaSet> sets;  ///< By bucket; without nodes: being filled.
    std::map<GlobalId, Version> newest;        ///< That it has taken as a write.
  };
  /// Who has taken a write, and under what.
  struct Taken {
    std::set<std::string> nodes;
    std::uint64_t bucket = 0;
    std::uint64_t epoch = 0;
    std::pair<std::uint64_t, std::uint16_t> owner;  ///< State version, distributor.
  };
  using Owned = std::pair<std::uint64_t, std::pair<std::uint64_t, std::uint16_t>>;  ///< Bucket, and its owner.

  Node& node(const std::string& name);
  void take_set(const std::string& name, const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& told);
  void check_writes_cease(const std::string& name, const rpc::StorageOperation& operation, std::uint64_t confirmed);
  void check_read_where_complete(const std::string& name, const Node& node, const rpc::StorageOperation& operation);
  void check_write_is_everywhere(const rpc::Operation& operation, const rpc::OperationResult& result);
  void check_newer_stays(const std::string& name, BucketId bucket, std::uint64_t copied);
  void fail(std::string what);

  Exposure& exposure_;
  SimCluster* cluster_ = nullptr;
  bool damage_ = false;
  std::map<std::string, Node> nodes_;
  std::set<std::pair<std::uint64_t, std::string>> transfers_;                      ///< Bucket and node.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<std::string>> sets_;  ///< By bucket and epoch.
  std::map<Owned, std::set<std::string>> filling_;
  std::map<std::pair<GlobalId, std::uint64_t>, Taken> taken_;  ///< By document and timestamp.
  std::string failure_;
};

}  // namespace fjord::sim
