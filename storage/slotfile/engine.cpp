#include "engine.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/common/lost_pages.h"
#include "slotfile_iterator.h"

namespace fjord {

namespace slotfile {

namespace {

Status check_limits(const SlotfileLimits& limits) {
  constexpr std::uint64_t kFileBytesLeast = 4096;
  constexpr std::uint64_t kFileBytesMost = 2ULL << 30;
  constexpr std::uint32_t kEntriesLeast = 4;
  constexpr std::uint32_t kEntriesMost = 1U << 24;
  const auto bad = [](std::string_view what) { return Status(StatusCode::InvalidArgument, std::string(what)); };
  if (limits.file_bytes_max < kFileBytesLeast || limits.file_bytes_max > kFileBytesMost) {
    return bad("file_bytes_max must be between 4 KiB and 2 GiB");
  }
  if (limits.entries_max < kEntriesLeast || limits.entries_max > kEntriesMost) {
    return bad("entries_max must be between 4 and 16777216");
  }
  if (!std::has_single_bit(limits.slotfiles_max) || limits.slotfiles_max > kCells) {
    return bad("slotfiles_max must be a power of two up to 64");
  }
  if (limits.held_bytes_max == 0 || limits.index_bytes_max == 0 || limits.journal_bytes_max == 0) {
    return bad("held_bytes_max, index_bytes_max and journal_bytes_max must be set");
  }
  if (limits.dead_percent_max == 0 || limits.dead_percent_max >= 100) {
    return bad("dead_percent_max must be between 1 and 99");
  }
  return Status::ok();
}

bool too_large(const spi::Write& write) {
  return write.header.size() > spi::kPartBytesMax || write.body.size() > spi::kPartBytesMax ||
         write.id.size() > spi::kPartBytesMax;
}

}  // namespace

void Bucket::index_cells() {
  for (const auto& slot : slots) {
    for (unsigned cell = slot->first_cell(); cell < slot->end_cell(); ++cell) by_cell[cell] = slot.get();
  }
}

BucketInfo Bucket::info() const {
  BucketInfo sum;
  for (const auto& slot : slots) {
    const BucketInfo& info = slot->info();
    sum.entries += info.entries;
    sum.documents += info.documents;
    sum.bytes += info.bytes;
    sum.checksum += info.checksum;
    sum.max_timestamp_us = std::max(sum.max_timestamp_us, info.max_timestamp_us);
  }
  return sum;
}

unsigned Bucket::depth() const {
  unsigned depth = 0;
  for (const auto& slot : slots) depth = std::max(depth, slot->depth());
  return depth;
}

bool Bucket::is_damaged() const {
  return damaged || std::any_of(slots.begin(), slots.end(), [](const auto& slot) { return slot->is_damaged(); });
}

Engine::~Engine() {
  if (job_ != nullptr) job_->cancel();
  if (rewrite_job_ != nullptr) rewrite_job_->cancel();
  scrub_.reset();
  rewrite_.reset();
}

Bucket* Engine::find(BucketId bucket) const {
  const auto found = buckets_.find(bucket);
  return found == buckets_.end() ? nullptr : found->second.get();
}

std::vector<BucketId> Engine::list_buckets() const {
  std::vector<BucketId> result;
  result.reserve(buckets_.size());
  for (const auto& [id, bucket] : buckets_) result.push_back(id);
  std::sort(result.begin(), result.end());
  return result;
}

Status Engine::create_bucket(BucketId bucket) {
  if (find(bucket) != nullptr) return Status::ok();
  if (!is_ours(bucket)) {
    return Status(StatusCode::InvalidArgument, bucket.to_string() + " belongs to another stripe");
  }
  auto made = std::make_unique<Bucket>();
  made->id = bucket;
  made->uid = next_uid_++;
  made->slots.push_back(std::make_unique<Slot>(context_, loaded_, bucket, 0, 0));
  made->index_cells();
  Bucket* const raw = made.get();
  FJORD_TRY(commit(edit_of(std::span(&raw, 1))));
  adopt(std::move(made));
  return Status::ok();
}

Status Engine::delete_bucket(BucketId bucket) {
  Bucket* found = find(bucket);
  if (found == nullptr) return Status::ok();
  Edit edit = edit_of({});
  edit.removed.push_back(found->uid);
  FJORD_TRY(commit(std::move(edit)));
  drop(*found);
  return Status::ok();
}

Result<BucketInfo> Engine::bucket_info(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->info();
}

Result<ReplicaSet> Engine::replica_set(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->replicas;
}

Status Engine::set_replica_set(BucketId bucket, const ReplicaSet& set) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  ReplicaSet before = std::exchange(found->replicas, set);
  const Status status = commit(edit_of(std::span(&found, 1)));
  if (!status) found->replicas = std::move(before);
  return status;
}

Result<spi::Forgotten> Engine::forgotten(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->forgotten;
}

Status Engine::forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  const spi::Forgotten before = found->forgotten;
  spi::Forgotten after = before;
  after.removes = std::max(after.removes, removes_before);
  after.tokens = std::max(after.tokens, tokens_before);
  if (after == before) return Status::ok();
  FJORD_TRY_ASSIGN(const std::uint64_t dropped, change_forgotten(*found, after));
  found->forgotten.checksum += dropped;
  return keep_forgotten(*found, before);
}

