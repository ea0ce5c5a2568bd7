#pragma once

#include <memory>
#include <set>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/common/setting.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/controlled_stop.h"
#include "fjord/rpc/transport.h"

namespace fjord::distributor {

struct DistributorOptions {
  std::uint16_t index = 0;
  rpc::Address fleet_controller;  ///< Address of the only controller; used if `fleet_controllers` is empty.
  /// All controllers; the distributor finds the leader by asking them.
  std::vector<rpc::Address> fleet_controllers;
  /// Time limit of a client's batch that names none.
  Duration default_timeout = milliseconds(setting_default("distributor_options.operation_timeout_ms"));
  /// A storage node that has not answered a batch after this time is asked again.
  Duration storage_timeout = milliseconds(setting_default("distributor_options.storage_timeout_ms"));
  /// Time limit of a merge command; a repetition continues where the last one ended.
  Duration merge_timeout = seconds(60);
  /// Pause before a retry.
  Duration retry_delay = milliseconds(25);
  /// How often storage nodes are asked for their damaged buckets.
  Duration damage_poll_interval = seconds(1);
  /// Maximum number of merges at the same time, over all buckets.
  unsigned merges_max = setting_default("distributor.merges_max");
  /// A bucket above one of these two limits is split; as tunables they may change later.
  std::int64_t bucket_entries_max = setting_default("distributor.bucket_entries_max");
  std::int64_t bucket_bytes_max = setting_default("distributor.bucket_bytes_max");
  /// How often the distributor looks for siblings that are small enough to be joined.
  Duration join_interval = seconds(30);
  /// How often each bucket is searched for garbage (DocumentType::keep_while); as a tunable it may change later.
  Duration gc_interval = milliseconds(setting_default("maintenance.gc_interval"));
  /// Limits of operations in flight and of their bytes; further operations are refused with BUSY. Operations with a
  /// lower priority may use only a part of the limits (docs/operating/overload.md). As tunables they may change later.
  std::size_t pending_operations_max = setting_default("distributor.pending_operations_max");
  std::size_t pending_bytes_max = setting_default("distributor.pending_bytes_max");
  /// Names of the settings that the configuration file sets.
  std::set<std::string> settings_from_file = {};
};

/// A distributor's health for /health, as of the fleet controller's last poll.
struct DistributorHealth {
  std::uint64_t state_version = 0;
  std::uint64_t config_version = 0;  ///< Version of the live configuration in use.
  std::string state;                 ///< State of this node in the cluster state: "up", "down", ...; empty: none yet.
  std::string misnamed;      ///< Why this process refuses polls: the fleet controller takes it for another node.
  std::string cluster_down;  ///< Why the cluster as a whole is down; empty if it is up.
  std::uint64_t buckets = 0;
  std::uint64_t unavailable = 0;
  std::uint64_t unplaced = 0;
  std::uint64_t too_few_replicas = 0;  ///< Number of buckets served with fewer current replicas than the redundancy.
  std::uint64_t failing = 0;           ///< Number of buckets whose merges fail repeatedly.
  std::string failure;                 ///< "bucket: why" of the newest failure.
  Duration since_poll{};
  bool is_stopping = false;  ///< announce_stop() was called.
};

/// Owns a share of the buckets: knows their replicas, orders and replicates writes, sends reads to replicas that are in
/// sync, and brings replicas to their ideal state. Rules: docs/design/0001-first-architecture.md.
///
/// Threading: any thread may call handle() and health(); everything else runs on the node's own executor.
/// Lifetime: `runtime` and `transport` outlive the node; nothing calls it once its destructor has begun.
class DistributorNode final : public rpc::Service {
 public:
  DistributorNode(const DistributorOptions& options, Runtime& runtime, rpc::Transport& transport);
  ~DistributorNode() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

  /// Returns the holder of the cluster state and configuration that this node has received.
  const rpc::SnapshotHolder& snapshots() const;

  /// Makes all later answers to polls say that this node stops; it serves as before. Threading: any thread.
  void announce_stop();
  /// Threading: any thread.
  const rpc::ControlledStop& stop() const;

  /// Threading: any thread.
  DistributorHealth health() const;

  /// Returns OK while the lease from the fleet controller lasts: then only the state of snapshots(), or the one pending
  /// there, can be in force. Errors: NotReady. Threading: any thread.
  Status state_in_force() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::distributor
