#include "batch_writer.h"

#include <algorithm>

namespace fjord::slotfile {

namespace {

bool too_large(const spi::Write& write) {
  return write.header.size() > spi::kPartBytesMax || write.body.size() > spi::kPartBytesMax ||
         write.id.size() > spi::kPartBytesMax;
}

}  // namespace

void BatchWriter::apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, bool sync) {
  ++context_.changes;
  // One of this many batches is timed, because timing each would cost as much as a lookup.
  constexpr unsigned kBatchesASample = 8;
  if (context_.options.clock != nullptr && ++batches_ % kBatchesASample == 0) sample_.emplace(context_.options.clock);
  write_batch(writes, results, sync);
  if (sample_) count_sample();
}

/// Adds the sample to the statistics. Each put counts the time of its own search and an equal share of the rest of the
/// batch.
void BatchWriter::count_sample() {
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

Status BatchWriter::load_for_operation(Slot& slot) {
  ++context_.stats.index_lookups;
  if (slot.is_loaded()) return table_.load(slot);
  ++context_.stats.index_misses;
  const Stopwatch watch(context_.options.clock);
  Status status = table_.load(slot);
  context_.stats.index_wait_us += watch.us();
  return status;
}

/// Loads the slot for a write. For a sampled batch, also measures the search for the id; staging then finds the result
/// in the processor's cache.
Status BatchWriter::find_place(Slot& slot, const GlobalId& gid) {
  if (!sample_) return load_for_operation(slot);
  const Stopwatch watch(context_.options.clock);
  Status status = load_for_operation(slot);
  if (status) static_cast<void>(slot.index().find(gid));
  sample_->puts.push_back({slot.info().entries, watch.us()});
  return status;
}

void BatchWriter::write_batch(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, bool sync) {
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
  table_.evict_indexes();
}

/// Hints that the writes are staged next.
void BatchWriter::prefetch(std::span<const spi::Write> writes) {
  table_.for_each_loaded_slot(writes, [](Slot& slot, const GlobalId& gid) { slot.index().prefetch_place(gid); });
  table_.for_each_loaded_slot(writes, [](Slot& slot, const GlobalId& gid) { slot.index().prefetch_entry(gid); });
}

void BatchWriter::stage_all(std::span<const spi::Write> writes, std::span<spi::WriteResult> results) {
  constexpr std::size_t kAhead = 16;
  const SlotfileLimits& limits = context_.options.limits;
  Bucket* bucket = nullptr;
  for (std::uint32_t i = 0; i < writes.size(); ++i) {
    if (i % kAhead == 0) prefetch(writes.subspan(i, std::min(kAhead, writes.size() - i)));
    const spi::Write& write = writes[i];
    results[i] = {};
    if (bucket == nullptr || bucket->id != write.bucket) bucket = table_.find(write.bucket);
    if (bucket == nullptr) {
      results[i].status = no_bucket(write.bucket);
      continue;
    }
    if (bucket_of(write.gid, write.bucket.used_bits()) != write.bucket) {
      results[i].status = spi::not_of_bucket(write);
      continue;
    }
    if (too_large(write)) {
      results[i].status = Status(StatusCode::TooLarge, "a document part may have 64 MiB at most",
                                 {.limit = std::to_string(spi::kPartBytesMax)});
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
      structure_.note_overfull(bucket->uid);
    }
  }
}

Status BatchWriter::write_journal(bool sync) {
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

void BatchWriter::take_back_all(std::span<spi::WriteResult> results, const Status& why) {
  for (auto staged = staged_.rbegin(); staged != staged_.rend(); ++staged) {
    staged->undo.slot->take_back(staged->undo);
    results[staged->result] = {.status = why};
  }
  staged_.clear();
}

/// Makes room for a batch before it is staged, so that neither held memory nor the journal exceeds its limits.
Status BatchWriter::make_place_for_writes(std::span<const spi::Write> writes) {
  FJORD_TRY(table_.health());
  const SlotfileLimits& limits = context_.options.limits;
  if (context_.stats.held_bytes <= limits.held_bytes_max && journal_.bytes() <= 2 * limits.journal_bytes_max) {
    return Status::ok();
  }
  Status status;
  if (context_.stats.held_bytes > limits.held_bytes_max) {
    std::uint64_t wanted = 0;  // At most this many bytes are flushed, because the batch has to wait for the flush.
    for (const spi::Write& write : writes) wanted += write.header.size() + write.body.size();
    status = checkpointer_.flush_for_memory(limits.held_bytes_max - std::min(wanted, limits.held_bytes_max / 2));
  }
  if (status && journal_.bytes() > 2 * limits.journal_bytes_max) status = checkpointer_.run();
  if (status) return status;
  FJORD_TRY(table_.health());
  // A batch of removes may exceed the limit, because removes give space back.
  const bool only_removes = std::all_of(writes.begin(), writes.end(), [](const spi::Write& w) { return w.remove; });
  if (only_removes && context_.stats.held_bytes <= 2 * limits.held_bytes_max) return Status::ok();
  return status;
}

}  // namespace fjord::slotfile
