#include "engine.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/common/lost_pages.h"
#include "recovery.h"
#include "slotfile_iterator.h"

namespace fjord {

namespace slotfile {

namespace {

constexpr Duration kIdle = std::chrono::seconds(1);
/// After this time without writes and reads, the content of the journal is written to slotfiles, if it is large enough.
constexpr Duration kQuiet = std::chrono::milliseconds(50);
constexpr std::uint64_t kWorthACheckpoint = 1 << 20;
/// On a full disk, checkpoints begin at once and with any amount of work, but at most once in this time.
constexpr Duration kBetweenUrgentCheckpoints = std::chrono::seconds(1);
/// Checkpoints that are wanted for another reason than their amount of work begin at most once in this time.
constexpr Duration kBetweenWantedCheckpoints = std::chrono::seconds(1);
constexpr Duration kBetweenMetrics = std::chrono::seconds(2);
constexpr Duration kWhileSyncing = std::chrono::milliseconds(2);
constexpr Duration kAfterFailure = std::chrono::seconds(1);

}  // namespace

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

Status Engine::recover() { return Recovery(table_, checkpointer_).run(); }

Status Engine::create_bucket(BucketId bucket) {
  if (table_.find(bucket) != nullptr) return Status::ok();
  if (!table_.is_ours(bucket)) {
    return Status(StatusCode::InvalidArgument, bucket.to_string() + " belongs to another stripe");
  }
  auto made = std::make_unique<Bucket>();
  made->id = bucket;
  made->uid = table_.take_uid();
  made->slots.push_back(std::make_unique<Slot>(context_, table_.loaded(), bucket, 0, 0));
  made->index_cells();
  Bucket* const raw = made.get();
  FJORD_TRY(table_.commit(table_.edit_of(std::span(&raw, 1))));
  table_.adopt(std::move(made));
  return Status::ok();
}

Status Engine::delete_bucket(BucketId bucket) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return Status::ok();
  Edit edit = table_.edit_of({});
  edit.removed.push_back(found->uid);
  FJORD_TRY(table_.commit(std::move(edit)));
  structure_.drop(*found);
  return Status::ok();
}

Result<BucketInfo> Engine::bucket_info(BucketId bucket) const {
  const Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->info();
}

Result<ReplicaSet> Engine::replica_set(BucketId bucket) const {
  const Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->replicas;
}

Status Engine::set_replica_set(BucketId bucket, const ReplicaSet& set) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  ReplicaSet before = std::exchange(found->replicas, set);
  const Status status = table_.commit(table_.edit_of(std::span(&found, 1)));
  if (!status) found->replicas = std::move(before);
  return status;
}

Result<spi::Forgotten> Engine::forgotten(BucketId bucket) const {
  const Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->forgotten;
}

Status Engine::forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) {
  Bucket* found = table_.find(bucket);
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
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  const spi::Forgotten before = found->forgotten;
  if (forgotten == before) return Status::ok();
  FJORD_TRY(change_forgotten(*found, forgotten).status());
  return keep_forgotten(*found, before);
}

/// Sets up to which times the bucket has dropped entries. Hidden entries stay in the index and in files until their
/// slot is rewritten, because there they hide older versions of their documents. Returns the sum of the hashes of the
/// entries hidden by this call.
Result<std::uint64_t> Engine::change_forgotten(Bucket& bucket, const spi::Forgotten& forgotten) {
  const bool brings_back = forgotten.removes < bucket.forgotten.removes || forgotten.tokens < bucket.forgotten.tokens;
  if (brings_back) rewrites_.abandon_of(bucket.uid);
  std::vector<Slot*> pinned;
  Status loaded;
  for (const auto& slot : bucket.slots) {
    const bool has_removed = slot->info().entries != slot->info().documents || slot->forgotten_entries() > 0;
    if (!has_removed && !brings_back) continue;
    loaded = table_.load(*slot);
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
  const Status status = table_.commit(table_.edit_of(std::span(&changed, 1)));
  if (!status) static_cast<void>(change_forgotten(bucket, before));
  table_.evict_indexes();
  return status;
}

Result<spi::RemovedEntries> Engine::count_removed(BucketId bucket, const spi::RemovedQuestion& question) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  spi::RemovedCounter counter(question);
  for (const auto& slot : found->slots) {
    if (slot->info().entries == slot->info().documents) continue;
    FJORD_TRY(table_.load(*slot));
    for (const MetaEntry& entry : slot->index().entries()) {
      if (entry.removed() && slot->is_visible(entry)) counter.add(entry.timestamp(), entry.is_token());
    }
  }
  return counter.finish();
}