Status Engine::set_forgotten(BucketId bucket, const spi::Forgotten& forgotten) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  const spi::Forgotten before = found->forgotten;
  if (forgotten == before) return Status::ok();
  FJORD_TRY(change_forgotten(*found, forgotten).status());
  return keep_forgotten(*found, before);
}

/// Sets what the bucket has dropped. Hidden entries stay in the index and in files until their slot is rewritten,
/// because there they hide older versions of their documents. Returns the sum of the hashes of the entries hidden by
/// this call.
Result<std::uint64_t> Engine::change_forgotten(Bucket& bucket, const spi::Forgotten& forgotten) {
  const bool brings_back = forgotten.removes < bucket.forgotten.removes || forgotten.tokens < bucket.forgotten.tokens;
  if (brings_back && rewrite_ != nullptr && rewrite_uid_ == bucket.uid) abandon_rewrite();
  std::vector<Slot*> pinned;
  Status loaded;
  for (const auto& slot : bucket.slots) {
    const bool has_removed = slot->info().entries != slot->info().documents || slot->forgotten_entries() > 0;
    if (!has_removed && !brings_back) continue;
    loaded = load(*slot);
    if (!loaded) break;
    if (!std::exchange(slot->pinned, true)) pinned.push_back(slot.get());
  }
  std::uint64_t hidden = 0;
  if (loaded) {
    for (const auto& slot : bucket.slots) hidden += slot->set_forgotten(forgotten);
    bucket.forgotten = forgotten;
  }
  for (Slot* slot : pinned) slot->pinned = false;
  if (!loaded) return loaded;
  return hidden;
}

/// Makes the bucket's changed Forgotten durable; restores `before` if that fails.
Status Engine::keep_forgotten(Bucket& bucket, const spi::Forgotten& before) {
  Bucket* const changed = &bucket;
  const Status status = commit(edit_of(std::span(&changed, 1)));
  if (!status) static_cast<void>(change_forgotten(bucket, before));
  evict_indexes();
  return status;
}

Result<spi::RemovedEntries> Engine::count_removed(BucketId bucket, const spi::RemovedQuestion& question) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  spi::RemovedCounter counter(question);
  for (const auto& slot : found->slots) {
    if (slot->info().entries == slot->info().documents) continue;
    FJORD_TRY(load(*slot));
    for (const MetaEntry& entry : slot->index().entries()) {
      if (entry.removed() && slot->is_visible(entry)) counter.add(entry.timestamp(), entry.is_token());
    }
  }
  return counter.finish();
}

Status Engine::load(Slot& slot) {
  if (!slot.is_loaded()) {
    ++context_.stats.index_loads;
    FJORD_TRY(slot.load());
    if (slot.is_damaged()) {
      if (Bucket* bucket = find(slot.bucket())) note_damage(*bucket);
    }
    evict_indexes();
  }
  loaded_.touch(slot);
  return Status::ok();
}

