#pragma once

#include <memory>
#include <set>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/common/setting.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::distributor {

struct DistributorOptions {
  std::uint16_t index = 0;
  rpc::Address fleet_controller;  ///< The only controller; used if `fleet_controllers` is empty.
  /// All controllers; the distributor finds the leader by asking them.
  std::vector<rpc::Address> fleet_controllers;
  /// Time limit of a client's batch that names none.
  Duration default_timeout = milliseconds(setting_default("distributor_options.operation_timeout_ms"));
  /// Time after which a storage node without an answer to a batch is asked again.
  Duration storage_timeout = milliseconds(setting_default("distributor_options.storage_timeout_ms"));
  /// Time limit of a merge command; a repetition continues where the last one ended.
  Duration merge_timeout = seconds(60);
  /// Pause before a retry.
  Duration retry_delay = milliseconds(25);
  /// How often storage nodes are asked for their damaged buckets.
  Duration damage_poll_interval = seconds(1);
  /// Most merges at the same time, over all buckets.
  unsigned merges_max = setting_default("distributor.merges_max");
  /// A bucket above one of these two limits is split; as tunables they may change later.
  std::int64_t bucket_entries_max = setting_default("distributor.bucket_entries_max");
  std::int64_t bucket_bytes_max = setting_default("distributor.bucket_bytes_max");
  /// How often the distributor looks for siblings that are small enough to be joined.
  Duration join_interval = seconds(30);
  /// How often each bucket is searched for garbage (DocumentType::keep_while); as a tunable it may change later.
  Duration gc_interval = milliseconds(setting_default("maintenance.gc_interval"));
  /// Limits of operations in flight and of their bytes; more are refused with BUSY. A lower priority may use a smaller
  /// part of them (docs/operating/overload.md). As tunables they may change later.
  std::size_t pending_operations_max = setting_default("distributor.pending_operations_max");
  std::size_t pending_bytes_max = setting_default("distributor.pending_bytes_max");
  /// Names of the settings that the configuration file sets.
  std::set<std::string> settings_from_file = {};
};

/// A distributor's health for /health, as of the fleet controller's last poll.
struct DistributorHealth {
  std::uint64_t state_version = 0;
  std::string state;         ///< State of this node in the cluster state: "up", "down", ...; empty: none yet.
  std::string misnamed;      ///< Why polls are refused: the cluster takes this process for another node.
  std::string cluster_down;  ///< Why the cluster as a whole is down; empty if it is up.
  std::uint64_t buckets = 0;
  std::uint64_t unavailable = 0;
  std::uint64_t unplaced = 0;
  std::uint64_t failing = 0;  ///< Buckets whose merges fail again and again.
  std::string failure;        ///< "bucket: why" of the newest failure.
  Duration since_poll{};
};

/// Owns a share of the buckets: knows their replicas, orders and replicates writes, sends reads to replicas that are in
/// sync, and brings replicas to their ideal state. Rules: docs/design/0001-first-architecture.md.
///
/// Threading: handle() and health() from anywhere; all else on its own executor.
/// Lifetime: `runtime` and `transport` outlive it; nothing calls it once its destructor has begun.
class DistributorNode final : public rpc::Service {
 public:
  DistributorNode(const DistributorOptions& options, Runtime& runtime, rpc::Transport& transport);
  ~DistributorNode() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

  /// The cluster state and configuration that this node has received.
  const rpc::SnapshotHolder& snapshots() const;

  /// Threading: from anywhere.
  DistributorHealth health() const;

  /// OK if no other cluster state than that of snapshots() is in force, or one that is pending there: the lease from
  /// the fleet controller is not over. Errors: NotReady. Threading: from anywhere.
  Status state_in_force() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::distributor
