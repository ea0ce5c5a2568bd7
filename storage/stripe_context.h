#pragma once

#include <memory>

#include "fjord/common/metrics.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/storage/storage_node.h"
#include "maintenance_budget.h"

namespace fjord::storage {

struct StripeMetrics {
  explicit StripeMetrics(MetricRegistry& registry);
  Counter& puts;
  Counter& gets;
  Counter& removes;
  Counter& errors;
  Counter& refused;
  Counter& damaged;
  Counter& repaired;
  Counter& merges;
  Counter& splits;
  Counter& joins;
  Counter& merged_entries;
  Counter& dropped_entries;
  Counter& refilled;
  Gauge& merge_entries_peak;
  Counter& throttled;
  Counter& no_space;
  Histogram& put_seconds;
  Histogram& get_seconds;
  Histogram& remove_seconds;
};

/// The objects that all parts of a stripe use. Confined to the stripe's executor; outlives the parts.
struct StripeContext {
  const StorageNodeOptions& options;
  Clock& clock;
  rpc::Transport& transport;
  const rpc::SnapshotHolder& snapshots;
  MaintenanceBudget& budget;
  StripeMetrics metrics;
  std::unique_ptr<spi::PersistenceProvider> provider;
  /// Why the node's folder is not the one that was opened; OK: it is. Then nothing is written or acknowledged.
  Status failure = {};
  /// The error of the last write to the engine, if the disk failed; OK: it was written.
  Status write_fault = {};

  /// Notes the outcome of a write to the engine.
  void note_write(const Status& written);
  /// Returns OK if `distributor` owns `bucket` under cluster state `version` and this is the state in use. Errors:
  /// NotReady if this node's state is older; WrongDistribution otherwise.
  Status check_owner(std::uint64_t version, std::uint16_t distributor, BucketId bucket) const;
  /// Returns OK if `bucket` does not exist or its replica set is not newer than `epoch`. Errors: WrongDistribution.
  Status check_epoch(BucketId bucket, std::uint64_t epoch) const;
};

}  // namespace fjord::storage
