#include "fjord/search/indexed_provider.h"

namespace fjord::search {

IndexedProvider::IndexedProvider(std::unique_ptr<spi::PersistenceProvider> engine, std::unique_ptr<IndexStore> index,
                                 const NodeFacts& facts, Clock& clock, const IndexOptions& options)
    : engine_(std::move(engine)), index_(*engine_, std::move(index), facts, clock, options) {}

Status IndexedProvider::delete_bucket(BucketId bucket) {
  FJORD_TRY(engine_->delete_bucket(bucket));
  index_.on_deleted(bucket);
  return Status::ok();
}

Status IndexedProvider::set_replica_set(BucketId bucket, const ReplicaSet& set) {
  index_.on_new_set();
  return engine_->set_replica_set(bucket, set);
}

void IndexedProvider::apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results,
                            spi::Durability durability) {
  if (index_.is_full()) {
    const Status busy(StatusCode::Busy, "the index of keywords has to wait until its disk takes a file");
    for (spi::WriteResult& result : results) result.status = busy;
    return;
  }
  engine_->apply(writes, results, durability);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (results[i].status && !results[i].superseded) index_.on_write(writes[i]);
  }
  index_.on_batch();
}

Status IndexedProvider::split_bucket(BucketId bucket) {
  const auto [low, high] = halves_of(bucket);
  const bool half_existed = engine_->replica_set(low) || engine_->replica_set(high);
  FJORD_TRY(engine_->split_bucket(bucket));
  index_.on_split(bucket, half_existed);
  return Status::ok();
}

Status IndexedProvider::join_buckets(BucketId parent) {
  const bool parent_existed = static_cast<bool>(engine_->replica_set(parent));
  FJORD_TRY(engine_->join_buckets(parent));
  index_.on_joined(parent, parent_existed);
  return Status::ok();
}

Status IndexedProvider::forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) {
  index_.on_same_documents(bucket);
  return engine_->forget(bucket, removes_before, tokens_before);
}

Status IndexedProvider::set_forgotten(BucketId bucket, const spi::Forgotten& forgotten) {
  index_.on_same_documents(bucket);
  return engine_->set_forgotten(bucket, forgotten);
}

spi::Maintenance IndexedProvider::maintain(MonotonicTime now) {
  spi::Maintenance left = engine_->maintain(now);
  if (const std::optional<Duration> due = index_.maintain(now)) {
    if (*due <= Duration(0)) left.more = true;
    left.next_in = std::min(left.next_in, *due);
  }
  return left;
}

}  // namespace fjord::search
