#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fjord/search/stripe_index.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::search {

/// An engine whose documents are indexed for searches as they are written. Every way in which a bucket changes leads
/// through the engine (puts, removes, merges, splits, joins), so the index follows all of them, and a bucket that
/// arrives by a merge is indexed entry by entry.
///
/// Threading: like the engine, confined to the stripe's executor.
class IndexedProvider final : public spi::PersistenceProvider {
 public:
  IndexedProvider(std::unique_ptr<spi::PersistenceProvider> engine, std::unique_ptr<IndexStore> index,
                  const NodeFacts& facts, Clock& clock, const IndexOptions& options);

  StripeIndex& index() { return index_; }

  std::vector<BucketId> list_buckets() const override { return engine_->list_buckets(); }
  Status create_bucket(BucketId bucket) override { return engine_->create_bucket(bucket); }
  Status delete_bucket(BucketId bucket) override;
  Result<BucketInfo> bucket_info(BucketId bucket) const override { return engine_->bucket_info(bucket); }
  Result<ReplicaSet> replica_set(BucketId bucket) const override { return engine_->replica_set(bucket); }
  Status set_replica_set(BucketId bucket, const ReplicaSet& set) override;
  void apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results,
             spi::Durability durability) override;
  Result<spi::StoredDocument> get(BucketId bucket, const GlobalId& gid, spi::Parts parts) override {
    return engine_->get(bucket, gid, parts);
  }
  void prefetch(std::span<const spi::DocumentPlace> documents) override { engine_->prefetch(documents); }
  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const spi::IterateOptions& options) override {
    return engine_->iterate(bucket, options);
  }
  Result<std::vector<spi::EntryMeta>> list_entries(BucketId bucket) override { return engine_->list_entries(bucket); }
  Status for_each_entry(BucketId bucket, const std::function<void(const spi::EntryMeta&)>& sink) override {
    return engine_->for_each_entry(bucket, sink);
  }
  Status for_each_newer(BucketId bucket, Timestamp after,
                        const std::function<void(const spi::EntryMeta&)>& sink) override {
    return engine_->for_each_newer(bucket, after, sink);
  }
  Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                   std::size_t max_bytes) override {
    return engine_->read_entries(bucket, gids, into, max_bytes);
  }
  Status split_bucket(BucketId bucket) override;
  Status join_buckets(BucketId parent) override;
  Status forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) override;
  Status set_forgotten(BucketId bucket, const spi::Forgotten& forgotten) override;
  Result<spi::Forgotten> forgotten(BucketId bucket) const override { return engine_->forgotten(bucket); }
  Result<spi::RemovedEntries> count_removed(BucketId bucket, const spi::RemovedQuestion& question) override {
    return engine_->count_removed(bucket, question);
  }
  spi::Maintenance maintain(MonotonicTime now) override;
  void set_short_of_space(bool is_short) override { engine_->set_short_of_space(is_short); }
  std::vector<BucketId> take_damaged() override { return engine_->take_damaged(); }
  Result<bool> renew(BucketId bucket) override { return engine_->renew(bucket); }
  Status forget_lost(BucketId bucket) override { return engine_->forget_lost(bucket); }
  Status mark_repaired(BucketId bucket) override { return engine_->mark_repaired(bucket); }
  Result<bool> is_damaged(BucketId bucket) const override { return engine_->is_damaged(bucket); }
  Status health() const override { return engine_->health(); }
  Status background() const override { return engine_->background(); }

 private:
  std::unique_ptr<spi::PersistenceProvider> engine_;
  StripeIndex index_;
};

}  // namespace fjord::search
