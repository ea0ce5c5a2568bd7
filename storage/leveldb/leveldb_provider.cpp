#include "fjord/storage/leveldb/leveldb_provider.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fmt/format.h>

#include "fjord/common/log.h"
#include "leveldb_bucket_move.h"
#include "leveldb_engine.h"

namespace fjord {

namespace leveldb_store {

namespace {

constexpr int kKeysPerStep = 1000;
constexpr Duration kIdle = std::chrono::seconds(1);
/// A bucket with fewer dead bytes is left to LevelDB's own compactions.
constexpr std::uint64_t kDeadBytesLeast = 1 << 20;

bool too_large(const spi::Write& write) {
  return write.header.size() > spi::kPartBytesMax || write.body.size() > spi::kPartBytesMax ||
         write.id.size() > spi::kPartBytesMax;
}

/// Returns the stored header of a write; for a remove that is the id.
std::string_view header_of(const spi::Write& write) { return write.remove ? write.id : write.header; }

}  // namespace

Status no_bucket(BucketId bucket) { return Status(StatusCode::NotFound, bucket.to_string() + " is not here"); }

Status unreadable(BucketId bucket, const GlobalId& gid) {
  return Status(StatusCode::Corruption, gid.to_string() + " cannot be read in " + bucket.to_string());
}

void add_to(BucketInfo& info, const GlobalId& gid, const EntryHead& head) {
  ++info.entries;
  if (!head.removed) {
    ++info.documents;
    info.bytes += std::uint64_t{head.header_bytes} + head.body_bytes;
  }
  info.checksum += spi::entry_hash(gid, head.timestamp, head.removed);
  info.max_timestamp_us = std::max(info.max_timestamp_us, head.timestamp.us);
}

void take_from(BucketInfo& info, const GlobalId& gid, const EntryHead& head) {
  --info.entries;
  if (!head.removed) {
    --info.documents;
    info.bytes -= std::uint64_t{head.header_bytes} + head.body_bytes;
  }
  info.checksum -= spi::entry_hash(gid, head.timestamp, head.removed);
}

void delete_entry(leveldb::WriteBatch& batch, std::uint64_t uid, const GlobalId& gid, const EntryHead& head) {
  batch.Delete(slice(entry_key(uid, Kind::Head, gid)));
  if (head.header_bytes > 0) batch.Delete(slice(entry_key(uid, Kind::Header, gid)));
  if (head.body_bytes > 0) batch.Delete(slice(entry_key(uid, Kind::Body, gid)));
}

// ------------------------------------------------------------------------------------------------------------ opening

Status Engine::load() {
  std::string value;
  const Status found = store_->get(settings_key(), value);
  if (found) {
    const std::optional<Settings> settings = decode_settings(value);
    if (!settings) return Status(StatusCode::Corruption, "the settings cannot be read");
    next_uid_ = settings->next_uid;
  } else if (found.code() != StatusCode::NotFound) {
    return found;
  }
  FJORD_TRY(load_catalog());
  FJORD_TRY(load_garbage());
  return load_infos();
}

Status Engine::load_catalog() {
  FJORD_TRY_ASSIGN(Scan scan, store_->scan(catalog_prefix()));
  for (; scan.valid(); scan.next()) {
    std::optional<CatalogEntry> catalog = decode_catalog_entry(scan.value());
    if (!catalog) return Status(StatusCode::Corruption, "the catalog cannot be read");
    next_uid_ = std::max(next_uid_, catalog->uid + 1);
    buckets_[bucket_of_key(scan.key())] = {.incarnation = ++incarnations_, .catalog = std::move(*catalog), .info = {}};
  }
  return scan.status();
}

Status Engine::load_garbage() {
  FJORD_TRY_ASSIGN(Scan scan, store_->scan(garbage_prefix()));
  for (; scan.valid(); scan.next()) garbage_.insert(uid_of_garbage_key(scan.key()));
  if (!garbage_.empty()) next_uid_ = std::max(next_uid_, *garbage_.rbegin() + 1);
  return scan.status();
}

Status Engine::load_infos() {
  for (auto& [id, bucket] : buckets_) {
    FJORD_TRY_ASSIGN(const Counted counted, count_entries(bucket.catalog.uid));
    bucket.info = counted.info;
    if (!counted.corrupt && !store_->lost_writes()) continue;
    report_damage(id);
    if (bucket.catalog.damaged) continue;
    bucket.catalog.damaged = true;
    FJORD_TRY(put_catalog(id, bucket.catalog));
  }
  return Status::ok();
}

Result<Engine::Counted> Engine::count_entries(std::uint64_t uid) {
  Counted counted;
  FJORD_TRY_ASSIGN(Scan scan, store_->scan(entries_prefix(uid, Kind::Head)));
  for (; scan.valid(); scan.next()) {
    const std::optional<EntryHead> head = decode_head(scan.value());
    if (!head) {
      counted.corrupt = true;
      continue;
    }
    add_to(counted.info, gid_of_key(scan.key()), *head);
  }
  const Status status = scan.status();
  if (status.code() == StatusCode::Corruption) counted.corrupt = true;
  if (!status && !counted.corrupt) return status;
  return counted;
}

// ------------------------------------------------------------------------------------------------------------ buckets

Bucket* Engine::find(BucketId bucket) {
  const auto found = buckets_.find(bucket);
  return found == buckets_.end() ? nullptr : &found->second;
}

std::vector<BucketId> Engine::list_buckets() const {
  std::vector<BucketId> result;
  result.reserve(buckets_.size());
  for (const auto& [id, bucket] : buckets_) result.push_back(id);
  return result;
}

Status Engine::put_catalog(BucketId id, const CatalogEntry& catalog, bool sync) {
  leveldb::WriteBatch batch;
  batch.Put(slice(catalog_key(id)), slice(encode(catalog)));
  return commit(batch, sync);
}

Status Engine::create_bucket(BucketId id) {
  if (find(id) != nullptr) return Status::ok();
  if ((id.raw() & (options_.stripes - 1)) != options_.stripe) {
    return Status(StatusCode::InvalidArgument, id.to_string() + " belongs to another stripe");
  }
  CatalogEntry catalog;
  catalog.uid = next_uid_++;
  leveldb::WriteBatch batch;
  batch.Put(slice(settings_key()), slice(encode(Settings{.next_uid = next_uid_})));
  batch.Put(slice(catalog_key(id)), slice(encode(catalog)));
  FJORD_TRY(commit(batch));
  buckets_[id] = {.incarnation = ++incarnations_, .catalog = std::move(catalog), .info = {}};
  return Status::ok();
}

Status Engine::delete_bucket(BucketId id) {
  const Bucket* bucket = find(id);
  if (bucket == nullptr) return Status::ok();
  const std::uint64_t uid = bucket->catalog.uid;
  leveldb::WriteBatch batch;
  batch.Delete(slice(catalog_key(id)));
  batch.Put(slice(garbage_key(uid)), leveldb::Slice());
  FJORD_TRY(commit(batch));
  garbage_.insert(uid);
  buckets_.erase(id);
  return Status::ok();
}

Result<BucketInfo> Engine::bucket_info(BucketId id) const {
  const Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  return bucket->info;
}

Result<ReplicaSet> Engine::replica_set(BucketId id) const {
  const Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  return bucket->catalog.replicas;
}

Status Engine::set_replica_set(BucketId id, const ReplicaSet& set) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  CatalogEntry catalog = bucket->catalog;
  catalog.replicas = set;
  FJORD_TRY(put_catalog(id, catalog));
  bucket->catalog = std::move(catalog);
  return Status::ok();
}

Result<spi::Forgotten> Engine::forgotten(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->catalog.forgotten;
}

Status Engine::forget(BucketId id, Timestamp removes_before, Timestamp tokens_before) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  spi::Forgotten forgotten = bucket->catalog.forgotten;
  forgotten.removes = std::max(forgotten.removes, removes_before);
  forgotten.tokens = std::max(forgotten.tokens, tokens_before);
  if (forgotten == bucket->catalog.forgotten) return Status::ok();
  FJORD_TRY_ASSIGN(Dropped dropped, find_forgotten(*bucket, forgotten));
  forgotten.checksum += dropped.checksum;
  return drop_forgotten(id, *bucket, forgotten, std::move(dropped));
}

