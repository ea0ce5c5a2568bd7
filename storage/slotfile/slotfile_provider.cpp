#include "fjord/storage/slotfile/slotfile_provider.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "bucket.h"
#include "fjord/common/log.h"
#include "slotfile_iterator.h"

namespace fjord {

namespace slotfile {

namespace {

using spi::EntryMeta;
using spi::StoredDocument;

Status check_limits(const SlotfileLimits& limits) {
  constexpr std::uint64_t kFileBytesLeast = 2 * kHeaderAreaBytes;
  constexpr std::uint64_t kFileBytesMost = 2ULL << 30;
  constexpr std::uint32_t kEntriesLeast = 4;
  constexpr std::uint32_t kEntriesMost = 1U << 24;
  const auto bad = [](std::string_view what) { return Status(StatusCode::InvalidArgument, std::string(what)); };
  if (limits.file_bytes_max < kFileBytesLeast || limits.file_bytes_max > kFileBytesMost) {
    return bad("file_bytes_max must be between 8 KiB and 2 GiB");
  }
  if (limits.entries_max < kEntriesLeast || limits.entries_max > kEntriesMost) {
    return bad("entries_max must be between 4 and 16777216");
  }
  if (!std::has_single_bit(limits.slotfiles_max) || limits.slotfiles_max > (1U << kSlotBitsMax)) {
    return bad("slotfiles_max must be a power of two up to 64");
  }
  return Status::ok();
}

SlotfileLimits limits_of(const SlotfileOptions& options) {
  return {.file_bytes_max = options.file_bytes_max,
          .entries_max = options.entries_max,
          .slotfiles_max = options.slotfiles_max};
}

Status no_bucket(BucketId bucket) { return Status(StatusCode::NotFound, bucket.to_string() + " is not here"); }

class Provider final : public SlotfileProvider {
 public:
  Provider(Env& env, const SlotfileOptions& options) : context_(env, options) {}

  Status open_all();

  std::vector<BucketId> list_buckets() const override;
  Status create_bucket(BucketId bucket) override;
  Status delete_bucket(BucketId bucket) override;
  Result<BucketInfo> bucket_info(BucketId bucket) const override;
  Result<ReplicaSet> replica_set(BucketId bucket) const override;
  Status set_replica_set(BucketId bucket, const ReplicaSet& set) override;
  void apply(BucketId bucket, std::span<const spi::Write> writes, std::span<spi::WriteResult> results) override;
  Result<StoredDocument> get(BucketId bucket, const GlobalId& gid) override;
  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const spi::IterateOptions& options) override;
  Result<std::vector<EntryMeta>> list_entries(BucketId bucket) const override;
  Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                   std::size_t max_bytes) override;

  SlotfileStats stats() const override;
  Status set_limits(const SlotfileLimits& limits) override;
  SlotfileLimits limits() const override { return limits_of(context_.options); }

 private:
  bool is_ours(BucketId bucket) const {
    return (bucket.raw() & (context_.options.stripes - 1)) == context_.options.stripe;
  }
  std::string directory_of(BucketId bucket) const {
    return context_.options.directory + "/" + bucket_directory_name(bucket);
  }
  /// Null if there is no such bucket.
  Bucket* find(BucketId bucket) const {
    const auto found = buckets_.find(bucket);
    return found == buckets_.end() ? nullptr : found->second.get();
  }
  Status open_directory(const std::string& name);
  Status add_entry(Bucket& bucket, const GlobalId& gid, DocBlockBuilder& into);

