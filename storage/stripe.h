#pragma once

#include <memory>

#include "bucket_loads.h"
#include "damaged_buckets.h"
#include "fjord/common/runtime.h"
#include "fjord/storage/spi/bucket_access.h"
#include "local_buckets.h"
#include "merge_source.h"
#include "remove_entry_counter.h"
#include "space_gate.h"
#include "stripe_context.h"
#include "stripe_operations.h"
#include "stripe_parts.h"

namespace fjord::storage {

/// The buckets of one stripe, their engine, and the parts that work on them. Confined to the stripe's executor: all
/// member functions, and those of the parts, run on it.
class StorageNode::Stripe {
 public:
  Stripe(const StorageNodeOptions& options, Runtime& runtime, rpc::Transport& transport,
         const rpc::SnapshotHolder& snapshots, MaintenanceBudget& budget,
         std::unique_ptr<spi::PersistenceProvider> provider, unsigned index);

  Executor& executor() { return *executor_; }
  spi::PersistenceProvider& provider() { return *context_.provider; }
  StripeOperations& operations() { return operations_; }
  LocalBuckets& buckets() { return buckets_; }
  MergeSource& merge_source() { return merge_source_; }
  SpaceGate& space() { return space_; }
  /// Returns the loads of the stripe's buckets by the distribution bits of the state in use, with stored_bytes. The
  /// last element is the total.
  std::vector<rpc::BucketLoad> loads();
  void count_search(const spi::SearchLoad& load) {
    loads_.add_search(load.bucket, load.ns, load.candidates, load.pages);
  }
  /// From now on, counts loads by the distribution bits of the state in use.
  void follow_bits();
  Status health() const { return context_.provider->health(); }
  /// Returns the writes or the background work that fail at present; OK: none do.
  Status fault() const { return context_.write_fault ? context_.provider->background() : context_.write_fault; }
  /// From now on refuses everything with NotReady, because the node's files are not where they were.
  void fail(const Status& why) { context_.failure = why; }

  void merge(rpc::MergeBucket request, rpc::Responder respond);
  void find_garbage(const rpc::FindGarbage& request, rpc::Responder respond);

 private:
  void maintain();

  StripeContext context_;
  DamagedBuckets damaged_;
  RemoveEntryCounter removed_;
  SpaceGate space_;
  BucketLoads loads_;
  LocalBuckets buckets_;
  StripeOperations operations_;
  MergeSource merge_source_;
  StripeParts parts_;
  bool health_reported_ = false;
  std::unique_ptr<Executor> executor_;  // The last member, because its tasks use all others.
};

}  // namespace fjord::storage
