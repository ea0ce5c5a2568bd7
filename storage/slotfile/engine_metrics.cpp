#include "engine_metrics.h"

namespace fjord::slotfile {

EngineMetrics::EngineMetrics(MetricRegistry& registry, unsigned stripe) {
  // The calls below give each name in full, because docs/reference/metrics.md is generated from these calls.
  const auto gauge = [&](const char* name, const char* help, std::uint64_t SlotfileStats::*field) {
    rows_.push_back({registry.gauge(name, help, {{"stripe", std::to_string(stripe)}}), field});
  };
  gauge("fjord_slotfile_files", "Slotfiles", &SlotfileStats::slotfiles);
  gauge("fjord_slotfile_slots", "Slots of all buckets", &SlotfileStats::slots);
  gauge("fjord_slotfile_entries", "Newest versions, removes included", &SlotfileStats::entries);
  gauge("fjord_slotfile_index_bytes", "Memory of indexes", &SlotfileStats::index_bytes);
  gauge("fjord_slotfile_held_bytes", "Written and not yet in slotfiles", &SlotfileStats::held_bytes);
  gauge("fjord_slotfile_live_bytes", "What the newest versions take in slotfiles", &SlotfileStats::live_bytes);
  gauge("fjord_slotfile_file_bytes", "Size of the slotfiles", &SlotfileStats::file_bytes);
  gauge("fjord_slotfile_journal_bytes", "Journal that would be replayed", &SlotfileStats::journal_bytes);
  gauge("fjord_slotfile_open_files", "Slotfiles that are open", &SlotfileStats::open_files);
  gauge("fjord_slotfile_damaged_buckets", "Buckets that have lost something", &SlotfileStats::damaged_buckets);
  gauge("fjord_slotfile_bad_entries", "Metadata entries that did not verify since the start",
        &SlotfileStats::bad_entries);
  gauge("fjord_slotfile_corrupt_reads", "Document parts that did not verify since the start",
        &SlotfileStats::corrupt_reads);
  gauge("fjord_slotfile_failed_writes", "Writes refused by the file system since the start",
        &SlotfileStats::failed_writes);
  gauge("fjord_slotfile_replayed_bytes", "Journal that was replayed at the start", &SlotfileStats::replayed_bytes);
  gauge("fjord_slotfile_flushed_bytes", "Written to slotfiles in runs since the start", &SlotfileStats::flushed_bytes);
  gauge("fjord_slotfile_rewritten_bytes", "Copied by compaction and after splits since the start",
        &SlotfileStats::rewritten_bytes);
  gauge("fjord_slotfile_checkpoints", "Times that the journal was emptied since the start",
        &SlotfileStats::checkpoints);
  gauge("fjord_slotfile_splits", "Slots split since the start", &SlotfileStats::splits);
  gauge("fjord_slotfile_index_loads", "Indexes read from slotfiles since the start", &SlotfileStats::index_loads);
  gauge("fjord_slotfile_scrubbed_bytes", "Read by the scrub since the start", &SlotfileStats::scrubbed_bytes);
  gauge("fjord_slotfile_scrub_passes", "Times that the scrub has read everything since the start",
        &SlotfileStats::scrub_passes);
  gauge("fjord_slotfile_index_lookups", "Operations on single documents that needed an index",
        &SlotfileStats::index_lookups);
  gauge("fjord_slotfile_index_misses", "Of these, with the index not in memory", &SlotfileStats::index_misses);
  gauge("fjord_slotfile_index_wait_us", "For how long these waited for it, in microseconds",
        &SlotfileStats::index_wait_us);
  gauge("fjord_slotfile_document_reads", "Single documents read from slotfiles", &SlotfileStats::document_reads);
  gauge("fjord_slotfile_document_misses", "Of these, from the medium; estimated", &SlotfileStats::document_misses);
  gauge("fjord_slotfile_document_wait_us", "For how long these waited for it, in microseconds",
        &SlotfileStats::document_wait_us);
  const auto counter = [&](const char* name, const char* help, std::uint64_t SampledPuts::*field) {
    for (std::size_t i = 0; i < kEntryClasses; ++i) {
      const std::uint64_t bound = entry_class_bound(i);
      const Labels labels = {{"entries_below", bound == 0 ? "inf" : std::to_string(bound)}};
      put_rows_.push_back({registry.counter(name, help, labels), i, field});
    }
  };
  counter("fjord_slotfile_sampled_puts_total", "Writes of which the time was taken, by the size of their slotfile",
          &SampledPuts::puts);
  counter("fjord_slotfile_sampled_put_entries_total", "Entries of their slotfiles, added up", &SampledPuts::entries);
  counter("fjord_slotfile_sampled_put_us_total", "How long they took in the engine, in microseconds", &SampledPuts::us);
  counter("fjord_slotfile_sampled_put_search_us_total", "Of that, for finding their entry, index loads included",
          &SampledPuts::search_us);
}

void EngineMetrics::update(const SlotfileStats& stats) {
  for (const Row& row : rows_) row.gauge.set(static_cast<double>(stats.*row.field));
  for (const PutRow& row : put_rows_) {
    row.counter.add(stats.sampled_puts[row.index].*row.field - told_[row.index].*row.field);
  }
  told_ = stats.sampled_puts;
}

}  // namespace fjord::slotfile