  EngineContext context_;
  BucketMap buckets_;
  std::uint64_t incarnations_ = 0;
  std::string header_;  ///< For read_entries.
  std::string body_;
};

Status Provider::open_all() {
  const std::string& directory = context_.options.directory;
  FJORD_TRY(context_.env.create_directories(directory));
  if (context_.sync()) {
    const std::size_t slash = directory.find_last_of('/');
    const std::string parent = slash == std::string::npos ? "." : directory.substr(0, std::max<std::size_t>(slash, 1));
    FJORD_TRY(context_.env.sync_directory(parent));
  }
  FJORD_TRY_ASSIGN(const std::vector<std::string> names, context_.env.list_directory(directory));
  for (const std::string& name : names) FJORD_TRY(open_directory(name));
  return Status::ok();
}

Status Provider::open_directory(const std::string& name) {
  const std::string path = context_.options.directory + "/" + name;
  const bool deleted = name.ends_with(kDeletedSuffix);
  const std::optional<BucketId> id =
      parse_bucket_directory_name(deleted ? name.substr(0, name.size() - kDeletedSuffix.size()) : name);
  if (!id || !is_ours(*id)) return Status::ok();
  if (deleted) {
    ++context_.stats.leftovers_removed;
    return context_.env.remove_all(path);
  }
  Result<std::unique_ptr<Bucket>> bucket = Bucket::open(context_, path, *id, ++incarnations_);
  if (!bucket && bucket.error().code() == StatusCode::Corruption) {
    log::error("slotfile", "{}", bucket.error().to_string());
    ++context_.stats.bad_slotfiles;
    FJORD_TRY(context_.env.remove_all(path + std::string(kBadSuffix)));
    return context_.env.rename(path, path + std::string(kBadSuffix));
  }
  if (!bucket) return bucket.error();
  if (*bucket == nullptr) {
    ++context_.stats.leftovers_removed;
    return context_.env.remove_all(path);
  }
  buckets_.emplace(*id, std::move(*bucket));
  return Status::ok();
}

std::vector<BucketId> Provider::list_buckets() const {
  std::vector<BucketId> result;
  result.reserve(buckets_.size());
  for (const auto& [id, bucket] : buckets_) result.push_back(id);
  std::sort(result.begin(), result.end());
  return result;
}

Status Provider::create_bucket(BucketId bucket) {
  if (find(bucket) != nullptr) return Status::ok();
  if (!is_ours(bucket)) {
    return Status(StatusCode::InvalidArgument, bucket.to_string() + " belongs to another stripe");
  }
  FJORD_TRY_ASSIGN(auto made, Bucket::create(context_, directory_of(bucket), bucket, ++incarnations_));
  buckets_.emplace(bucket, std::move(made));
  return Status::ok();
}

Status Provider::delete_bucket(BucketId bucket) {
  if (find(bucket) == nullptr) return Status::ok();
  // The renaming is the deletion; what follows only gives the space back, now or at the next start.
  const std::string directory = directory_of(bucket);
  const std::string deleted = directory + std::string(kDeletedSuffix);
  FJORD_TRY(context_.env.remove_all(deleted));
  FJORD_TRY(context_.env.rename(directory, deleted));
  buckets_.erase(bucket);
  if (context_.sync()) FJORD_TRY(context_.env.sync_directory(context_.options.directory));
  if (const Status status = context_.env.remove_all(deleted); !status) {
    log::warning("slotfile", "{}", status.to_string());
  }
  return Status::ok();
}

Result<BucketInfo> Provider::bucket_info(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->info();
}

Result<ReplicaSet> Provider::replica_set(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->replicas();
}

Status Provider::set_replica_set(BucketId bucket, const ReplicaSet& set) {
  Bucket* found = find(bucket);
  return found == nullptr ? no_bucket(bucket) : found->set_replicas(set);
}

void Provider::apply(BucketId bucket, std::span<const spi::Write> writes, std::span<spi::WriteResult> results) {
  FJORD_CHECK(writes.size() == results.size());
  if (Bucket* found = find(bucket)) {
    found->apply(writes, results);
  } else {
    for (spi::WriteResult& result : results) result = {.status = no_bucket(bucket)};
  }
}

Result<StoredDocument> Provider::get(BucketId bucket, const GlobalId& gid) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  Slot& slot = found->slot_for(gid);
  const std::uint32_t number = slot.index().find(gid);
  if (number == SlotIndex::kNone) {
    return Status(StatusCode::NotFound, gid.to_string() + " is not in " + bucket.to_string());
  }
  const MetaEntry& entry = slot.index().at(number);
  StoredDocument document{.timestamp = entry.timestamp(), .removed = entry.removed(), .header = {}, .body = {}};
  if (!entry.removed()) {
    FJORD_TRY(slot.read_part(entry, Part::Header, document.header));
    FJORD_TRY(slot.read_part(entry, Part::Body, document.body));
  }
  return document;
}

