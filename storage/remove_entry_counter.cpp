#include "remove_entry_counter.h"

#include <algorithm>

namespace fjord::storage {
namespace {

// After looking at this many entries, a pass counts no further bucket, because the stripe serves nothing else while it
// counts.
constexpr std::uint64_t kEntriesOfPass = 200'000;

Gauge& kept(MetricRegistry& registry, const char* kind) {
  return registry.gauge("fjord_storage_removed_entries", "Removed entries that are kept, as last counted",
                        {{"kind", kind}});
}

Gauge& due(MetricRegistry& registry, const char* kind) {
  return registry.gauge("fjord_storage_removed_entries_due",
                        "Removed entries that are older than they have to be kept, as last counted", {{"kind", kind}});
}

}  // namespace

RemoveEntryCounter::RemoveEntryCounter(MetricRegistry& registry, spi::PersistenceProvider& provider, Duration interval)
    : provider_(provider),
      interval_(interval),
      removes_(kept(registry, "remove")),
      tokens_(kept(registry, "token")),
      removes_due_(due(registry, "remove")),
      tokens_due_(due(registry, "token")) {}

RemoveEntryCounter::~RemoveEntryCounter() {
  for (const auto& [bucket, counted] : counted_) show(counted.entries, -1);
}

void RemoveEntryCounter::show(const spi::RemovedEntries& counted, double sign) {
  removes_.add(sign * static_cast<double>(counted.removes));
  tokens_.add(sign * static_cast<double>(counted.tokens));
  removes_due_.add(sign * static_cast<double>(counted.removes_due));
  tokens_due_.add(sign * static_cast<double>(counted.tokens_due));
}

void RemoveEntryCounter::judge(const rpc::GetBucketInfo& question, MonotonicTime now, rpc::BucketReport& report) {
  const bool has_removed = report.info.entries != report.info.documents;
  const auto known = counted_.find(report.bucket);
  if (!has_removed && known == counted_.end()) return;
  Counted& counted = counted_[report.bucket];
  const bool is_old = !counted.is_valid || now - counted.at >= interval_;
  const bool may_be_due = counted.entries.oldest_remove.us < question.removes_before_us ||
                          counted.entries.oldest_token.us < question.tokens_before_us;
  const bool counts = is_old || (may_be_due && counted.entries.removes_due + counted.entries.tokens_due == 0);
  if (counts && looked_at_ < kEntriesOfPass) {
    looked_at_ += report.info.entries;
    const Result<spi::RemovedEntries> found =
        provider_.count_removed(report.bucket, {.removes_before = Timestamp{question.removes_before_us},
                                                .tokens_before = Timestamp{question.tokens_before_us},
                                                .tokens_max = question.tokens_max});
    if (!found) return;
    show(counted.entries, -1);
    counted = {.entries = *found, .at = now, .is_valid = true};
    // Entries that are written after this are newer than everything stored now.
    const Timestamp later{report.info.max_timestamp_us + 1};
    counted.entries.oldest_remove = std::min(counted.entries.oldest_remove, later);
    counted.entries.oldest_token = std::min(counted.entries.oldest_token, later);
    show(counted.entries, 1);
  }
  if (!counted.is_valid) return;
  report.surplus_tokens_us = counted.entries.surplus_tokens.us;
  report.may_forget = counted.entries.removes_due + counted.entries.tokens_due > 0 ||
                      report.surplus_tokens_us > report.forgotten_tokens_us;
}

void RemoveEntryCounter::count_again(BucketId bucket) {
  if (const auto found = counted_.find(bucket); found != counted_.end()) found->second.is_valid = false;
}

void RemoveEntryCounter::end_pass(const std::vector<BucketId>& here) {
  looked_at_ = 0;
  std::erase_if(counted_, [&](const auto& item) {
    const bool is_gone = !std::binary_search(here.begin(), here.end(), item.first);
    if (is_gone) show(item.second.entries, -1);
    return is_gone;
  });
}

}  // namespace fjord::storage
