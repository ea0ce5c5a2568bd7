#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/live_settings.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::storage {

class ForegroundCpus;
class MaintenanceBudget;
class SpaceMonitor;
struct SpaceState;

struct StorageNodeOptions {
  std::uint16_t index = 0;
  /// How many executors share the buckets; a power of two. May change between starts.
  unsigned stripes = 2;
  /// A window of a merge: so many entries of both replicas are compared at once.
  std::uint32_t merge_page_entries = 20'000;
  /// One block of a merge's documents.
  std::uint32_t merge_block_bytes = 256U << 10;
  /// When a write counts as done whose client does not say.
  spi::Durability durability = spi::Durability::Process;
  /// Where the engine's files are: when its file system fills up, the node takes less and less. Empty: not looked at.
  std::string directory = {};
  /// How long a peer may take for one page or block of a merge.
  Duration peer_timeout = seconds(10);
  /// How often the removed entries of a bucket are counted, beside each time that some are dropped.
  Duration count_removed_interval = seconds(600);
  /// Names of settings that the configuration file gives a value for.
  std::set<std::string> settings_from_file = {};
};

/// What a storage node says of itself, for /health.
struct StorageNodeHealth {
  std::uint64_t state_version = 0;
  std::string state;  ///< Of this node in the cluster state: "up", "down", ...; empty: there is no state yet.
  /// Why the fleet controller's polls are refused: it takes this process for another node. Empty: it does not.
  std::string misnamed;
  std::uint32_t space_stage = 0;  ///< As PollReply::space_stage.
  std::string space;              ///< What was measured and the limit; empty in the normal stage.
  std::uint64_t damaged_buckets = 0;
};

/// Opens the engine of one stripe.
using ProviderFactory =
    std::function<Result<std::unique_ptr<spi::PersistenceProvider>>(unsigned stripe, unsigned stripes)>;

/// Holds buckets: applies what distributors send, reports what it has, fetches what it lacks from peers.
///
/// Threading: `handle` and `on_stripe` from anywhere; a bucket is touched on its stripe's executor alone.
/// Lifetime: `runtime` and `transport` outlive it; nothing calls it once its destructor has begun.
class StorageNode final : public rpc::Service, public spi::BucketAccess {
 public:
  /// Opens all stripes. Errors: those of the engine.
  static Result<std::unique_ptr<StorageNode>> open(const StorageNodeOptions& options, Runtime& runtime,
                                                   rpc::Transport& transport, const ProviderFactory& providers);
  ~StorageNode() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;
  void on_stripe(BucketId bucket, UniqueFunction<void(spi::PersistenceProvider&)> task) override;

  /// What this node acts upon; null until there is a state that speaks of this process.
  const rpc::SnapshotHolder& snapshots() const { return snapshots_; }

  /// Cluster state version in use; 0 before there is one.
  std::uint64_t state_version() const;

  /// Threading: from anywhere.
  StorageNodeHealth health() const;

 private:
  class Stripe;
  friend class BucketMerge;  // Works for a stripe.
  friend class GarbageScan;  // The same.
  StorageNode(const StorageNodeOptions& options, Runtime& runtime);

  std::size_t stripe_of(BucketId bucket) const { return bucket.raw() & (stripes_.size() - 1); }
  void apply(rpc::Apply request, rpc::Responder respond);
  void refuse_late_gets(const rpc::Apply& request, std::vector<std::uint32_t>& indexes,
                        std::vector<rpc::OperationResult>& results) const;
  void get_bucket_info(rpc::GetBucketInfo request, rpc::Responder respond);
  void set_replica_sets(rpc::SetReplicaSets request, rpc::Responder respond);
  void delete_buckets(rpc::DeleteBuckets request, rpc::Responder respond);
  void poll(rpc::Poll request, rpc::Responder respond);
  /// Takes in what the fleet controller says. Errors: InvalidArgument if it means another node; those of
  /// ClusterSnapshot::update.
  Status learn(const rpc::Poll& request);
  rpc::GetClusterInfoReply cluster_info() const;
  void set_space(const SpaceState& space);
  void end_period_later();

  StorageNodeOptions options_;
  Clock& clock_;
  std::uint64_t incarnation_;
  Gauge& damaged_buckets_;
  const std::string name_;  ///< "storage.2"
  mutable std::mutex learning_;
  std::string misnamed_ FJORD_GUARDED_BY(learning_);  ///< As StorageNodeHealth has it.
  std::uint32_t space_stage_ FJORD_GUARDED_BY(learning_) = 0;
  std::string space_ FJORD_GUARDED_BY(learning_);
  std::atomic<std::uint64_t> damaged_ = 0;
  std::uint64_t version_before_ FJORD_GUARDED_BY(learning_) = 0;  ///< The newest before it was heard of this process.
  rpc::SnapshotHolder told_;                                      ///< By the fleet controller.
  rpc::SnapshotHolder snapshots_;
  rpc::LiveSettings settings_;
  std::unique_ptr<MaintenanceBudget> budget_;
  std::unique_ptr<ForegroundCpus> foreground_cpus_;
  std::vector<std::unique_ptr<Stripe>> stripes_;
  std::unique_ptr<SpaceMonitor> space_monitor_;  // Last: it tells the stripes.
};

}  // namespace fjord::storage