Status Engine::set_forgotten(BucketId id, const spi::Forgotten& forgotten) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  FJORD_TRY_ASSIGN(Dropped dropped, find_forgotten(*bucket, forgotten));
  return drop_forgotten(id, *bucket, forgotten, std::move(dropped));
}

Result<Engine::Dropped> Engine::find_forgotten(Bucket& bucket, const spi::Forgotten& forgotten) {
  const std::uint64_t uid = bucket.catalog.uid;
  Dropped dropped;
  dropped.left = bucket.info;
  FJORD_TRY_ASSIGN(Scan scan, store_->scan(entries_prefix(uid, Kind::Head)));
  std::string id;
  std::uint64_t newest = 0;
  for (; scan.valid(); scan.next()) {
    const std::optional<EntryHead> head = decode_head(scan.value());
    if (!head) continue;
    const GlobalId gid = gid_of_key(scan.key());
    bool goes = false;
    if (head->removed && head->timestamp < std::max(forgotten.removes, forgotten.tokens)) {
      goes = read_part(uid, Kind::Header, gid, head->header_bytes, id) &&
             forgotten.covers(head->timestamp, spi::is_token_id(id));
    }
    if (!goes) {
      newest = std::max(newest, head->timestamp.us);
      continue;
    }
    delete_entry(dropped.changes, uid, gid, *head);
    take_from(dropped.left, gid, *head);
    dropped.checksum += spi::entry_hash(gid, head->timestamp, true);
    dropped.bytes += head->header_bytes;
  }
  dropped.left.max_timestamp_us = newest;
  if (!scan.status() && scan.status().code() != StatusCode::Corruption) return scan.status();
  return dropped;
}

