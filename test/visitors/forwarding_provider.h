#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::test {

/// Forwards every call to another engine; tests override single functions.
class ForwardingProvider : public spi::PersistenceProvider {
 public:
  explicit ForwardingProvider(std::unique_ptr<spi::PersistenceProvider> inner) : inner_(std::move(inner)) {}

  std::vector<BucketId> list_buckets() const override { return inner_->list_buckets(); }
  Status create_bucket(BucketId bucket) override { return inner_->create_bucket(bucket); }
  Status delete_bucket(BucketId bucket) override { return inner_->delete_bucket(bucket); }
  Result<BucketInfo> bucket_info(BucketId bucket) const override { return inner_->bucket_info(bucket); }
  Result<ReplicaSet> replica_set(BucketId bucket) const override { return inner_->replica_set(bucket); }
  Status set_replica_set(BucketId bucket, const ReplicaSet& set) override {
    return inner_->set_replica_set(bucket, set);
  }
  void apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results,
             spi::Durability durability) override {
    inner_->apply(writes, results, durability);
  }
  Result<spi::StoredDocument> get(BucketId bucket, const GlobalId& gid, spi::Parts parts) override {
    return inner_->get(bucket, gid, parts);
  }
  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const spi::IterateOptions& options) override {
    return inner_->iterate(bucket, options);
  }
  Result<std::vector<spi::EntryMeta>> list_entries(BucketId bucket) override { return inner_->list_entries(bucket); }
  Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                   std::size_t max_bytes) override {
    return inner_->read_entries(bucket, gids, into, max_bytes);
  }
  Status split_bucket(BucketId bucket) override { return inner_->split_bucket(bucket); }
  Status join_buckets(BucketId parent) override { return inner_->join_buckets(parent); }
  Status forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) override {
    return inner_->forget(bucket, removes_before, tokens_before);
  }
  Status set_forgotten(BucketId bucket, const spi::Forgotten& forgotten) override {
    return inner_->set_forgotten(bucket, forgotten);
  }
  Result<spi::Forgotten> forgotten(BucketId bucket) const override { return inner_->forgotten(bucket); }
  spi::Maintenance maintain(MonotonicTime now) override { return inner_->maintain(now); }
  void set_short_of_space(bool is_short) override { inner_->set_short_of_space(is_short); }
  std::vector<BucketId> take_damaged() override { return inner_->take_damaged(); }
  Result<bool> renew(BucketId bucket) override { return inner_->renew(bucket); }
  Status forget_lost(BucketId bucket) override { return inner_->forget_lost(bucket); }
  Status mark_repaired(BucketId bucket) override { return inner_->mark_repaired(bucket); }
  Result<bool> is_damaged(BucketId bucket) const override { return inner_->is_damaged(bucket); }
  Status health() const override { return inner_->health(); }
  Status background() const override { return inner_->background(); }

 private:
  std::unique_ptr<spi::PersistenceProvider> inner_;
};

}  // namespace fjord::test
