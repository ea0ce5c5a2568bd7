#include "engine_metrics.h"

namespace fjord::slotfile {

EngineMetrics::EngineMetrics(MetricRegistry& registry, unsigned stripe) {
  const auto row = [&](const char* name, const char* help, std::uint64_t SlotfileStats::*field) {
    rows_.push_back(
        {registry.gauge(std::string("fjord_slotfile_") + name, help, {{"stripe", std::to_string(stripe)}}), field});
  };
  row("files", "Slotfiles", &SlotfileStats::slotfiles);
  row("slots", "Slots of all buckets", &SlotfileStats::slots);
  row("entries", "Newest versions, removes included", &SlotfileStats::entries);
  row("index_bytes", "Memory of indexes", &SlotfileStats::index_bytes);
  row("held_bytes", "Written and not yet in slotfiles", &SlotfileStats::held_bytes);
  row("live_bytes", "What the newest versions take in slotfiles", &SlotfileStats::live_bytes);
  row("file_bytes", "Size of the slotfiles", &SlotfileStats::file_bytes);
  row("journal_bytes", "Journal that would be replayed", &SlotfileStats::journal_bytes);
  row("open_files", "Slotfiles that are open", &SlotfileStats::open_files);
  row("damaged_buckets", "Buckets that have lost something", &SlotfileStats::damaged_buckets);
  row("bad_entries", "Metadata entries that did not verify since the start", &SlotfileStats::bad_entries);
  row("corrupt_reads", "Document parts that did not verify since the start", &SlotfileStats::corrupt_reads);
  row("failed_writes", "Writes refused by the file system since the start", &SlotfileStats::failed_writes);
  row("replayed_bytes", "Journal that was replayed at the start", &SlotfileStats::replayed_bytes);
  row("flushed_bytes", "Written to slotfiles in runs since the start", &SlotfileStats::flushed_bytes);
  row("rewritten_bytes", "Copied by compaction and after splits since the start", &SlotfileStats::rewritten_bytes);
  row("checkpoints", "Times that the journal was emptied since the start", &SlotfileStats::checkpoints);
  row("splits", "Slots split since the start", &SlotfileStats::splits);
  row("index_loads", "Indexes read from slotfiles since the start", &SlotfileStats::index_loads);
  row("scrubbed_bytes", "Read by the scrub since the start", &SlotfileStats::scrubbed_bytes);
  row("scrub_passes", "Times that the scrub has read everything since the start", &SlotfileStats::scrub_passes);
  row("index_lookups", "Operations on single documents that needed an index", &SlotfileStats::index_lookups);
  row("index_misses", "Of these, with the index not in memory", &SlotfileStats::index_misses);
  row("index_wait_us", "For how long these waited for it, in microseconds", &SlotfileStats::index_wait_us);
  row("document_reads", "Single documents read from slotfiles", &SlotfileStats::document_reads);
  row("document_misses", "Of these, from the medium; estimated", &SlotfileStats::document_misses);
  row("document_wait_us", "For how long these waited for it, in microseconds", &SlotfileStats::document_wait_us);
  const auto put_row = [&](const char* name, const char* help, std::uint64_t SampledPuts::*field) {
    for (std::size_t i = 0; i < kEntryClasses; ++i) {
      const std::uint64_t bound = entry_class_bound(i);
      const Labels labels = {{"entries_below", bound == 0 ? "inf" : std::to_string(bound)}};
      put_rows_.push_back({registry.counter(std::string("fjord_slotfile_sampled_") + name, help, labels), i, field});
    }
  };
  put_row("puts_total", "Writes of which the time was taken, by the size of their slotfile", &SampledPuts::puts);
  put_row("put_entries_total", "Entries of their slotfiles, added up", &SampledPuts::entries);
  put_row("put_us_total", "How long they took in the engine, in microseconds", &SampledPuts::us);
  put_row("put_search_us_total", "Of that, for finding their entry, index loads included", &SampledPuts::search_us);
}

void EngineMetrics::update(const SlotfileStats& stats) {
  for (const Row& row : rows_) row.gauge.set(static_cast<double>(stats.*row.field));
  for (const PutRow& row : put_rows_) {
    row.counter.add(stats.sampled_puts[row.index].*row.field - told_[row.index].*row.field);
  }
  told_ = stats.sampled_puts;
}

}  // namespace fjord::slotfile