Result<bool> Engine::is_damaged(BucketId bucket) const {
  const Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return found->is_damaged();
}

void Engine::apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, Durability durability) {
  FJORD_CHECK(writes.size() == results.size());
  active_ = true;
  writer_.apply(writes, results, durability == Durability::Sync || context_.options.durability == Durability::Sync);
}

Result<spi::StoredDocument> Engine::get(BucketId bucket, const GlobalId& gid, spi::Parts parts) {
  active_ = true;
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  Slot& slot = found->slot_for(gid);
  FJORD_TRY(writer_.load_for_operation(slot));
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
    if (slot.is_damaged()) table_.note_damage(*found);
    return part.error();
  }
  if (parts == spi::Parts::All) document.body = *part;
  return document;
}

void Engine::prefetch(std::span<const spi::DocumentPlace> documents) {
  // What is asked for should still be in the processor's caches when it is read.
  constexpr std::size_t kDocumentsMax = 64;
  const auto next = documents.first(std::min(kDocumentsMax, documents.size()));
  table_.for_each_loaded_slot(next, [](Slot& slot, const GlobalId& gid) { slot.index().prefetch_place(gid); });
  table_.for_each_loaded_slot(next, [](Slot& slot, const GlobalId& gid) { slot.index().prefetch_entry(gid); });
  table_.for_each_loaded_slot(next, [](Slot& slot, const GlobalId& gid) { slot.prefetch_parts(gid); });
}

Result<std::unique_ptr<spi::DocumentIterator>> Engine::iterate(BucketId bucket, const spi::IterateOptions& options) {
  const Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  auto iterator = std::make_unique<SlotfileIterator>(table_, found->uid, bucket, options);
  if (options.snapshot) FJORD_TRY(iterator->take_snapshot());
  return std::unique_ptr<spi::DocumentIterator>(std::move(iterator));
}

Result<std::vector<spi::EntryMeta>> Engine::list_entries(BucketId bucket) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  std::vector<spi::EntryMeta> result;
  result.reserve(found->info().entries);
  FJORD_TRY(for_each_entry(bucket, [&](const spi::EntryMeta& entry) { result.push_back(entry); }));
  std::sort(result.begin(), result.end(),
            [](const spi::EntryMeta& a, const spi::EntryMeta& b) { return a.gid < b.gid; });
  return result;
}

Status Engine::for_each_entry(BucketId bucket, const std::function<void(const spi::EntryMeta&)>& sink) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  for (const auto& slot : found->slots) {
    FJORD_TRY(table_.load(*slot));
    for (const MetaEntry& entry : slot->index().entries()) {
      if (!slot->is_visible(entry)) continue;
      sink({.gid = entry.gid, .timestamp = entry.timestamp(), .removed = entry.removed()});
    }
  }
  return Status::ok();
}

Status Engine::for_each_newer(BucketId bucket, Timestamp after,
                              const std::function<void(const spi::EntryMeta&)>& sink) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  for (const auto& slot : found->slots) {
    if (slot->info().max_timestamp_us <= after.us) continue;
    FJORD_TRY(table_.load(*slot));
    for (const MetaEntry& entry : slot->index().entries()) {
      if (entry.timestamp_us <= after.us || !slot->is_visible(entry)) continue;
      sink({.gid = entry.gid, .timestamp = entry.timestamp(), .removed = entry.removed()});
    }
  }
  return Status::ok();
}

