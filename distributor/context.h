#pragma once

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>

#include "bucket_database.h"
#include "fjord/common/runtime.h"
#include "fjord/distributor/distributor_node.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "storage_space.h"

namespace fjord::distributor {

/// State that the parts of a distributor share. Confined to its executor, except `options`, `clock` and `executor`.
struct Context {
  const DistributorOptions& options;
  Clock& clock;
  rpc::Transport& transport;
  MetricRegistry& metrics;
  Executor& executor;
  Random random;
  BucketDatabase buckets;
  /// Null before the first cluster state.
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot;
  /// Rises with every new cluster state. Answers to requests of an earlier generation are dropped.
  std::uint64_t generation = 0;
  /// True if the bucket database is complete.
  bool ready = false;
  /// Time since which the bucket database has not been complete.
  MonotonicTime collecting_since{};
  /// Up to this time, the fleet controller activates no state that this distributor has not acknowledged.
  MonotonicTime lease_until{};
  /// Highest timestamp that the fleet controller permits, see next_timestamp(). 0: none was granted.
  std::uint64_t time_ceiling_us = 0;
  /// How full the storage nodes are.
  StorageSpace space = {};

  /// Returns true if the answer of one member is enough. Returns false if another distributor may have taken over the
  /// bucket in a newer state: answers of all members are needed then (docs/design/0005, "Leases instead of trust").
  bool may_trust_one(BucketId bucket) const {
    if (snapshot->info().lease_us != 0 && clock.now() > lease_until) return false;
    return snapshot->pending() == nullptr || snapshot->pending()->owner(bucket) == options.index;
  }

  const rpc::Address& storage_address(std::uint16_t node) const { return snapshot->info().storage_addresses[node]; }
  /// Returns true if it is not known what the storage node held: it is not up, or it has lost its data.
  bool is_absent(std::uint16_t node) const {
    return !snapshot->storage_serves(node) || snapshot->state().has_lost_data(node);
  }
  /// Returns the number of configured storage nodes that are absent.
  std::size_t absent_nodes() const {
    std::size_t absent = 0;
    for (const DistributionGroup::Node& node : snapshot->distribution().flat_nodes()) {
      absent += is_absent(node.index) ? 1 : 0;
    }
    return absent;
  }
  /// Returns names and states of the nodes that absent_nodes() counts, for people.
  std::string absent_text() const {
    std::string text;
    for (const DistributionGroup::Node& node : snapshot->distribution().flat_nodes()) {
      if (!is_absent(node.index)) continue;
      const NodeId id = NodeId::storage(node.index);
      const bool is_lost = snapshot->state().has_lost_data(node.index);
      text += (text.empty() ? "" : ", ") + id.to_string() + " (" +
              (is_lost ? "came back without its data" : std::string(to_string(snapshot->state().node(id).state))) + ")";
    }
    return text;
  }
  /// Returns the error with which requests are refused before the first cluster state.
  Status no_state() const {
    return {StatusCode::NotReady, NodeId::distributor(options.index).to_string() + " has no cluster state yet"};
  }
  /// Returns the error with which requests of a client of another cluster are refused.
  Status other_cluster() const {
    return {StatusCode::WrongDistribution,
            NodeId::distributor(options.index).to_string() +
                " is of another cluster, which was made at the addresses of the client's"};
  }
  /// Returns the reason for refusing operations while the cluster is down: the limit that was not met.
  std::string closed_text() const {
    const std::string& why = snapshot->state().description();
    return why.empty() ? "the cluster is down" : "the cluster is down: " + why;
  }
  /// Returns the epoch of the replica set that follows a set with `epoch`.
  std::uint64_t next_epoch(std::uint64_t epoch) const {
    return std::max(ReplicaSet::make_epoch(snapshot->state_version(), kBirthStep + 1), epoch + 1);
  }
  /// Returns the epoch under which a bucket is made whose replicas, if any, have at most `epoch`: see is_birth().
  std::uint64_t birth_epoch(std::uint64_t epoch) const {
    return std::max(ReplicaSet::make_epoch(snapshot->state_version(), kBirthStep), epoch + 1);
  }
  /// Returns the fewest bits that a bucket may use: those of the state, or more if the configuration asks for more.
  unsigned bucket_bits_min() const {
    constexpr std::string_view kSetting = "cluster.distribution_bits=";
    unsigned bits = snapshot->distribution_bits();
    for (std::string_view setting : snapshot->info().config) {
      if (!setting.starts_with(kSetting)) continue;
      unsigned wanted = 0;
      std::from_chars(setting.data() + kSetting.size(), setting.data() + setting.size(), wanted);
      bits = std::max(bits, std::min(wanted, BucketId::kUsedBitsMax));
    }
    return bits;
  }
  /// Returns a timestamp for a write to a bucket whose last timestamp is `last_us`. It is greater than any timestamp
  /// assigned under an earlier state, including by nodes that are now unreachable (docs/design/0005, "Timestamps").
  std::uint64_t next_timestamp(std::uint64_t last_us) const {
    const auto wall_us = static_cast<std::uint64_t>(clock.wall_now().us);
    const std::uint64_t floor_us = snapshot->state().time_floor_us();
    // False with a fleet controller of an older version, which grants no timestamps.
    const bool is_granted = floor_us != 0 || time_ceiling_us != 0;
    return std::max({is_granted ? std::min(wall_us, time_ceiling_us) : wall_us, last_us + 1, floor_us + 1});
  }
  /// Runs `task` with the entry after `delay`, unless the entry has been reset by then.
  void later(const BucketEntry& entry, Duration delay, UniqueFunction<void(BucketEntry&)> task) {
    executor.post_after(delay, [this, ticket = entry.ticket(), task = std::move(task)] {
      if (BucketEntry* known = buckets.find(ticket)) task(*known);
    });
  }
  std::size_t nodes() const { return snapshot->distribution().flat_nodes().size(); }
  std::size_t replicas_at_birth() const {
    return fjord::replicas_at_birth(snapshot->state(), snapshot->distribution());
  }
  /// Returns false if each storage node has a replica of each bucket. All buckets are made ahead then.
  bool has_spare_nodes() const { return nodes() > snapshot->distribution().redundancy(); }
  /// Returns true if enough nodes are away that there may be a bucket which no node has reported, or would be if
  /// `more_absent` further nodes were away. It is a question about the parts of the bucket space that no known bucket
  /// covers: what is known is complete, however many nodes are away.
  bool unreported_buckets_may_exist(std::size_t more_absent = 0) const {
    // `assured` is 0 if the fleet controller has an older version.
    const std::size_t assured = snapshot->state().replicas_assured();
    return absent_nodes() + more_absent >=
           (assured == 0 ? replicas_at_birth() : std::min(replicas_at_birth(), assured));
  }
  /// Returns true if enough storage nodes are up to make a bucket with all its replicas.
  bool has_nodes_for_new(BucketId bucket) const {
    return snapshot->nodes_for_new(bucket).size() >= replicas_at_birth();
  }
};

}  // namespace fjord::distributor
