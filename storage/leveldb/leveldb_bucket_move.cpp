#include "leveldb_bucket_move.h"

#include <algorithm>

namespace fjord::leveldb_store {

namespace {

constexpr std::size_t kBatchBytes = 1 << 20;

Status no_bit_left(BucketId bucket) {
  return Status(StatusCode::InvalidArgument, bucket.to_string() + " uses all bits that there are");
}

}  // namespace

/// Marks a new uid as garbage until the end of the move, so that a crash leaves nothing behind.
Status BucketMove::reserve_uid(std::uint64_t uid) {
  batch_.Put(slice(settings_key()), slice(encode(Settings{.next_uid = engine_.next_uid_})));
  batch_.Put(slice(garbage_key(uid)), leveldb::Slice());
  FJORD_TRY(flush(0));
  engine_.garbage_.insert(uid);
  return Status::ok();
}

Status BucketMove::add_target(BucketId id, const ReplicaSet& replicas) {
  Target target{.id = id, .bucket = {}};
  std::vector<const Bucket*> from;
  if (const Bucket* there = engine_.find(id)) {
    target.bucket.incarnation = there->incarnation;
    target.bucket.catalog = there->catalog;
    replaced_.push_back(there->catalog.uid);
    from.push_back(there);
  } else {
    target.bucket.incarnation = ++engine_.incarnations_;
    target.bucket.catalog.replicas = replicas;
  }
  for (const BucketId source : sources_) {
    from.push_back(engine_.find(source));
    if (from.back()->catalog.damaged) target.bucket.catalog.damaged = true;
  }
  spi::Forgotten& forgotten = target.bucket.catalog.forgotten;
  // After a split, it is unknown which part of the checksum belongs to each half.
  if (sources_.size() == 1) forgotten.checksum = 0;
  for (const BucketId source : sources_) {
    const spi::Forgotten& of_source = engine_.find(source)->catalog.forgotten;
    forgotten.removes = std::max(forgotten.removes, of_source.removes);
    forgotten.tokens = std::max(forgotten.tokens, of_source.tokens);
    if (sources_.size() > 1) forgotten.checksum += of_source.checksum;
  }
  target.bucket.catalog.uid = engine_.next_uid_++;
  FJORD_TRY(reserve_uid(target.bucket.catalog.uid));
  FJORD_TRY(copy(from, target));
  targets_.push_back(std::move(target));
  return Status::ok();
}

/// Copies the entries of all buckets in `from`, by rising gid. If several buckets have an entry of one gid, the newest
/// is copied; among equally new ones, that of the first bucket.
Status BucketMove::copy(const std::vector<const Bucket*>& from, Target& target) {
  std::vector<Scan> scans;
  for (const Bucket* bucket : from) {
    FJORD_TRY_ASSIGN(Scan scan, engine_.store().scan(entries_prefix(bucket->catalog.uid, Kind::Head)));
    scans.push_back(std::move(scan));
  }
  while (true) {
    std::optional<GlobalId> lowest;
    for (const Scan& scan : scans) {
      if (scan.valid() && (!lowest || gid_of_key(scan.key()) < *lowest)) lowest = gid_of_key(scan.key());
    }
    if (!lowest) break;
    std::optional<EntryHead> newest;
    std::uint64_t newest_uid = 0;
    for (std::size_t i = 0; i < scans.size(); ++i) {
      if (!scans[i].valid() || gid_of_key(scans[i].key()) != *lowest) continue;
      const std::optional<EntryHead> head = decode_head(scans[i].value());
      scans[i].next();
      if (!head) {
        target.bucket.catalog.damaged = true;
      } else if (!newest || newest->timestamp < head->timestamp) {
        newest = head;
        newest_uid = from[i]->catalog.uid;
      }
    }
    if (!newest || bucket_of(*lowest, target.id.used_bits()) != target.id) continue;
    FJORD_TRY(copy_entry(*lowest, *newest, newest_uid, target));
  }
  for (const Scan& scan : scans) {
    const Status status = scan.status();
    if (status.code() != StatusCode::Corruption) FJORD_TRY(status);
    if (!status) target.bucket.catalog.damaged = true;
  }
  return Status::ok();
}

Status BucketMove::copy_entry(const GlobalId& gid, const EntryHead& head, std::uint64_t from_uid, Target& target) {
  std::string header;
  std::string body;
  Status status = engine_.read_part(from_uid, Kind::Header, gid, head.header_bytes, header);
  if (status) status = engine_.read_part(from_uid, Kind::Body, gid, head.body_bytes, body);
  if (status.code() == StatusCode::Corruption) {
    target.bucket.catalog.damaged = true;
    return Status::ok();
  }
  FJORD_TRY(status);
  spi::Forgotten& forgotten = target.bucket.catalog.forgotten;
  if (head.removed && forgotten.covers(head.timestamp, spi::is_token_id(header))) {
    if (sources_.size() > 1) forgotten.checksum += spi::entry_hash(gid, head.timestamp, true);
    return Status::ok();
  }
  const std::uint64_t uid = target.bucket.catalog.uid;
  batch_.Put(slice(entry_key(uid, Kind::Head, gid)), slice(encode(head)));
  if (!header.empty()) batch_.Put(slice(entry_key(uid, Kind::Header, gid)), slice(header));
  if (!body.empty()) batch_.Put(slice(entry_key(uid, Kind::Body, gid)), slice(body));
  add_to(target.bucket.info, gid, head);
  return flush(kBatchBytes);
}

Status BucketMove::flush(std::size_t at_least) {
  if (batch_.ApproximateSize() < at_least) return Status::ok();
  const Status status = engine_.store().write(batch_, false);
  batch_.Clear();
  return status;
}

Status BucketMove::finish() {
  FJORD_TRY(flush(0));
  leveldb::WriteBatch batch;
  for (const BucketId source : sources_) {
    replaced_.push_back(engine_.find(source)->catalog.uid);
    batch.Delete(slice(catalog_key(source)));
  }
  for (const std::uint64_t uid : replaced_) batch.Put(slice(garbage_key(uid)), leveldb::Slice());
  for (const Target& target : targets_) {
    batch.Put(slice(catalog_key(target.id)), slice(encode(target.bucket.catalog)));
    batch.Delete(slice(garbage_key(target.bucket.catalog.uid)));
  }
  FJORD_TRY(engine_.commit(batch));
  for (const BucketId source : sources_) engine_.buckets_.erase(source);
  for (Target& target : targets_) {
    engine_.garbage_.erase(target.bucket.catalog.uid);
    if (target.bucket.catalog.damaged) engine_.report_damage(target.id);
    engine_.buckets_[target.id] = std::move(target.bucket);
  }
  engine_.garbage_.insert(replaced_.begin(), replaced_.end());
  return Status::ok();
}

Status Engine::split_bucket(BucketId id) {
  if (id.used_bits() >= BucketId::kUsedBitsMax) return no_bit_left(id);
  const Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  const ReplicaSet replicas = bucket->catalog.replicas;
  BucketMove move(*this, {id});
  for (const BucketId half : halves_of(id)) FJORD_TRY(move.add_target(half, replicas));
  return move.finish();
}

Status Engine::join_buckets(BucketId parent) {
  if (parent.used_bits() >= BucketId::kUsedBitsMax) return no_bit_left(parent);
  std::vector<BucketId> sources;
  for (const BucketId half : halves_of(parent)) {
    if (find(half) != nullptr) sources.push_back(half);
  }
  if (sources.empty()) return no_bucket(parent);
  ReplicaSet replicas = find(sources.front())->catalog.replicas;
  if (replicas != find(sources.back())->catalog.replicas) replicas = {};
  BucketMove move(*this, sources);
  FJORD_TRY(move.add_target(parent, replicas));
  return move.finish();
}

}  // namespace fjord::leveldb_store