Status Engine::drop_forgotten(BucketId id, Bucket& bucket, const spi::Forgotten& forgotten, Dropped dropped) {
  CatalogEntry catalog = bucket.catalog;
  catalog.forgotten = forgotten;
  dropped.changes.Put(slice(catalog_key(id)), slice(encode(catalog)));
  FJORD_TRY(commit(dropped.changes));
  bucket.catalog = std::move(catalog);
  bucket.info = dropped.left;
  bucket.dead_bytes += dropped.bytes;
  return Status::ok();
}

/// Reads entries up to a limit of bytes. Those that cannot be read are deleted, so that a merge brings them back.
Result<bool> Engine::renew(BucketId id) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  if (!bucket->catalog.damaged || bucket->renewed) return true;
  Bad bad;
  FJORD_TRY_ASSIGN(const bool done, read_some(*bucket, bad));
  if (bad.entries > 0) {
    FJORD_TRY(commit(bad.deletions));
    log::error("leveldb", "{}: {} entries cannot be read and are lost here", id.to_string(), bad.entries);
    FJORD_TRY_ASSIGN(const Counted counted, count_entries(bucket->catalog.uid));
    bucket->info = counted.info;
  }
  bucket->renewed_to = bad.last;
  bucket->has_bad_blocks = bucket->has_bad_blocks || bad.has_blocks;
  if (!done) return false;
  if (bucket->has_bad_blocks) {
    FJORD_TRY(move_off_bad_blocks(id));
    bucket = find(id);
  }
  bucket->renewed = true;
  bucket->renewed_to.reset();
  return true;
}

