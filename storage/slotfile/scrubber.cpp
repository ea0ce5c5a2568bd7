#include "scrubber.h"

#include <algorithm>
#include <chrono>

#include "fjord/common/log.h"
#include "slotfile_iterator.h"

namespace fjord::slotfile {

namespace {

/// Approximate number of bytes that one step reads, so that other work waits some milliseconds at most.
constexpr std::uint64_t kScrubStepBytes = 1 << 20;
/// What the beginning of a bucket counts for. It bounds the number of small buckets that one step reads.
constexpr std::uint64_t kBucketCost = 4096;
/// The rate is kept over this time: a step that comes late is made up for.
constexpr Duration kLateMost = std::chrono::seconds(1);

}  // namespace

Duration Scrubber::step(MonotonicTime now) {
  const std::uint64_t rate = context_.options.limits.scrub_bytes_per_second;
  if (rate == 0) return context_.options.scrub_interval;
  if (table_.take_damage_found()) {
    again_ = true;
    if (cursor_ == 0) next_ = std::min(next_, now);
  }
  if (now < next_) return next_ - now;
  next_ = std::max(next_, now - kLateMost);
  cost_ = 0;
  std::uint64_t bytes = 0;
  while (cost_ < kScrubStepBytes) {
    if (pass_ == nullptr && !begin_bucket()) {
      end_pass(now);
      break;
    }
    const Result<bool> more = pass_->visit([&](const EntryView& entry) {
      const std::uint64_t read = entry.header.size() + entry.body.size();
      bytes += read;
      cost_ += read;
      return cost_ < kScrubStepBytes;
    });
    // The pass over the bucket ends here. Entries that failed verification are in quarantine and counted.
    if (!more || !*more) pass_.reset();
  }
  context_.stats.scrubbed_bytes += bytes;
  next_ = next_ + Duration(static_cast<std::int64_t>(cost_ * 1'000'000 / rate));
  return std::max(next_ - now, Duration(0));
}

void Scrubber::begin_pass() {
  again_ = false;
  checked_.clear();
  // What is in the journal alone is not read. A checkpoint moves it to slotfiles, so that it does not stay there
  // unverified for as long as there are few writes.
  if (context_.stats.held_bytes > 0) table_.wants_checkpoint = true;
}

void Scrubber::end_pass(MonotonicTime now) {
  if (cursor_ != 0) ++context_.stats.scrub_passes;
  cursor_ = 0;
  next_ = std::exchange(again_, false) ? now : now + context_.options.scrub_interval;
}

/// Begins to read the next bucket. Returns false if the pass has read all of them.
bool Scrubber::begin_bucket() {
  const auto next = table_.by_uid().lower_bound(cursor_);
  if (next == table_.by_uid().end()) return false;
  if (cursor_ == 0) begin_pass();
  cursor_ = next->first + 1;
  Bucket& bucket = *next->second;
  cost_ += kBucketCost;
  spi::IterateOptions options{.types = nullptr, .selection = nullptr};
  options.include_removed = true;
  auto pass =
      std::make_unique<SlotfileIterator>(table_, next->first, bucket.id, options, SlotfileIterator::OnCorruption::Skip);
  pass->set_at_slot([this](Bucket& reached, Slot& slot) { check_files(reached, slot); });
  pass_ = std::move(pass);
  return true;
}

/// Verifies the lists of the slot's files. Entries whose index is in memory are not lost with the list in the file:
/// their slot becomes suspect and is rewritten. If a list cannot be read and is not in memory either, the bucket is
/// damaged.
void Scrubber::check_files(Bucket& bucket, Slot& slot) {
  cost_ += slot.info().entries * kEntryBytes;
  const Status loaded = table_.load(slot);
  for (const FileRef& ref : slot.files()) {
    const auto [known, fresh] = checked_.try_emplace(ref->number(), false);
    if (fresh) known->second = is_bad(*ref.file);
    if (!known->second) continue;
    if (loaded) {
      slot.set_list_bad();
    } else if (!bucket.damaged) {
      table_.report_found(bucket);
    }
  }
}

bool Scrubber::is_bad(SlotFile& file) {
  Result<SlotFile::Corrupt> corrupt = file.verify_lists();
  const auto is_unreadable = [&] { return !corrupt && corrupt.error().code() == StatusCode::IoError; };
  if (is_unreadable()) corrupt = file.verify_lists();
  if (corrupt) {
    context_.stats.bad_headers += corrupt->headers;
    return corrupt->any();
  }
  log::error("slotfile", "{}", corrupt.error().to_string());
  // A file that cannot be opened may be whole.
  return corrupt.error().code() == StatusCode::Corruption || (is_unreadable() && file.file().is_open());
}

}  // namespace fjord::slotfile
