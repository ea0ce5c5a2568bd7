#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fjord/cluster/cluster_view.h"
#include "fjord/sim/sim_cluster.h"
#include "fjord/sim/sim_transport.h"

namespace fjord::sim {

/// Checks I21, the causal order of writes and cluster states, on the messages between processes.
///
/// (a) A storage node takes no write with a timestamp above the floor of a state that it has not received. Nor does it
/// take a write of a state older than one in which it has answered already. (b) A distributor that has written to a
/// bucket, and then acts on the bucket under other rows of the table of overrides, has collected the reports on the
/// bucket again in between.
///
/// Threading: the scheduler's. Lifetime: the cluster outlives the checker.
class CausalOrderChecker {
 public:
  using SeeReply = NetworkObserver::SeeReply;

  void watch(SimCluster& cluster) { cluster_ = &cluster; }
  /// `is_active` is false for a pending state, which may never become active: then its floor means nothing.
  void see_state(std::uint64_t version, const std::string& state, const std::string& distribution, bool is_active);
  SeeReply see_request(const std::string& from, const std::string& to, const rpc::Request& request);
  /// Returns an empty string, or how the invariant was broken.
  const std::string& failure() const { return failure_; }
  std::uint64_t writes() const { return writes_; }
  /// Returns how often a distributor acted on a bucket under other rows than those of its last write there.
  std::uint64_t rows_acted_on() const { return rows_acted_on_; }

 private:
  /// A storage node in its current incarnation.
  struct Node {
    std::uint64_t incarnation = 0;
    std::uint64_t received = 0;  ///< Newest state that a poll brought.
    std::uint64_t answered = 0;  ///< Newest state under which the node has answered.
  };
  struct Distributor {
    std::map<BucketId, std::uint64_t> written;  ///< By bucket: newest state under which it was written.
    /// Reports of storage nodes, by state: the node, and the bucket that it was asked for; BucketId(): all.
    std::map<std::uint64_t, std::set<std::pair<std::uint16_t, BucketId>>> reports;
  };

  Node& node(const std::string& name);
  SeeReply see_writes(const std::string& to, const rpc::Apply& request);
  SeeReply see_question(const std::string& to, const rpc::GetBucketInfo& request);
  /// Checks the latest writes of nodes that had an earlier state.
  void check_floor(std::uint64_t version, std::uint64_t floor_us);
  void check_write(const std::string& to, const rpc::Apply& request, const rpc::StorageOperation& write,
                   std::uint64_t answered);
  /// Called before a storage node gets a message with which the distributor acts on the bucket.
  void check_act(std::uint16_t distributor, std::uint64_t version, BucketId bucket);
  bool has_collected(const Distributor& by, std::uint64_t written, std::uint64_t version, BucketId bucket) const;
  /// True if other rows put the bucket on other nodes.
  bool has_other_rows(std::uint64_t before, std::uint64_t now, BucketId bucket) const;
  void fail(std::string what);

  SimCluster* cluster_ = nullptr;
  struct Write {
    std::uint64_t timestamp_us = 0;
    std::string text;
  };
  std::map<std::uint64_t, std::uint64_t> floors_;  ///< By state that was active: its floor of timestamps.
  std::map<std::uint64_t, Write> latest_;          ///< The write with the latest timestamp, by state that its node had.
  std::map<std::uint64_t, ClusterView> states_;
  std::map<std::string, Node> nodes_;
  std::map<std::uint16_t, Distributor> distributors_;
  std::uint64_t writes_ = 0;
  std::uint64_t rows_acted_on_ = 0;
  std::string failure_;
};

}  // namespace fjord::sim