void Engine::evict_indexes() {
  Slot* slot = loaded_.oldest();
  // Never unloads the index used last, because it is in use.
  while (context_.stats.index_bytes > context_.options.limits.index_bytes_max && slot != nullptr &&
         slot != loaded_.newest()) {
    Slot* next = loaded_.newer(*slot);
    if (slot->held().empty() && !slot->rewriting && !slot->is_damaged() && !slot->pinned) slot->unload();
    slot = next;
  }
}

void Engine::note_damage(Bucket& bucket) {
  bool fresh = false;
  for (const auto& slot : bucket.slots) {
    if (!slot->is_damaged() || slot->damage_reported) continue;
    slot->damage_reported = true;
    fresh = true;
  }
  if (fresh && std::find(damaged_.begin(), damaged_.end(), bucket.id) == damaged_.end()) damaged_.push_back(bucket.id);
}

std::vector<BucketId> Engine::take_damaged() { return std::exchange(damaged_, {}); }

Status Engine::mark_repaired(BucketId bucket) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  const bool was_damaged = found->is_damaged();
  for (const auto& slot : found->slots) {
    // Without a rewrite the unreadable entries would be found again when the files are next loaded.
    slot->wants_rewrite = slot->wants_rewrite || slot->is_damaged();
    slot->clear_damage();
  }
  found->damaged = false;
  if (!was_damaged) return Status::ok();
  return commit(edit_of(std::span(&found, 1)));
}

Result<bool> Engine::is_damaged(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->is_damaged();
}

Status Engine::health() const { return health_ ? journal_.health() : health_; }

Status Engine::load_for_operation(Slot& slot) {
  ++context_.stats.index_lookups;
  if (slot.is_loaded()) return load(slot);
  ++context_.stats.index_misses;
  const Stopwatch watch(context_.options.clock);
  Status status = load(slot);
  context_.stats.index_wait_us += watch.us();
  return status;
}

void Engine::apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, Durability durability) {
  FJORD_CHECK(writes.size() == results.size());
  const bool sync = durability == Durability::Sync || context_.options.durability == Durability::Sync;
  active_ = true;
  ++context_.changes;
  // Timing every batch would cost as much as a lookup does.
  constexpr unsigned kBatchesASample = 8;
  if (context_.options.clock != nullptr && ++batches_ % kBatchesASample == 0) sample_.emplace(context_.options.clock);
  write_batch(writes, results, sync);
  if (sample_) count_sample();
}

/// Adds the sample to the statistics. Each put counts its own search and an equal share of the rest of the batch.
void Engine::count_sample() {
  std::uint64_t searches = 0;
  for (const Sample::Put& put : sample_->puts) searches += put.search_us;
  const std::uint64_t whole = sample_->whole.us();
  std::uint64_t rest = whole - std::min(whole, searches);
  std::size_t left = sample_->puts.size();
  for (const Sample::Put& put : sample_->puts) {
    std::size_t index = 0;
    while (entry_class_bound(index) != 0 && put.entries >= entry_class_bound(index)) ++index;
    SampledPuts& sum = context_.stats.sampled_puts[index];
    const std::uint64_t share = rest / left--;
    rest -= share;
    ++sum.puts;
    sum.entries += put.entries;
    sum.us += put.search_us + share;
    sum.search_us += put.search_us;
  }
  sample_.reset();
}

/// Loads the slot for a write. In a sample it also measures the search for the id, which staging then finds in the
/// processor's cache.
Status Engine::find_place(Slot& slot, const GlobalId& gid) {
  if (!sample_) return load_for_operation(slot);
  const Stopwatch watch(context_.options.clock);
  Status status = load_for_operation(slot);
  if (status) static_cast<void>(slot.index().find(gid));
  sample_->puts.push_back({slot.info().entries, watch.us()});
  return status;
}