namespace {

/// Appends the entry of `gid`, if there is one. Errors: Corruption, IoError.
Status add_entry(BucketTable& table, Bucket& bucket, const GlobalId& gid, DocBlockBuilder& into) {
  EngineContext& context = table.context();
  Slot& slot = bucket.slot_for(gid);
  FJORD_TRY(table.load(slot));
  const std::uint32_t number = slot.find_visible(gid);
  if (number == SlotIndex::kNone) return Status::ok();
  const MetaEntry entry = slot.index().at(number);
  slot.read_ahead(entry, true);
  const Result<std::string_view> header = slot.read_part(number, Part::Header, context.part_buffers[0]);
  const Result<std::string_view> body =
      header ? slot.read_part(number, Part::Body, context.part_buffers[1]) : header.error();
  if (!body) {
    if (slot.is_damaged()) table.note_damage(bucket);
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

}  // namespace

Result<std::size_t> Engine::read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                         std::size_t max_bytes) {
  Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  std::size_t done = 0;
  for (; done < gids.size() && (done == 0 || into.size() < max_bytes); ++done) {
    if (const Status status = add_entry(table_, *found, gids[done], into); !status) {
      // The entries read so far are returned first. The next call begins with this entry and reports the error.
      if (done > 0) break;
      return status;
    }
  }
  return done;
}

spi::Maintenance Engine::maintain(MonotonicTime now) {
  context_.now = now;
  follow_settings(now);
  if (!table_.health()) return {.more = false, .next_in = kIdle};
  repair_.save_damage(now);
  const bool busy = std::exchange(active_, false);
  if (busy) quiet_since_ = now;
  const bool quiet = now >= quiet_since_ + kQuiet;
  const bool leftover = journal_.bytes() > kWorthACheckpoint || table_.retired().bytes() > kWorthACheckpoint ||
                        (table_.wants_checkpoint && now >= begun_at_ + kBetweenWantedCheckpoints);
  if (now < retry_at_) return {.more = false, .next_in = retry_at_ - now};
  // The disk may be so full that a checkpoint cannot wait. A checkpoint gives space back: it removes unused files and
  // writes removes to slotfiles, so that the slots can be rewritten (slots with held entries cannot).
  const bool gives_space_back = short_of_space_ && now >= begun_at_ + kBetweenUrgentCheckpoints &&
                                (context_.stats.held_bytes > 0 || table_.retired().bytes() > 0);
  const bool waits = checkpointer_.is_waiting() || rewrites_.is_waiting();
  if (structure_.split_some_slot()) return {.more = true, .next_in = kIdle};
  Status status;
  bool more = true;
  Duration next_in = kIdle;
  if (checkpointer_.is_running() && !checkpointer_.is_waiting() &&
      !(checkpointer_.is_flushing() && rewrites_.is_active())) {
    status = checkpointer_.step();
  } else if (rewrites_.is_active() && !rewrites_.is_waiting()) {
    status = rewrites_.step();
  } else if (waits) {
    return {.more = false, .next_in = kWhileSyncing};
  } else if (!checkpointer_.is_due() && !gives_space_back && rewrites_.pick_suspect()) {
    more = true;
  } else if (!checkpointer_.is_running() && (checkpointer_.is_due() || (quiet && leftover) || gives_space_back)) {
    begun_at_ = now;
    status = checkpointer_.begin();
  } else {
    more = rewrites_.pick(!quiet && !short_of_space_) || structure_.join_some_slots();
    if (!more) next_in = std::min(next_in, scrubber_.step(now));
    if (!more && leftover) next_in = std::min(next_in, kQuiet);
  }
  if (!status) {
    background_.note_failure(status, now);
    retry_at_ = now + kAfterFailure;
    return {.more = false, .next_in = kAfterFailure};
  }
  background_.note_success(now);
  return {.more = more, .next_in = next_in};
}

/// Applies changed limits, and reports the statistics at intervals.
void Engine::follow_settings(MonotonicTime now) {
  if (context_.options.tunables != nullptr) {
    const SlotfileLimits limits = context_.options.tunables->of_stripe(context_.options.stripes);
    if (limits != context_.options.limits) {
      if (const Status status = set_limits(limits); !status) log::warning("slotfile", "{}", status.to_string());
    }
  }
  if (!metrics_ || now < metrics_due_) return;
  metrics_due_ = now + kBetweenMetrics;
  metrics_->update(stats());
}

SlotfileStats Engine::stats() const {
  SlotfileStats stats = context_.stats;
  std::map<std::uint32_t, std::uint64_t> files;
  for (const auto& [uid, bucket] : table_.by_uid()) {
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
  stats.file_bytes += table_.retired().bytes();
  stats.journal_bytes = journal_.bytes();
  stats.open_files = context_.files.open_files();
  return stats;
}

Status Engine::set_limits(const SlotfileLimits& limits) {
  FJORD_TRY(check_limits(limits));
  context_.options.limits = limits;
  table_.evict_indexes();
  return Status::ok();
}

Result<unsigned> Engine::slots_of(BucketId bucket) const {
  const Bucket* found = table_.find(bucket);
  if (found == nullptr) return no_bucket(bucket);
  return static_cast<unsigned>(found->slots.size());
}

}  // namespace slotfile

}  // namespace fjord
