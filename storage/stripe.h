#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/entry_window.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/storage/storage_node.h"
#include "maintenance_budget.h"
#include "refused_messages.h"
#include "removed_census.h"
#include "space_monitor.h"

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

/// The buckets of one stripe. Confined to its executor; all calls below run on it.
class StorageNode::Stripe {
 public:
  Stripe(const StorageNodeOptions& options, Runtime& runtime, rpc::Transport& transport,
         const rpc::SnapshotHolder& snapshots, MaintenanceBudget& budget,
         std::unique_ptr<spi::PersistenceProvider> provider, unsigned index);

  Executor& executor() { return *executor_; }
  spi::PersistenceProvider& provider() { return *provider_; }

  /// Executes the operations named by `indexes`, which have waited since `posted`, and writes their results into
  /// `results` at the same places.
  void apply(const rpc::Apply& request, MonotonicTime posted, const std::vector<std::uint32_t>& indexes,
             std::vector<rpc::OperationResult>& results);
  Result<std::vector<rpc::BucketReport>> bucket_info(const rpc::GetBucketInfo& request);
  Status set_replica_set(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry);
  /// Nothing if the bucket is not here.
  BucketInfo content_of(BucketId bucket);
  Status delete_bucket(const rpc::DeleteBuckets& request, BucketId bucket);
  /// Late messages of that cluster state about a set that the replica was a member of do not make it again.
  Status delete_replica(std::uint64_t state_version, BucketId bucket);
  rpc::SplitBucketReply split(const rpc::SplitBucket& request);
  rpc::JoinBucketsReply join(const rpc::JoinBuckets& request);
  void merge(rpc::MergeBucket request, rpc::Responder respond);
  void find_garbage(const rpc::FindGarbage& request, rpc::Responder respond);
  rpc::ListEntriesReply list_entries(const rpc::ListEntries& request);
  rpc::FetchEntriesReply fetch_entries(const rpc::FetchEntries& request);

  /// From now on.
  void set_space(SpaceState space) {
    space_ = std::move(space);
    put_bytes_ = 0;
    provider_->set_short_of_space(space_.stage >= SpaceStage::Throttle);
  }
  const SpaceState& space() const { return space_; }

  struct Totals {
    std::uint64_t buckets = 0;
    std::uint64_t documents = 0;
    std::uint64_t bytes = 0;
    std::uint64_t damaged = 0;  ///< Buckets.
    unsigned min_bits = 0;      ///< The fewest that a bucket uses; 0: no bucket.
  };
  Totals totals();
  Status health() const { return provider_->health(); }

 private:
  friend class BucketMerge;
  friend class GarbageScan;

  /// OK if `distributor` may change `bucket` under cluster state `version`.
  Status check_owner(std::uint64_t version, std::uint16_t distributor, BucketId bucket) const;
  /// OK if `bucket` is not there, or with a replica set that is not newer than `epoch`.
  Status check_epoch(BucketId bucket, std::uint64_t epoch) const;
  /// Splits what uses fewer bits.
  Status split_to(unsigned bits);
  /// Those of the buckets that are here, and in place of the others what is here of them with more or fewer bits.
  std::vector<BucketId> present_parts(const std::vector<BucketId>& asked) const;
  /// True if a bucket is here that the bucket contains or is contained in, and that is not the bucket itself.
  bool overlaps_another(BucketId bucket) const;
  /// What replaces `before` has lost what that had lost.
  void inherit_damage(std::initializer_list<BucketId> before, std::initializer_list<BucketId> after);
  rpc::BucketReport report_of(BucketId bucket);
  void add_forgotten(rpc::BucketReport& report) const;
  /// Drops removed entries as the owner says, which has seen that all members hold the same.
  void forget(const rpc::BucketReplicaSet& entry);
  /// A late copy of a message that was sent before the bucket was deleted.
  bool is_deleted_since(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry) const;
  void apply_bucket(const rpc::Apply& request, bool is_copy, std::span<const std::uint32_t> indexes,
                    std::vector<rpc::OperationResult>& results);
  void settle_refused(const rpc::Apply& request, std::span<const std::uint32_t> indexes,
                      std::vector<rpc::OperationResult>& results);
  void flush_writes(const rpc::Apply& request, std::vector<rpc::OperationResult>& results);
  Result<spi::EntryWindow> list_by_gid(const rpc::ListEntries& request, std::size_t limit);
  void maintain();
  /// Learns from the engine which buckets are damaged.
  void take_damaged();
  /// As of now: what a call of the engine met just before counts.
  bool is_damaged(BucketId bucket);
  /// The bucket is whole again, if it holds what an intact replica does.
  void mark_if_repaired(const rpc::BucketReplicaSet& entry);
  void write_run(const rpc::Apply& request, std::span<const std::uint32_t> run,
                 std::vector<rpc::OperationResult>& results);
  void read(const rpc::StorageOperation& operation, rpc::OperationResult& result);
  void read_token(const rpc::StorageOperation& operation, rpc::OperationResult& result);
  /// OK if what is here is what the sender read before it decided on this write.
  Status compare(const rpc::StorageOperation& operation, const ReplicaSet& set);
  /// OK if there is space for it: removes always go through, and so does a part of the puts while throttling.
  Status check_space(const rpc::StorageOperation& operation);
  Status check_space_to_merge();
  spi::Durability durability_of(const rpc::StorageOperation& operation) const;

  const StorageNodeOptions& options_;
  Clock& clock_;
  rpc::Transport& transport_;
  const rpc::SnapshotHolder& snapshots_;
  MaintenanceBudget& budget_;
  StripeMetrics metrics_;
  std::unique_ptr<spi::PersistenceProvider> provider_;
  /// Buckets deleted under cluster state `deleted_version_`, with the epoch that they had. Messages of older states are
  /// refused anyway.
  std::map<BucketId, std::uint64_t> deleted_;
  std::uint64_t deleted_version_ = 0;
  RefusedMessages refused_messages_;  ///< In which a write was refused for a reason that passes.
  /// Have lost something and are not marked as repaired. The engine keeps it over restarts.
  std::set<BucketId> damaged_;
  std::vector<spi::Write> writes_;  // Kept between calls for their capacity.
  std::vector<spi::WriteResult> write_results_;
  std::vector<std::uint32_t> write_indexes_;
  bool health_reported_ = false;
  unsigned split_to_ = 0;  ///< No bucket uses fewer bits.
  RemovedCensus removed_;
  SpaceState space_;
  std::uint64_t put_bytes_ = 0;         ///< Of the puts taken since the space was measured.
  unsigned refused_share_ = 0;          ///< Of a put, in percent, which is still to be refused.
  std::unique_ptr<Executor> executor_;  // Last: its tasks use all of the above.
};

}  // namespace fjord::storage