void Engine::write_batch(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, bool sync) {
  staged_.clear();
  if (const Status status = make_place_for_writes(writes); !status) {
    ++context_.stats.failed_writes;
    for (spi::WriteResult& result : results) result = {.status = status};
    return;
  }
  stage_all(writes, results);
  if (staged_.empty()) return;
  if (const Status status = write_journal(sync); !status) {
    ++context_.stats.failed_writes;
    take_back_all(results, status);
  }
  evict_indexes();
}

void Engine::stage_all(std::span<const spi::Write> writes, std::span<spi::WriteResult> results) {
  const SlotfileLimits& limits = context_.options.limits;
  Bucket* bucket = nullptr;
  for (std::uint32_t i = 0; i < writes.size(); ++i) {
    const spi::Write& write = writes[i];
    results[i] = {};
    if (bucket == nullptr || bucket->id != write.bucket) bucket = find(write.bucket);
    if (bucket == nullptr) {
      results[i].status = no_bucket(write.bucket);
      continue;
    }
    if (bucket_of(write.gid, write.bucket.used_bits()) != write.bucket) {
      results[i].status = spi::not_of_bucket(write);
      continue;
    }
    if (too_large(write)) {
      results[i].status = Status(StatusCode::TooLarge, "a document part may have 64 MiB at most");
      continue;
    }
    Slot& slot = bucket->slot_for(write.gid);
    results[i].status = find_place(slot, write.gid);
    if (!results[i].status) continue;
    StagedWrite staged{.undo = {}, .uid = bucket->uid, .result = i, .entry = {}};
    if (!slot.stage(write, results[i], staged.undo)) continue;
    staged.entry = slot.index().at(staged.undo.number);
    staged_.push_back(staged);
    if (slot.info().entries > limits.entries_max || slot.live_bytes() > limits.file_bytes_max) {
      overfull_.insert(bucket->uid);
    }
  }
}

Status Engine::write_journal(bool sync) {
  journal_meta_.resize(staged_.size() * kWriteMetaBytes);
  journal_parts_.clear();
  char* at = journal_meta_.data();
  for (const StagedWrite& staged : staged_) {
    const MetaEntry& entry = staged.entry;
    encode_write_meta(staged.uid, entry, at);
    at += kWriteMetaBytes;
    for (const Part part : {Part::Header, Part::Body}) {
      const std::string_view stored = staged.undo.slot->held_part(entry, part);
      if (!stored.empty()) journal_parts_.push_back(stored);
    }
  }
  return journal_.append(RecordType::Writes, journal_meta_, journal_parts_, sync);
}

void Engine::take_back_all(std::span<spi::WriteResult> results, const Status& why) {
  for (auto staged = staged_.rbegin(); staged != staged_.rend(); ++staged) {
    staged->undo.slot->take_back(staged->undo);
    results[staged->result] = {.status = why};
  }
  staged_.clear();
}

/// Makes room before a batch is staged, so that neither held memory nor the journal exceeds its limits.
Status Engine::make_place_for_writes(std::span<const spi::Write> writes) {
  FJORD_TRY(health());
  const SlotfileLimits& limits = context_.options.limits;
  if (context_.stats.held_bytes <= limits.held_bytes_max && journal_.bytes() <= 2 * limits.journal_bytes_max) {
    return Status::ok();
  }
  Status status;
  if (context_.stats.held_bytes > limits.held_bytes_max) {
    std::uint64_t wanted = 0;  // No more than this is flushed, because the batch has to wait for it.
    for (const spi::Write& write : writes) wanted += write.header.size() + write.body.size();
    status = flush_for_memory(limits.held_bytes_max - std::min(wanted, limits.held_bytes_max / 2));
  }
  if (status && journal_.bytes() > 2 * limits.journal_bytes_max) status = checkpoint();
  if (status) return status;
  FJORD_TRY(health());
  // Removes may exceed the limit, because they give space back.
  const bool only_removes = std::all_of(writes.begin(), writes.end(), [](const spi::Write& w) { return w.remove; });
  if (only_removes && context_.stats.held_bytes <= 2 * limits.held_bytes_max) return Status::ok();
  return status;
}

