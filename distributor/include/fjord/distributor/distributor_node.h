#pragma once

#include <memory>
#include <set>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::distributor {

/// Faults put in on purpose, to see that the simulation notices them. All off outside of it.
struct Sabotage {
  bool skip_replica = false;          ///< Writes go to one member of the replica set only.
  bool read_out_of_sync = false;      ///< Reads also ask replicas that are still being filled.
  bool forget_tokens = false;         ///< Operations are not recognised by their tokens.
  bool guard_reads_anywhere = false;  ///< Conditions are compared and updates applied on any replica, in sync or not.
  bool skip_repair = false;           ///< Damaged replicas are merged and never said to be whole again.
  bool ignore_lease = false;          ///< Reads ask one member although the fleet controller has not been heard.
  bool repair_unmerged = false;       ///< They are said to be whole again without having been merged.
  bool serve_old_requests = false;    ///< Writes are done that were sent before the distributor was called down.
};

struct DistributorOptions {
  std::uint16_t index = 0;
  rpc::Address fleet_controller;  ///< The only one; used if the next is empty.
  /// All of them; who leads is found out by asking.
  std::vector<rpc::Address> fleet_controllers;
  /// How long a client's batch may take if it does not say.
  Duration default_timeout = seconds(30);
  /// How long a storage node may take to answer a batch before it is sent again.
  Duration storage_timeout = seconds(10);
  /// How long a merge command may take; a repetition goes on where the last one ended.
  Duration merge_timeout = seconds(60);
  /// Pause before something is sent again.
  Duration retry_delay = milliseconds(25);
  /// How often storage nodes are asked for buckets in which damage was met.
  Duration damage_poll_interval = seconds(1);
  /// Merges at once, over all buckets.
  unsigned merges_max = 8;
  /// A bucket above one of these is split in two; as tunables they may change later.
  std::int64_t bucket_entries_max = 200'000;
  std::int64_t bucket_bytes_max = std::int64_t{64} << 20;
  /// How often siblings are looked through for what is small enough to be joined.
  Duration join_interval = seconds(30);
  /// How often each bucket is searched for garbage (DocumentType::keep_while); as a tunable it may change later.
  Duration gc_interval = seconds(3600);
  /// Operations under way and their bytes; more are refused with BUSY. The lower a priority, the smaller the part of
  /// them that it may use (docs/operating/overload.md). As tunables they may change later.
  std::size_t pending_operations_max = 16'384;
  std::size_t pending_bytes_max = std::size_t{256} << 20;
  /// Names of settings that the configuration file gives a value for.
  std::set<std::string> settings_from_file = {};
  Sabotage sabotage;
};

/// What a distributor says of itself, for /health. Of the last poll of the fleet controller.
struct DistributorHealth {
  std::uint64_t state_version = 0;
  std::string state;         ///< Of this node in the cluster state: "up", "down", ...; empty: there is no state yet.
  std::string misnamed;      ///< Why polls are refused: the cluster takes this process for another node.
  std::string cluster_down;  ///< Why the cluster as a whole is down; empty: it is not.
  std::uint64_t buckets = 0;
  std::uint64_t unavailable = 0;
  std::uint64_t unplaced = 0;
  std::uint64_t failing = 0;  ///< Buckets whose merges fail again and again.
  std::string failure;        ///< The newest of these.
  Duration since_poll{};
};

/// Owns a share of the buckets: knows their replicas, orders and replicates writes, sends reads to replicas that are in
/// sync, and brings replicas to their ideal state. docs/design/0001-first-architecture.md says by which rules.
///
/// Threading: `handle` from anywhere; all else on its own executor.
/// Lifetime: `runtime` and `transport` outlive it; nothing calls it once its destructor has begun.
class DistributorNode final : public rpc::Service {
 public:
  DistributorNode(const DistributorOptions& options, Runtime& runtime, rpc::Transport& transport);
  ~DistributorNode() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

  /// What this node knows of the cluster.
  const rpc::SnapshotHolder& snapshots() const;

  /// Threading: from anywhere.
  DistributorHealth health() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::distributor
