#include <algorithm>

#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

void RemovedCounter::add(Timestamp timestamp, bool is_token) {
  ++(is_token ? counted_.tokens : counted_.removes);
  Timestamp& oldest = is_token ? counted_.oldest_token : counted_.oldest_remove;
  oldest = std::min(oldest, timestamp);
  const Timestamp before = is_token ? question_.tokens_before : question_.removes_before;
  if (timestamp < before) ++(is_token ? counted_.tokens_due : counted_.removes_due);
  if (is_token && question_.tokens_max != 0) tokens_.push_back(timestamp);
}

RemovedEntries RemovedCounter::finish() {
  if (tokens_.size() > question_.tokens_max) {
    const auto kept = tokens_.end() - static_cast<std::ptrdiff_t>(question_.tokens_max);
    std::nth_element(tokens_.begin(), kept, tokens_.end());
    counted_.surplus_tokens = *kept;
  }
  return counted_;
}

Result<RemovedEntries> PersistenceProvider::count_removed(BucketId bucket, const RemovedQuestion& question) {
  RemovedCounter counter(question);
  IterateOptions options;
  options.parts = Parts::IdOnly;
  options.include_removed = true;
  FJORD_TRY_ASSIGN(const auto iterator, iterate(bucket, options));
  FJORD_TRY(iterator
                ->visit([&](const EntryView& entry) {
                  if (entry.removed) counter.add(entry.timestamp, is_token_id(entry.id));
                  return true;
                })
                .status());
  return counter.finish();
}

Result<Timestamp> PersistenceProvider::removes_forgotten_before(BucketId bucket) const {
  FJORD_TRY_ASSIGN(const Forgotten found, forgotten(bucket));
  return found.removes;
}

}  // namespace fjord::spi