/// A block with metadata that cannot be read would be found again by each listing and each start. Which keys are in it
/// is not known, so they cannot be deleted. This takes as long as a split.
Status Engine::move_off_bad_blocks(BucketId id) {
  const bool is_reported = std::find(damaged_.begin(), damaged_.end(), id) != damaged_.end();
  BucketMove move(*this, {});
  FJORD_TRY(move.add_target(id, {}));
  FJORD_TRY(move.finish());
  if (!is_reported) std::erase(damaged_, id);
  find(id)->incarnation = ++incarnations_;  // Running iterators would read the keys of the old uid.
  return Status::ok();
}

Result<bool> Engine::read_some(const Bucket& bucket, Bad& bad) {
  constexpr std::uint64_t kBytesPerStep = 1 << 20;
  const std::uint64_t uid = bucket.catalog.uid;
  FJORD_TRY_ASSIGN(Scan heads, store_->scan(entries_prefix(uid, Kind::Head)));
  if (bucket.renewed_to) {
    const std::string key = entry_key(uid, Kind::Head, *bucket.renewed_to);
    heads.seek(key);
    if (heads.valid() && heads.key() == key) heads.next();
  }
  std::string value;
  bad.last = bucket.renewed_to;
  std::uint64_t bytes = 0;
  int entries = 0;
  for (; heads.valid() && bytes < kBytesPerStep && entries < kKeysPerStep; heads.next(), ++entries) {
    const GlobalId gid = gid_of_key(heads.key());
    bad.last = gid;
    bytes += heads.value().size();
    const std::optional<EntryHead> head = decode_head(heads.value());
    Status status = head ? Status::ok() : Status(StatusCode::Corruption, "its metadata cannot be read");
    for (const Kind kind : {Kind::Header, Kind::Body}) {
      if (!head || !status) break;
      const std::size_t length = kind == Kind::Header ? head->header_bytes : head->body_bytes;
      status = read_part(uid, kind, gid, length, value);
      bytes += length;
    }
    if (status) continue;
    if (status.code() != StatusCode::Corruption) return status;
    // The lengths in a bad head are not known, so both parts are deleted.
    delete_entry(bad.deletions, uid, gid,
                 EntryHead{.timestamp = {}, .removed = false, .header_bytes = 1, .body_bytes = 1});
    ++bad.entries;
  }
  const bool done = !heads.valid();
  const Status status = heads.status();
  if (!status && status.code() != StatusCode::Corruption) return status;
  bad.has_blocks = !status;
  return done;
}

Status Engine::forget_lost(BucketId id) { return find(id) == nullptr ? no_bucket(id) : Status::ok(); }

Status Engine::mark_repaired(BucketId id) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  if (!bucket->catalog.damaged) return Status::ok();
  FJORD_TRY_ASSIGN(const bool renewed, renew(id));
  if (!renewed) {
    return Status(StatusCode::NotReady, id.to_string() + " is being read; mark it as repaired again later");
  }
  CatalogEntry catalog = bucket->catalog;
  catalog.damaged = false;
  // The sync makes all earlier writes durable too, among them those that brought back what was lost.
  FJORD_TRY(put_catalog(id, catalog, true));
  bucket->renewed = false;
  bucket->catalog = std::move(catalog);
  return Status::ok();
}

Result<bool> Engine::is_damaged(BucketId id) const {
  const Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  return bucket->catalog.damaged;
}

// ------------------------------------------------------------------------------------------------------------- damage

void Engine::report_damage(BucketId id) {
  if (std::find(damaged_.begin(), damaged_.end(), id) == damaged_.end()) damaged_.push_back(id);
}

void Engine::note_damage(BucketId id, Bucket& bucket) {
  if (bucket.catalog.damaged) return;  // The bucket's info already shows the loss.
  report_damage(id);
  bucket.catalog.damaged = true;
  bucket.renewed = false;
  // If this write fails, the next start finds the damage again.
  static_cast<void>(put_catalog(id, bucket.catalog));
  if (const Result<Counted> counted = count_entries(bucket.catalog.uid)) bucket.info = counted->info;
}