Result<spi::StoredDocument> Engine::get(BucketId bucket, const GlobalId& gid, spi::Parts parts) {
  active_ = true;
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  Slot& slot = found->slot_for(gid);
  FJORD_TRY(load_for_operation(slot));
  const std::uint32_t number = slot.find_visible(gid);
  if (number == SlotIndex::kNone) {
    if (found->damaged || slot.is_uncertain(gid)) {
      return Status(StatusCode::Corruption,
                    gid.to_string() + " may have been lost in " + bucket.to_string() + "; another replica knows");
    }
    return Status(StatusCode::NotFound, gid.to_string() + " is not in " + bucket.to_string());
  }
  const MetaEntry& entry = slot.index().at(number);
  spi::StoredDocument document{.timestamp = entry.timestamp(), .removed = entry.removed(), .header = {}, .body = {}};
  if (document.removed) return document;
  const bool counts = !entry.held() && context_.options.map_files;
  const unsigned waits = slot.read_ahead(entry, parts == spi::Parts::All);
  const Stopwatch watch(waits > 0 ? context_.options.clock : nullptr);
  Result<std::string_view> part = slot.read_part(number, Part::Header, context_.part_buffers[0]);
  if (part) {
    document.header = *part;
    if (parts == spi::Parts::All) part = slot.read_part(number, Part::Body, context_.part_buffers[1]);
  }
  if (counts) ++context_.stats.document_reads;
  context_.stats.document_misses += waits;
  context_.stats.document_wait_us += waits * watch.us();
  if (!part) {
    if (slot.is_damaged()) note_damage(*found);
    return part.error();
  }
  if (parts == spi::Parts::All) document.body = *part;
  return document;
}

Result<std::unique_ptr<spi::DocumentIterator>> Engine::iterate(BucketId bucket, const spi::IterateOptions& options) {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  auto iterator = std::make_unique<SlotfileIterator>(*this, found->uid, bucket, options);
  if (options.snapshot) FJORD_TRY(iterator->take_snapshot());
  return std::unique_ptr<spi::DocumentIterator>(std::move(iterator));
}

Result<std::vector<spi::EntryMeta>> Engine::list_entries(BucketId bucket) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  std::vector<spi::EntryMeta> result;
  result.reserve(found->info().entries);
  FJORD_TRY(for_each_entry(bucket, [&](const spi::EntryMeta& entry) { result.push_back(entry); }));
  std::sort(result.begin(), result.end(),
            [](const spi::EntryMeta& a, const spi::EntryMeta& b) { return a.gid < b.gid; });
  return result;
}

Status Engine::for_each_entry(BucketId bucket, const std::function<void(const spi::EntryMeta&)>& sink) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  for (const auto& slot : found->slots) {
    FJORD_TRY(load(*slot));
    for (const MetaEntry& entry : slot->index().entries()) {
      if (!slot->is_visible(entry)) continue;
      sink({.gid = entry.gid, .timestamp = entry.timestamp(), .removed = entry.removed()});
    }
  }
  return Status::ok();
}

Status Engine::for_each_newer(BucketId bucket, Timestamp after,
                              const std::function<void(const spi::EntryMeta&)>& sink) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  for (const auto& slot : found->slots) {
    if (slot->info().max_timestamp_us <= after.us) continue;
    FJORD_TRY(load(*slot));
    for (const MetaEntry& entry : slot->index().entries()) {
      if (entry.timestamp_us <= after.us || !slot->is_visible(entry)) continue;
      sink({.gid = entry.gid, .timestamp = entry.timestamp(), .removed = entry.removed()});
    }
  }
  return Status::ok();
}

Result<std::size_t> Engine::read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                         std::size_t max_bytes) {
  Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  std::size_t done = 0;
  for (; done < gids.size() && (done == 0 || into.size() < max_bytes); ++done) {
    if (const Status status = add_entry(*found, gids[done], into); !status) {
      // The entries read so far are returned first. The next call begins with this entry and reports the error.
      if (done > 0) break;
      return status;
    }
  }
  return done;
}

