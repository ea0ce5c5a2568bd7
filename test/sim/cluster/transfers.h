#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "fault.h"
#include "fjord/sim/sim_transport.h"

namespace fjord::sim {

/// Checks the theorems of [Tell 2016, 5] about data that moves while it is used, on the messages between distributors
/// and storage nodes. docs/simulation.md maps the partitions, sources and destinations of these theorems to Fjord's
/// buckets, members of a replica set and replicas that are catching up. A transfer begins when a node receives that its
/// replica of a bucket is catching up, and ends when it receives a replica set that contains it.
///
/// Theorem 5.6 is about clients; their workload checks it.
///
/// Threading: the scheduler's.
class TransferChecker {
 public:
  using SeeReply = NetworkObserver::SeeReply;

  explicit TransferChecker(Exposure& exposure) : exposure_(exposure) {}
  /// Lets the checker look into storage nodes from here on. With `damage` these may lose writes that they had taken.
  void watch(SimCluster& cluster, bool damage);

  SeeReply see_sets(const std::string& to, const rpc::SetReplicaSets& request);
  SeeReply see_apply(const std::string& to, const rpc::Apply& request);
  SeeReply see_merge(const std::string& to, const rpc::MergeBucket& request);
  SeeReply see_delete(const std::string& to, const rpc::DeleteBuckets& request);
  SeeReply see_execute(const rpc::Execute& request);

  /// True while some replica is catching up.
  bool is_transferring() const { return !transfers_.empty(); }
  /// Theorem 5.2, for a steady cluster: no replica is left that is catching up. Returns an empty string if so.
  std::string check_transfers_end();
  /// Returns an empty string, or the theorem that was broken.
  const std::string& failure() const { return failure_; }

 private:
  struct Version {
    std::uint64_t timestamp_us = 0;
    bool removed = false;
  };
  /// The replica sets and writes that a storage node has confirmed in its current incarnation.
  struct Node {
    std::uint64_t incarnation = 0;
    std::map<std::uint64_t, ReplicaSet> sets;  ///< By bucket: replica set; without nodes: catching up.
    std::map<GlobalId, Version> newest;        ///< Newest version of each document that the node has taken as a write.
  };
  /// The nodes that have taken a write, with the bucket, epoch and owner of that write.
  struct Taken {
    std::set<std::string> nodes;
    std::uint64_t bucket = 0;
    std::uint64_t epoch = 0;
    std::pair<std::uint64_t, std::uint16_t> owner;  ///< State version and distributor of the write.
  };
  using Owned = std::pair<std::uint64_t, std::pair<std::uint64_t, std::uint16_t>>;  ///< Bucket and its owner.

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
  std::set<std::pair<std::uint64_t, std::string>> transfers_;                      ///< Bucket, and the node that is
                                                                                   ///< catching up in it.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<std::string>> sets_;  ///< By bucket and epoch: nodes that
                                                                                   ///< got the set.
  std::map<Owned, std::set<std::string>> filling_;
  std::map<std::pair<GlobalId, std::uint64_t>, Taken> taken_;  ///< By document and timestamp: the write.
  std::string failure_;
};

}  // namespace fjord::sim
