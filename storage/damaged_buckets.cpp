#include "damaged_buckets.h"

#include "fjord/common/log.h"

namespace fjord::storage {

void DamagedBuckets::take_new() {
  for (const BucketId bucket : context_.provider->take_damaged()) {
    context_.metrics.damaged.add();
    buckets_.insert(bucket);
    log::error("storage", "{} is damaged: it may have lost documents until it was merged from an intact replica",
               bucket.to_string());
  }
}

bool DamagedBuckets::contains(BucketId bucket) {
  take_new();
  return buckets_.contains(bucket);
}

Status DamagedBuckets::mark_if_repaired(const rpc::BucketReplicaSet& entry) {
  if (!contains(entry.bucket)) return Status::ok();
  const Result<BucketInfo> info = context_.provider->bucket_info(entry.bucket);
  if (!info || !info->same_content(entry.intact)) {
    log::warning("storage", "{} is still damaged: it has lost something again", entry.bucket.to_string());
    return Status::ok();
  }
  if (const Status marked = context_.provider->mark_repaired(entry.bucket); !marked) {
    if (marked.code() == StatusCode::NotReady) return marked;
    log::error("storage", "{} cannot be marked as repaired and stays damaged: {}", entry.bucket.to_string(),
               marked.to_string());
    return Status::ok();
  }
  buckets_.erase(entry.bucket);
  context_.metrics.repaired.add();
  log::info("storage", "{} is repaired: it holds {} entries, as its intact replica", entry.bucket.to_string(),
            info->entries);
  return Status::ok();
}

void DamagedBuckets::inherit(std::initializer_list<BucketId> before, std::initializer_list<BucketId> after) {
  take_new();
  std::size_t damaged = 0;
  for (BucketId bucket : before) damaged += buckets_.erase(bucket);
  if (damaged > 0) buckets_.insert(after);
}

void DamagedBuckets::forget(BucketId bucket) {
  take_new();
  buckets_.erase(bucket);
}

}  // namespace fjord::storage