void Engine::lose_entry(BucketId id, Bucket& bucket, const GlobalId& gid, const EntryHead& head) {
  report_damage(id);
  bucket.renewed = false;
  bucket.catalog.damaged = true;
  leveldb::WriteBatch batch;
  batch.Put(slice(catalog_key(id)), slice(encode(bucket.catalog)));
  delete_entry(batch, bucket.catalog.uid, gid, head);
  if (!commit(batch)) return;  // If the commit fails, the entry stays until it is read again.
  take_from(bucket.info, gid, head);
  if (head.timestamp.us < bucket.info.max_timestamp_us) return;
  if (const Result<Counted> counted = count_entries(bucket.catalog.uid)) bucket.info = counted->info;
}

// ------------------------------------------------------------------------------------------------------------- writes

struct Engine::Batch {
  leveldb::WriteBatch changes;
  /// Heads of the entries as the writes staged so far will leave them. Empty: the entry is gone.
  std::map<std::pair<std::uint64_t, GlobalId>, std::optional<EntryHead>> heads;
  std::map<Bucket*, BucketInfo> infos;
  std::map<Bucket*, std::uint64_t> dead_bytes;
  bool empty() const { return heads.empty(); }
};

void Engine::apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results,
                   spi::Durability durability) {
  FJORD_CHECK(writes.size() == results.size());
  Batch batch;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    results[i] = {};
    stage(writes[i], results[i], batch);
  }
  if (batch.empty()) return;
  if (const Status status = store_->write(batch.changes, syncs(durability)); !status) {
    // Writes that a later one of this batch superseded fail too: without that one, they would have been stored.
    for (spi::WriteResult& result : results) {
      if (result.status) result = {.status = status};
    }
    return;
  }
  for (const auto& [bucket, info] : batch.infos) bucket->info = info;
  for (const auto& [bucket, bytes] : batch.dead_bytes) bucket->dead_bytes += bytes;
}

void Engine::stage(const spi::Write& write, spi::WriteResult& result, Batch& batch) {
  Bucket* bucket = find(write.bucket);
  if (bucket == nullptr) {
    result.status = no_bucket(write.bucket);
    return;
  }
  if (bucket_of(write.gid, write.bucket.used_bits()) != write.bucket) {
    result.status = spi::not_of_bucket(write);
    return;
  }
  if (too_large(write)) {
    result.status = Status(StatusCode::TooLarge, "a document part may have 64 MiB at most",
                           {.limit = std::to_string(spi::kPartBytesMax)});
    return;
  }
  const std::uint64_t uid = bucket->catalog.uid;
  const auto staged = batch.heads.find({uid, write.gid});
  std::optional<EntryHead> old;
  if (staged != batch.heads.end()) {
    old = staged->second;
  } else {
    Result<std::optional<EntryHead>> stored = head_of(write.bucket, *bucket, write.gid);
    if (!stored) {
      result.status = stored.error();
      return;
    }
    old = *stored;
  }
  result.existed = old && !old->removed;
  result.superseded = old && old->timestamp >= write.timestamp;
  if (result.superseded) return;
  const std::string_view header = header_of(write);
  const std::string_view body = write.remove ? std::string_view{} : write.body;
  const EntryHead head{.timestamp = write.timestamp,
                       .removed = write.remove,
                       .header_bytes = static_cast<std::uint32_t>(header.size()),
                       .body_bytes = static_cast<std::uint32_t>(body.size())};
  if (old) delete_entry(batch.changes, uid, write.gid, *old);
  BucketInfo& info = batch.infos.try_emplace(bucket, bucket->info).first->second;
  if (old) {
    take_from(info, write.gid, *old);
    batch.dead_bytes[bucket] += std::uint64_t{old->header_bytes} + old->body_bytes;
  }
  const bool is_forgotten =
      write.remove && bucket->catalog.forgotten.covers(write.timestamp, spi::is_token_id(write.id));
  if (is_forgotten) {
    batch.heads[{uid, write.gid}] = std::nullopt;
    return;
  }
  batch.changes.Put(slice(entry_key(uid, Kind::Head, write.gid)), slice(encode(head)));
  if (!header.empty()) batch.changes.Put(slice(entry_key(uid, Kind::Header, write.gid)), slice(header));
  if (!body.empty()) batch.changes.Put(slice(entry_key(uid, Kind::Body, write.gid)), slice(body));
  add_to(info, write.gid, head);
  batch.heads[{uid, write.gid}] = head;
}

