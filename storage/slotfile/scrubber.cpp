#include "scrubber.h"

#include <chrono>

#include "slotfile_iterator.h"

namespace fjord::slotfile {

namespace {

/// Approximate number of bytes that one step reads, so that other work waits some milliseconds at most.
constexpr std::uint64_t kScrubStepBytes = 1 << 20;

}  // namespace

void Scrubber::step(MonotonicTime now) {
  const std::uint64_t rate = context_.options.limits.scrub_bytes_per_second;
  if (rate == 0 || now < next_) return;
  constexpr Duration kBetweenPasses = std::chrono::minutes(10);
  if (pass_ == nullptr) {
    const auto next = table_.by_uid().lower_bound(cursor_);
    if (next == table_.by_uid().end()) {
      if (cursor_ != 0) ++context_.stats.scrub_passes;
      cursor_ = 0;
      next_ = now + kBetweenPasses;
      return;
    }
    cursor_ = next->first + 1;
    spi::IterateOptions options{.types = nullptr, .selection = nullptr};
    options.include_removed = true;
    pass_ = std::make_unique<SlotfileIterator>(table_, next->first, next->second->id, options,
                                               SlotfileIterator::OnCorruption::Skip);
  }
  std::uint64_t bytes = 0;
  const Result<bool> more = pass_->visit([&](const EntryView& entry) {
    bytes += entry.header.size() + entry.body.size();
    return bytes < kScrubStepBytes;
  });
  context_.stats.scrubbed_bytes += bytes;
  next_ = now + Duration(static_cast<std::int64_t>(bytes * 1'000'000 / rate));
  // The pass over the bucket ends here. Entries that failed verification are in quarantine and counted.
  if (!more || !*more) pass_.reset();
}

}  // namespace fjord::slotfile