Result<std::unique_ptr<spi::DocumentIterator>> Provider::iterate(BucketId bucket, const spi::IterateOptions& options) {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return std::unique_ptr<spi::DocumentIterator>(
      std::make_unique<SlotfileIterator>(context_, buckets_, *found, options));
}

Result<std::vector<EntryMeta>> Provider::list_entries(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  std::vector<EntryMeta> result;
  result.reserve(found->info().entries);
  for (const auto& slot : found->slots()) {
    for (const MetaEntry& entry : slot->index().entries()) {
      result.push_back({.gid = entry.gid, .timestamp = entry.timestamp(), .removed = entry.removed()});
    }
  }
  std::sort(result.begin(), result.end(), [](const EntryMeta& a, const EntryMeta& b) { return a.gid < b.gid; });
  return result;
}

Result<std::size_t> Provider::read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                           std::size_t max_bytes) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  std::size_t done = 0;
  for (; done < gids.size() && (done == 0 || into.size() < max_bytes); ++done) {
    if (const Status status = add_entry(*found, gids[done], into); !status) {
      if (done > 0) break;  // what is there first; the next call begins with this one and says it
      return status;
    }
  }
  return done;
}

Status Provider::add_entry(Bucket& bucket, const GlobalId& gid, DocBlockBuilder& into) {
  Slot& slot = bucket.slot_for(gid);
  const std::uint32_t number = slot.index().find(gid);
  if (number == SlotIndex::kNone) return Status::ok();
  const MetaEntry& entry = slot.index().at(number);
  FJORD_TRY(slot.read_part(entry, Part::Header, header_));
  FJORD_TRY(slot.read_part(entry, Part::Body, body_));
  EntryView view{
      .gid = gid, .timestamp = entry.timestamp(), .removed = entry.removed(), .id = {}, .header = {}, .body = body_};
  (entry.removed() ? view.id : view.header) = header_;
  into.add(view);
  return Status::ok();
}

SlotfileStats Provider::stats() const {
  SlotfileStats stats = context_.stats;
  for (const auto& [id, bucket] : buckets_) {
    stats.slotfiles += bucket->slots().size();
    stats.entries += bucket->info().entries;
    for (const auto& slot : bucket->slots()) stats.index_bytes += slot->index().memory_bytes();
  }
  stats.open_files = context_.files.open_files();
  return stats;
}

Status Provider::set_limits(const SlotfileLimits& limits) {
  FJORD_TRY(check_limits(limits));
  context_.options.file_bytes_max = limits.file_bytes_max;
  context_.options.entries_max = limits.entries_max;
  context_.options.slotfiles_max = limits.slotfiles_max;
  return Status::ok();
}

}  // namespace

}  // namespace slotfile

Result<std::unique_ptr<SlotfileProvider>> SlotfileProvider::open(Env& env, const SlotfileOptions& options) {
  FJORD_TRY(slotfile::check_limits(slotfile::limits_of(options)));
  if (!std::has_single_bit(options.stripes) || options.stripe >= options.stripes) {
    return Status(StatusCode::InvalidArgument, "stripes must be a power of two, and stripe less than it");
  }
  if (options.open_files_max == 0 || options.directory.empty()) {
    return Status(StatusCode::InvalidArgument, "open_files_max and directory must be set");
  }
  auto provider = std::make_unique<slotfile::Provider>(env, options);
  FJORD_TRY(provider->open_all());
  return std::unique_ptr<SlotfileProvider>(std::move(provider));
}

Result<std::unique_ptr<spi::PersistenceProvider>> open_slotfile_provider(Env& env, const SlotfileOptions& options) {
  FJORD_TRY_ASSIGN(auto provider, SlotfileProvider::open(env, options));
  return std::unique_ptr<spi::PersistenceProvider>(std::move(provider));
}

}  // namespace fjord