/// Returns the head of the entry; nothing if it is not stored or is lost.
Result<std::optional<EntryHead>> Engine::head_of(BucketId id, Bucket& bucket, const GlobalId& gid) {
  std::string value;
  const Status status = store_->get(entry_key(bucket.catalog.uid, Kind::Head, gid), value);
  if (status.code() == StatusCode::NotFound) return std::optional<EntryHead>();
  std::optional<EntryHead> head;
  if (status) head = decode_head(value);
  if (head) return head;
  if (!status && status.code() != StatusCode::Corruption) return status;
  note_damage(id, bucket);
  return head;
}

// -------------------------------------------------------------------------------------------------------------- reads

Status Engine::read_part(std::uint64_t uid, Kind kind, const GlobalId& gid, std::size_t length, std::string& value) {
  value.clear();
  if (length == 0) return Status::ok();
  const Status status = store_->get(entry_key(uid, kind, gid), value);
  const bool wrong = status ? value.size() != length : status.code() == StatusCode::NotFound;
  if (wrong) return Status(StatusCode::Corruption, "a part of " + gid.to_string() + " is not what it was");
  return status;
}

Result<spi::StoredDocument> Engine::get(BucketId id, const GlobalId& gid, spi::Parts parts) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  FJORD_TRY_ASSIGN(const std::optional<EntryHead> head, head_of(id, *bucket, gid));
  if (!head) {
    if (bucket->catalog.damaged) {
      return Status(StatusCode::Corruption,
                    gid.to_string() + " may have been lost in " + id.to_string() + "; another replica knows");
    }
    return Status(StatusCode::NotFound, gid.to_string() + " is not in " + id.to_string());
  }
  spi::StoredDocument document{.timestamp = head->timestamp, .removed = head->removed, .header = {}, .body = {}};
  if (head->removed) return document;
  const std::uint64_t uid = bucket->catalog.uid;
  got_body_.clear();
  Status status = read_part(uid, Kind::Header, gid, head->header_bytes, got_header_);
  if (status && parts == spi::Parts::All) status = read_part(uid, Kind::Body, gid, head->body_bytes, got_body_);
  document.header = got_header_;
  document.body = got_body_;
  if (status) return document;
  if (status.code() == StatusCode::Corruption) lose_entry(id, *bucket, gid, *head);
  return status;
}

Result<std::unique_ptr<spi::DocumentIterator>> Engine::iterate(BucketId id, const spi::IterateOptions& options) {
  const Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  return make_iterator(*this, id, *bucket, options);
}

Result<std::vector<spi::EntryMeta>> Engine::list_entries(BucketId id) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  std::vector<spi::EntryMeta> result;
  result.reserve(bucket->info.entries);
  FJORD_TRY(for_each_entry(id, [&](const spi::EntryMeta& entry) { result.push_back(entry); }));
  return result;
}

Status Engine::for_each_entry(BucketId id, const std::function<void(const spi::EntryMeta&)>& sink) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  FJORD_TRY_ASSIGN(Scan scan, store_->scan(entries_prefix(bucket->catalog.uid, Kind::Head)));
  bool corrupt = false;
  for (; scan.valid(); scan.next()) {
    const std::optional<EntryHead> head = decode_head(scan.value());
    if (!head) {
      corrupt = true;
      continue;
    }
    sink({.gid = gid_of_key(scan.key()), .timestamp = head->timestamp, .removed = head->removed});
  }
  const Status status = scan.status();
  // The entries that can be read are returned nevertheless: they show which ones to fetch from other replicas.
  if (corrupt || status.code() == StatusCode::Corruption) {
    note_damage(id, *bucket);
    return Status::ok();
  }
  return status;
}

