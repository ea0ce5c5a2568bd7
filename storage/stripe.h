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

/// The buckets of one stripe and their engine. Confined to the stripe's executor: all calls below run on it.
class StorageNode::Stripe {
 public:
  Stripe(const StorageNodeOptions& options, Runtime& runtime, rpc::Transport& transport,
         const rpc::SnapshotHolder& snapshots, MaintenanceBudget& budget,
         std::unique_ptr<spi::PersistenceProvider> provider, unsigned index);

  Executor& executor() { return *executor_; }
  spi::PersistenceProvider& provider() { return *provider_; }

  /// Executes the operations at `indexes` of `request` and writes each result to the same index of `results`. `posted`
  /// is the time at which the operations began to wait for this executor.
  void apply(const rpc::Apply& request, MonotonicTime posted, const std::vector<std::uint32_t>& indexes,
             std::vector<rpc::OperationResult>& results);
  Result<std::vector<rpc::BucketReport>> bucket_info(const rpc::GetBucketInfo& request);
  Status set_replica_set(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry);
  /// The bucket's current content; an empty BucketInfo if the bucket is not on this node.
  BucketInfo content_of(BucketId bucket);
  Status delete_bucket(const rpc::DeleteBuckets& request, BucketId bucket);
  /// Deletes the bucket and remembers its epoch, so that late messages of the same cluster state, sent while the
  /// replica was still a member, do not create it again.
  Status delete_replica(std::uint64_t state_version, BucketId bucket);
  rpc::SplitBucketReply split(const rpc::SplitBucket& request);
  rpc::JoinBucketsReply join(const rpc::JoinBuckets& request);
  void merge(rpc::MergeBucket request, rpc::Responder respond);
  void find_garbage(const rpc::FindGarbage& request, rpc::Responder respond);
  rpc::ListEntriesReply list_entries(const rpc::ListEntries& request);
  rpc::FetchEntriesReply fetch_entries(const rpc::FetchEntries& request);

  /// Sets the space stage and limits that apply from now on.
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
    std::uint64_t damaged = 0;  ///< Number of damaged buckets.
    unsigned min_bits = 0;      ///< The smallest number of bits used by a bucket; 0 if there is no bucket.
  };
  Totals totals();
  Status health() const { return provider_->health(); }

 private:
  friend class BucketMerge;
  friend class GarbageScan;

  /// OK if `distributor` owns `bucket` under cluster state `version` and this is the state in use. Errors: NotReady if
  /// this node's state is older; WrongDistribution otherwise.
  Status check_owner(std::uint64_t version, std::uint16_t distributor, BucketId bucket) const;
  /// OK if `bucket` does not exist or its replica set is not newer than `epoch`. Errors: WrongDistribution.
  Status check_epoch(BucketId bucket, std::uint64_t epoch) const;
  /// Splits all buckets that use fewer than `bits` bits. Errors: those of the engine.
  Status split_to(unsigned bits);
  /// Returns the buckets of `asked` that exist here. For each of the others it returns the existing buckets that
  /// contain it or that it contains.
  std::vector<BucketId> present_parts(const std::vector<BucketId>& asked) const;
  /// True if another bucket exists here that contains `bucket` or that `bucket` contains.
  bool overlaps_another(BucketId bucket) const;
  /// Marks the buckets of `after` as damaged if one of `before`, which they replace, was damaged.
  void inherit_damage(std::initializer_list<BucketId> before, std::initializer_list<BucketId> after);
  rpc::BucketReport report_of(BucketId bucket);
  void add_forgotten(rpc::BucketReport& report) const;
  /// Drops remove entries up to the times in `entry`. The owner sends these times only when all members hold the same
  /// content.
  void forget(const rpc::BucketReplicaSet& entry);
  /// True for a delayed or duplicate message that was sent before the bucket was deleted.
  bool is_deleted_since(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry) const;
  void apply_bucket(const rpc::Apply& request, bool is_copy, std::span<const std::uint32_t> indexes,
                    std::vector<rpc::OperationResult>& results);
  void settle_refused(const rpc::Apply& request, std::span<const std::uint32_t> indexes,
                      std::vector<rpc::OperationResult>& results);
  void flush_writes(const rpc::Apply& request, std::vector<rpc::OperationResult>& results);
  Result<spi::EntryWindow> list_by_gid(const rpc::ListEntries& request, std::size_t limit);
  void maintain();
  /// Fetches from the engine which buckets were newly found damaged.
  void take_damaged();
  /// True if the bucket is damaged, including damage that the last call of the engine has found.
  bool is_damaged(BucketId bucket);
  /// Ends the bucket's damaged state if it holds the same content as an intact replica.
  void mark_if_repaired(const rpc::BucketReplicaSet& entry);
  void write_run(const rpc::Apply& request, std::span<const std::uint32_t> run,
                 std::vector<rpc::OperationResult>& results);
  void read(const rpc::StorageOperation& operation, rpc::OperationResult& result);
  void read_token(const rpc::StorageOperation& operation, rpc::OperationResult& result);
  /// OK if the stored version is the one that the sender read before it decided on this conditional write, or is this
  /// write itself, or is older and this replica is not a member of `set`.
  Status compare(const rpc::StorageOperation& operation, const ReplicaSet& set);
  /// OK if there is space for the operation. Removes are always allowed, and while throttling a share of the puts.
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
  /// Buckets deleted under cluster state `deleted_version_`, each with its epoch at that time. Older entries are not
  /// needed, because messages of older states are refused anyway.
  std::map<BucketId, std::uint64_t> deleted_;
  std::uint64_t deleted_version_ = 0;
  /// Numbers of messages of which a write was refused for a temporary reason.
  RefusedMessages refused_messages_;
  /// Buckets that have lost something and are not marked as repaired. The engine keeps this across restarts.
  std::set<BucketId> damaged_;
  std::vector<spi::Write> writes_;  // A member only to reuse its capacity.
  std::vector<spi::WriteResult> write_results_;
  std::vector<std::uint32_t> write_indexes_;
  bool health_reported_ = false;
  unsigned split_to_ = 0;  ///< No bucket uses fewer bits than this.
  RemovedCensus removed_;
  SpaceState space_;
  std::uint64_t put_bytes_ = 0;         ///< Bytes of the puts accepted since the space was last measured.
  unsigned refused_share_ = 0;          ///< Refused puts that are still due, in hundredths of a put.
  std::unique_ptr<Executor> executor_;  // Last: its tasks use all members above.
};

}  // namespace fjord::storage