Status Engine::add_entry(Bucket& bucket, const GlobalId& gid, DocBlockBuilder& into) {
  Slot& slot = bucket.slot_for(gid);
  FJORD_TRY(load(slot));
  const std::uint32_t number = slot.find_visible(gid);
  if (number == SlotIndex::kNone) return Status::ok();
  const MetaEntry entry = slot.index().at(number);
  slot.read_ahead(entry, true);
  const Result<std::string_view> header = slot.read_part(number, Part::Header, context_.part_buffers[0]);
  const Result<std::string_view> body =
      header ? slot.read_part(number, Part::Body, context_.part_buffers[1]) : header.error();
  if (!body) {
    if (slot.is_damaged()) note_damage(bucket);
    return body.error();
  }
  EntryView view{
      .gid = gid, .timestamp = entry.timestamp(), .removed = entry.removed(), .id = {}, .header = {}, .body = *body};
  (entry.removed() ? view.id : view.header) = *header;
  const std::size_t size = into.size();
  const std::size_t count = into.count();
  const LostPages lost;
  into.add(view);
  if (!lost.any()) return Status::ok();
  into.rewind(size, count);
  return {StatusCode::Corruption, gid.to_string() + ": a part of its file was cut off while it was read"};
}

SlotfileStats Engine::stats() const {
  SlotfileStats stats = context_.stats;
  std::map<std::uint32_t, std::uint64_t> files;
  for (const auto& [id, bucket] : buckets_) {
    stats.slots += bucket->slots.size();
    if (bucket->is_damaged()) ++stats.damaged_buckets;
    for (const auto& slot : bucket->slots) {
      stats.entries += slot->info().entries;
      stats.live_bytes += slot->live_bytes();
      for (const auto& file : slot->files()) files[file->number()] = file->size();
    }
  }
  stats.slotfiles = files.size();
  for (const auto& [number, size] : files) stats.file_bytes += size;
  stats.file_bytes += retired_bytes_;
  stats.journal_bytes = journal_.bytes();
  stats.open_files = context_.files.open_files();
  return stats;
}

Status Engine::set_limits(const SlotfileLimits& limits) {
  FJORD_TRY(check_limits(limits));
  context_.options.limits = limits;
  evict_indexes();
  return Status::ok();
}

Result<unsigned> Engine::slots_of(BucketId bucket) const {
  const Bucket* found = find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return static_cast<unsigned>(found->slots.size());
}

}  // namespace slotfile

Result<std::unique_ptr<SlotfileProvider>> SlotfileProvider::open(Env& env, const SlotfileOptions& options) {
  FJORD_TRY(slotfile::check_limits(options.limits));
  constexpr unsigned kStripesMost = 256;
  constexpr std::uint64_t kSegmentLeast = 4096;
  if (!std::has_single_bit(options.stripes) || options.stripe >= options.stripes || options.stripes > kStripesMost) {
    return Status(StatusCode::InvalidArgument, "stripes must be a power of two up to 256, and stripe less than it");
  }
  if (options.open_files_max == 0 || options.directory.empty() || options.journal_segment_bytes < kSegmentLeast) {
    return Status(StatusCode::InvalidArgument,
                  "open_files_max and directory must be set, and journal_segment_bytes be at least 4 KiB");
  }
  auto engine = std::make_unique<slotfile::Engine>(env, options);
  FJORD_TRY(engine->open_all());
  return std::unique_ptr<SlotfileProvider>(std::move(engine));
}

Result<std::optional<unsigned>> SlotfileProvider::stripes_of(Env& env, const std::string& directory) {
  SlotfileOptions options;
  options.directory = directory;
  slotfile::EngineContext context(env, options);
  FJORD_TRY_ASSIGN(const slotfile::LoadedCatalog loaded, slotfile::load_catalog(context));
  return loaded.found ? std::optional(loaded.stripes) : std::nullopt;
}

Result<std::unique_ptr<spi::PersistenceProvider>> open_slotfile_provider(Env& env, const SlotfileOptions& options) {
  FJORD_TRY_ASSIGN(auto provider, SlotfileProvider::open(env, options));
  return std::unique_ptr<spi::PersistenceProvider>(std::move(provider));
}

}  // namespace fjord