Result<std::size_t> Engine::read_entries(BucketId id, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                         std::size_t max_bytes) {
  Bucket* bucket = find(id);
  if (bucket == nullptr) return no_bucket(id);
  std::size_t done = 0;
  for (; done < gids.size() && (done == 0 || into.size() < max_bytes); ++done) {
    if (const Status status = add_entry(id, *bucket, gids[done], into); !status) {
      if (done > 0) break;  // The entries read so far are returned first. The next call begins with this entry.
      return status;
    }
  }
  return done;
}

Status Engine::add_entry(BucketId id, Bucket& bucket, const GlobalId& gid, DocBlockBuilder& into) {
  FJORD_TRY_ASSIGN(const std::optional<EntryHead> head, head_of(id, bucket, gid));
  if (!head) return Status::ok();
  std::string header;
  std::string body;
  Status status = read_part(bucket.catalog.uid, Kind::Header, gid, head->header_bytes, header);
  if (status) status = read_part(bucket.catalog.uid, Kind::Body, gid, head->body_bytes, body);
  if (!status) {
    if (status.code() == StatusCode::Corruption) lose_entry(id, bucket, gid, *head);
    return status;
  }
  EntryView entry{
      .gid = gid, .timestamp = head->timestamp, .removed = head->removed, .id = {}, .header = {}, .body = body};
  (head->removed ? entry.id : entry.header) = header;
  into.add(entry);
  return Status::ok();
}

// --------------------------------------------------------------------------------------------------------- background

spi::Maintenance Engine::maintain(MonotonicTime now) {
  if (!health()) return {.more = false, .next_in = kIdle};
  store_->recover(now);
  if (store_->is_refusing()) return {.more = false, .next_in = kIdle};
  Result<bool> more = false;
  if (!garbage_.empty()) more = collect_garbage();
  if (!more) {
    log::warning("leveldb", "background work waits: {}", more.error().to_string());
    return {.more = false, .next_in = kIdle};
  }
  return {.more = *more || compact_some(), .next_in = kIdle};
}

/// Compacts one bucket in which enough was deleted. LevelDB itself compacts where much is written, not where much was
/// deleted.
bool Engine::compact_some() {
  if (!emptied_.empty()) {
    store_->compact(entries_prefix(emptied_.back()));
    emptied_.pop_back();
    return true;
  }
  for (auto& [id, bucket] : buckets_) {
    if (bucket.dead_bytes < kDeadBytesLeast || bucket.dead_bytes < bucket.info.bytes / 2) continue;
    bucket.dead_bytes = 0;
    store_->compact(entries_prefix(bucket.catalog.uid));
    return true;
  }
  return false;
}

Result<bool> Engine::collect_garbage() {
  const std::uint64_t uid = *garbage_.begin();
  FJORD_TRY_ASSIGN(Scan scan, store_->scan(entries_prefix(uid)));
  // Continues behind the keys deleted last; otherwise LevelDB would have to skip these keys each time.
  if (std::string_view(garbage_cursor_).starts_with(entries_prefix(uid))) scan.seek(garbage_cursor_);
  leveldb::WriteBatch batch;
  for (int i = 0; i < kKeysPerStep && scan.valid(); ++i, scan.next()) {
    garbage_cursor_ = scan.key();
    garbage_bytes_ += scan.value().size();
    batch.Delete(slice(garbage_cursor_));
  }
  const bool done = !scan.valid();
  garbage_is_bad_ = garbage_is_bad_ || scan.status().code() == StatusCode::Corruption;
  if (done) batch.Delete(slice(garbage_key(uid)));
  FJORD_TRY(store_->write(batch, false));
  if (done) {
    garbage_.erase(uid);
    // A compaction that meets a broken block would end all writing.
    const bool is_bad = std::exchange(garbage_is_bad_, false);
    if (std::exchange(garbage_bytes_, 0) >= kDeadBytesLeast && !is_bad) emptied_.push_back(uid);
  }
  return !garbage_.empty() || !done;
}

