#include "fjord/storage/memory/memory_provider.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "fjord/storage/spi/entry_filter.h"

namespace fjord {

namespace {

using spi::EntryMeta;
using spi::IterateOptions;
using spi::StoredDocument;
using spi::Write;
using spi::WriteResult;

struct Entry {
  Timestamp timestamp;
  bool removed = false;
  std::string id;
  std::string header;
  std::string body;
};

using Entries = std::map<GlobalId, Entry>;

struct Bucket {
  std::uint64_t incarnation = 0;  ///< Number that distinguishes a bucket from a deleted one with the same id.
  ReplicaSet set;
  spi::Forgotten forgotten;
  Entries entries;
};

constexpr Duration kIdle = std::chrono::seconds(3600);

using BucketMap = std::map<BucketId, Bucket>;

Status no_bucket(BucketId bucket) { return Status(StatusCode::NotFound, bucket.to_string() + " is not here"); }

EntryView view_of(const GlobalId& gid, const Entry& entry) {
  return EntryView{.gid = gid,
                   .timestamp = entry.timestamp,
                   .removed = entry.removed,
                   .id = entry.id,
                   .header = entry.header,
                   .body = entry.body};
}

class MemoryIterator final : public spi::DocumentIterator {
 public:
  MemoryIterator(const BucketMap& buckets, BucketId bucket, std::uint64_t incarnation, const IterateOptions& options)
      : buckets_(buckets), bucket_(bucket), incarnation_(incarnation), filter_(options) {
    if (options.snapshot) snapshot_ = buckets.at(bucket).entries;
  }

  Result<bool> next(DocBlockBuilder& into, std::size_t max_bytes) override {
    const auto found = buckets_.find(bucket_);
    const bool is_gone = found == buckets_.end() || found->second.incarnation != incarnation_;
    if (is_gone && !snapshot_) return no_bucket(bucket_);
    const Entries& entries = snapshot_ ? *snapshot_ : found->second.entries;
    auto at = started_ ? entries.upper_bound(last_) : entries.begin();
    const std::size_t count_before = into.count();
    filter_.begin_turn();
    for (; at != entries.end() && (into.count() == count_before || into.size() < max_bytes); ++at) {
      if (filter_.is_turn_over()) return true;
      started_ = true;
      last_ = at->first;
      FJORD_TRY(emit(at->first, at->second, into));
    }
    return at != entries.end();
  }

 private:
  Status emit(const GlobalId& gid, const Entry& entry, DocBlockBuilder& into) {
    if (!filter_.wants(entry.timestamp, entry.removed)) return Status::ok();
    EntryView view = view_of(gid, entry);
    if (!entry.removed) {
      FJORD_TRY_ASSIGN(const bool is_match, filter_.matches(entry.header, entry.body));
      if (!is_match) return Status::ok();
      view.header = filter_.project(entry.header);
      if (!filter_.wants_body()) view.body = {};
    }
    into.add(view);
    return Status::ok();
  }

  const BucketMap& buckets_;
  const BucketId bucket_;
  const std::uint64_t incarnation_;
  spi::EntryFilter filter_;
  std::optional<Entries> snapshot_;
  bool started_ = false;
  GlobalId last_;  ///< The last id that was looked at, once the iteration has started.
};

class MemoryProvider final : public spi::PersistenceProvider {
 public:
  std::vector<BucketId> list_buckets() const override {
    std::vector<BucketId> result;
    for (const auto& [id, bucket] : buckets_) result.push_back(id);
    return result;
  }

  Status create_bucket(BucketId bucket) override {
    const auto [at, made] = buckets_.try_emplace(bucket);
    if (made) at->second.incarnation = ++incarnations_;
    return Status::ok();
  }

  Status delete_bucket(BucketId bucket) override {
    buckets_.erase(bucket);
    return Status::ok();
  }

  Result<BucketInfo> bucket_info(BucketId bucket) const override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    BucketInfo info;
    for (const auto& [gid, entry] : found->second.entries) {
      ++info.entries;
      if (!entry.removed) ++info.documents;
      info.bytes += entry.header.size() + entry.body.size();
      info.checksum += spi::entry_hash(gid, entry.timestamp, entry.removed);
      info.max_timestamp_us = std::max(info.max_timestamp_us, entry.timestamp.us);
    }
    return info;
  }