// ------------------------------------------------------------------------------------------------------- the directory

namespace {

constexpr std::string_view kMarkerName = "leveldb-stripes";

std::string marker_path(const std::string& directory) { return fmt::format("{}/{}", directory, kMarkerName); }
std::string marker_text(unsigned stripes) { return fmt::format("fjord-leveldb {} {}\n", kFormatVersion, stripes); }

Result<unsigned> parse_marker(const std::string& text, const std::string& path) {
  constexpr std::string_view kFirst = "fjord-leveldb ";
  unsigned version = 0;
  unsigned stripes = 0;
  const char* const end = text.data() + text.size();
  if (text.starts_with(kFirst) && text.ends_with('\n')) {
    const auto [stop, error] = std::from_chars(text.data() + kFirst.size(), end, version);
    if (error == std::errc() && version > kFormatVersion) {
      return Status(StatusCode::NotImplemented, fmt::format("{} names the newer format {}", path, version));
    }
    if (error == std::errc() && stop + 1 < end && *stop == ' ') std::from_chars(stop + 1, end, stripes);
  }
  if (version == 0 || stripes == 0) return Status(StatusCode::Corruption, path + " cannot be read");
  return stripes;
}

Status check_options(const LeveldbOptions& options) {
  constexpr unsigned kStripesMost = 256;
  constexpr std::size_t kBufferLeast = 64 << 10;
  constexpr int kFilesLeast = 16;
  if (!std::has_single_bit(options.stripes) || options.stripe >= options.stripes || options.stripes > kStripesMost) {
    return Status(StatusCode::InvalidArgument, "stripes must be a power of two up to 256, and stripe less than it");
  }
  if (options.directory.empty() || options.write_buffer_bytes < kBufferLeast || options.open_files_max < kFilesLeast) {
    return Status(StatusCode::InvalidArgument,
                  "directory must be set, write_buffer_bytes be at least 64 KiB and open_files_max at least 16");
  }
  return Status::ok();
}

}  // namespace

}  // namespace leveldb_store

Result<std::optional<unsigned>> leveldb_stripes_of(Env& env, const std::string& directory) {
  const std::string path = leveldb_store::marker_path(directory);
  FJORD_TRY_ASSIGN(const bool there, env.exists(path));
  if (!there) return std::optional<unsigned>();
  FJORD_TRY_ASSIGN(const std::string text, read_file(env, path));
  FJORD_TRY_ASSIGN(const unsigned stripes, leveldb_store::parse_marker(text, path));
  return std::optional(stripes);
}

Result<std::unique_ptr<spi::PersistenceProvider>> open_leveldb_provider(Env& env, const LeveldbOptions& options) {
  FJORD_TRY(leveldb_store::check_options(options));
  FJORD_TRY(env.create_directories(options.directory));
  FJORD_TRY_ASSIGN(const std::optional<unsigned> made_with, leveldb_stripes_of(env, options.directory));
  if (made_with && *made_with != options.stripes) {
    return Status(StatusCode::InvalidArgument, fmt::format("{} was made with {} stripes and cannot be opened with {}",
                                                           options.directory, *made_with, options.stripes));
  }
  if (!made_with) {
    FJORD_TRY(env.sync_directory(leveldb_store::folder_of(options.directory)));
    FJORD_TRY(write_file_atomically(env, leveldb_store::marker_path(options.directory),
                                    leveldb_store::marker_text(options.stripes), true));
  }
  FJORD_TRY_ASSIGN(auto store, leveldb_store::Store::open(env, options));
  auto engine = std::make_unique<leveldb_store::Engine>(std::move(store), options);
  FJORD_TRY(engine->load());
  return std::unique_ptr<spi::PersistenceProvider>(std::move(engine));
}

}  // namespace fjord