  Result<ReplicaSet> replica_set(BucketId bucket) const override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    return found->second.set;
  }

  Status set_replica_set(BucketId bucket, const ReplicaSet& set) override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    found->second.set = set;
    return Status::ok();
  }

  void apply(std::span<const Write> writes, std::span<WriteResult> results, spi::Durability /*durability*/) override {
    FJORD_CHECK(writes.size() == results.size());
    for (std::size_t i = 0; i < writes.size(); ++i) {
      const auto found = buckets_.find(writes[i].bucket);
      results[i] = found == buckets_.end() ? WriteResult{.status = no_bucket(writes[i].bucket)}
                                           : apply_one(found->second, writes[i]);
    }
  }

  Result<StoredDocument> get(BucketId bucket, const GlobalId& gid, spi::Parts parts) override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    const auto at = found->second.entries.find(gid);
    if (at == found->second.entries.end()) {
      return Status(StatusCode::NotFound, gid.to_string() + " is not in " + bucket.to_string());
    }
    const Entry& entry = at->second;
    return StoredDocument{.timestamp = entry.timestamp,
                          .removed = entry.removed,
                          .header = entry.header,
                          .body = parts == spi::Parts::All ? std::string_view(entry.body) : std::string_view()};
  }

  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const IterateOptions& options) override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    return std::unique_ptr<spi::DocumentIterator>(
        std::make_unique<MemoryIterator>(buckets_, bucket, found->second.incarnation, options));
  }

  Result<std::vector<EntryMeta>> list_entries(BucketId bucket) override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    std::vector<EntryMeta> result;
    for (const auto& [gid, entry] : found->second.entries) {
      result.push_back({.gid = gid, .timestamp = entry.timestamp, .removed = entry.removed});
    }
    return result;
  }

  Status for_each_entry(BucketId bucket, const std::function<void(const EntryMeta&)>& sink) override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    for (const auto& [gid, entry] : found->second.entries) {
      sink({.gid = gid, .timestamp = entry.timestamp, .removed = entry.removed});
    }
    return Status::ok();
  }

  Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                   std::size_t max_bytes) override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    std::size_t done = 0;
    for (; done < gids.size() && (done == 0 || into.size() < max_bytes); ++done) {
      const auto at = found->second.entries.find(gids[done]);
      if (at != found->second.entries.end()) into.add(view_of(at->first, at->second));
    }
    return done;
  }

  Status split_bucket(BucketId bucket) override {
    if (bucket.used_bits() >= BucketId::kUsedBitsMax) return no_bit_left(bucket);
    const auto node = buckets_.extract(bucket);
    if (node.empty()) return no_bucket(bucket);
    for (auto& [gid, entry] : node.mapped().entries) {
      const BucketId half = bucket_of(gid, bucket.used_bits() + 1);
      add(taking_over(half, node.mapped().set), gid, std::move(entry));
    }
    for (const BucketId half : halves_of(bucket)) {
      inherit_forgotten(taking_over(half, node.mapped().set), node.mapped().forgotten, false);
    }
    return Status::ok();
  }

  Status join_buckets(BucketId parent) override {
    if (parent.used_bits() >= BucketId::kUsedBitsMax) return no_bit_left(parent);
    std::vector<BucketMap::node_type> nodes;
    for (const BucketId half : halves_of(parent)) {
      if (auto node = buckets_.extract(half)) nodes.push_back(std::move(node));
    }
    if (nodes.empty()) return no_bucket(parent);
    ReplicaSet set = nodes.front().mapped().set;
    if (set != nodes.back().mapped().set) set = {};
    Bucket& into = taking_over(parent, set);
    for (auto& node : nodes) {
      for (auto& [gid, entry] : node.mapped().entries) add(into, gid, std::move(entry));
      inherit_forgotten(into, node.mapped().forgotten, true);
    }
    return Status::ok();
  }

  Status forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    spi::Forgotten& forgotten = found->second.forgotten;
    forgotten.removes = std::max(forgotten.removes, removes_before);
    forgotten.tokens = std::max(forgotten.tokens, tokens_before);
    forgotten.checksum += drop_forgotten(found->second);
    return Status::ok();
  }
  Status set_forgotten(BucketId bucket, const spi::Forgotten& forgotten) override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    found->second.forgotten = forgotten;
    drop_forgotten(found->second);
    return Status::ok();
  }
  Result<spi::Forgotten> forgotten(BucketId bucket) const override {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return no_bucket(bucket);
    return found->second.forgotten;
  }

  spi::Maintenance maintain(MonotonicTime /*now*/) override { return {.more = false, .next_in = kIdle}; }
  std::vector<BucketId> take_damaged() override { return {}; }
  Status mark_repaired(BucketId bucket) override {
    return buckets_.contains(bucket) ? Status::ok() : no_bucket(bucket);
  }
  Result<bool> is_damaged(BucketId bucket) const override {
    if (!buckets_.contains(bucket)) return no_bucket(bucket);
    return false;
  }
  Status health() const override { return Status::ok(); }

 private:
  static Status no_bit_left(BucketId bucket) {
    return Status(StatusCode::InvalidArgument, bucket.to_string() + " uses all bits that there are");
  }

  /// Returns the bucket; creates it with `set` if it does not exist.
  Bucket& taking_over(BucketId bucket, const ReplicaSet& set) {
    const auto [at, made] = buckets_.try_emplace(bucket);
    if (made) at->second = {.incarnation = ++incarnations_, .set = set, .forgotten = {}, .entries = {}};
    return at->second;
  }

  /// Drops the entries that `bucket.forgotten` covers. Returns the sum of their entry_hash() values.
  static std::uint64_t drop_forgotten(Bucket& bucket) {
    std::uint64_t sum = 0;
    std::erase_if(bucket.entries, [&](const auto& item) {
      const auto& [gid, entry] = item;
      if (!entry.removed || !bucket.forgotten.covers(entry.timestamp, spi::is_token_id(entry.id))) return false;
      sum += spi::entry_hash(gid, entry.timestamp, true);
      return true;
    });
    return sum;
  }

  /// Makes the bucket drop the entries that one of its sources has dropped.
  static void inherit_forgotten(Bucket& bucket, const spi::Forgotten& of_source, bool is_whole) {
    bucket.forgotten.removes = std::max(bucket.forgotten.removes, of_source.removes);
    bucket.forgotten.tokens = std::max(bucket.forgotten.tokens, of_source.tokens);
    const std::uint64_t dropped = drop_forgotten(bucket);
    if (is_whole) bucket.forgotten.checksum += of_source.checksum + dropped;
  }

  static void add(Bucket& bucket, const GlobalId& gid, Entry entry) {
    const auto [at, made] = bucket.entries.try_emplace(gid);
    if (made || at->second.timestamp < entry.timestamp) at->second = std::move(entry);
  }

  static WriteResult apply_one(Bucket& bucket, const Write& write) {
    if (bucket_of(write.gid, write.bucket.used_bits()) != write.bucket) return {.status = spi::not_of_bucket(write)};
    if (write.header.size() > spi::kPartBytesMax || write.body.size() > spi::kPartBytesMax) {
      return WriteResult{.status = Status(StatusCode::TooLarge, "a document part may have 64 MiB at most",
                                          {.limit = std::to_string(spi::kPartBytesMax)})};
    }
    WriteResult result;
    const auto [at, made] = bucket.entries.try_emplace(write.gid);
    Entry& entry = at->second;
    if (!made) {
      result.existed = !entry.removed;
      result.superseded = entry.timestamp >= write.timestamp;
      if (result.superseded) return result;
    }
    entry.timestamp = write.timestamp;
    entry.removed = write.remove;
    entry.id = write.id;
    entry.header = write.remove ? std::string_view{} : write.header;
    entry.body = write.remove ? std::string_view{} : write.body;
    if (write.remove && bucket.forgotten.covers(write.timestamp, spi::is_token_id(write.id))) bucket.entries.erase(at);
    return result;
  }

  BucketMap buckets_;
  std::uint64_t incarnations_ = 0;
};

}  // namespace

std::unique_ptr<spi::PersistenceProvider> make_memory_provider() { return std::make_unique<MemoryProvider>(); }

}  // namespace fjord
