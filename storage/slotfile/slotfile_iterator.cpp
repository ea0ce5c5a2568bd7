#include "slotfile_iterator.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/common/lost_pages.h"
#include "part_codec.h"

namespace fjord::slotfile {

namespace {

/// Reading a gap of up to this size costs less than another call.
constexpr std::uint64_t kScanGapBytesMax = 64 << 10;

/// Number of bytes of a mapped file that the system is asked to read in advance.
constexpr std::uint64_t kAskBytes = 8 << 20;

constexpr std::size_t kBuffersKept = 8;

}  // namespace

SlotfileIterator::SlotfileIterator(BucketTable& table, std::uint64_t uid, BucketId bucket,
                                   const spi::IterateOptions& options, OnCorruption on_corruption)
    : table_(table),
      context_(table.context()),
      uid_(uid),
      id_(bucket),
      filter_(options),
      on_corruption_(on_corruption),
      looks_ahead_(filter_.has_selection() && !filter_.selects_on_body() && on_corruption == OnCorruption::Fail &&
                   context_.options.map_files),
      is_snapshot_(options.snapshot) {
  for (Side& side : sides_) {
    if (context_.window_buffers.empty()) break;
    side.window.lend(std::move(context_.window_buffers.back()));
    context_.window_buffers.pop_back();
  }
}

SlotfileIterator::~SlotfileIterator() {
  for (Side& side : sides_) {
    std::unique_ptr<char[]> buffer = side.window.take_back();
    if (buffer != nullptr && context_.window_buffers.size() < kBuffersKept) {
      context_.window_buffers.push_back(std::move(buffer));
    }
  }
}

Result<bool> SlotfileIterator::next(DocBlockBuilder& into, std::size_t max_bytes) {
  return visit([&](const EntryView& entry) {
    const std::size_t size = into.size();
    const std::size_t count = into.count();
    const LostPages lost;
    into.add(entry);
    if (lost.any()) into.rewind(size, count);  // A page was lost during the read. hand_over() reports the error.
    return into.size() < max_bytes;
  });
}

/// Passes an entry to the sink. Verified bytes of a mapped file may be lost by the time they are read again; this is
/// reported as Corruption.
Result<SlotfileIterator::Given> SlotfileIterator::hand_over(const EntryView& entry, const Sink& sink) {
  const LostPages lost;
  const bool go_on = sink(entry);
  if (lost.any()) {
    return Status(StatusCode::Corruption, id_.to_string() + ": a part of a file was cut off while it was read");
  }
  return go_on ? Given::GoOn : Given::Stop;
}

Result<bool> SlotfileIterator::visit(const Sink& sink) {
  FJORD_TRY(failure_);
  bucket_ = table_.find(id_);
  if (bucket_ != nullptr && bucket_->uid != uid_) bucket_ = nullptr;
  if (bucket_ == nullptr && !is_snapshot_) {
    return Status(StatusCode::NotFound, id_.to_string() + " was deleted, split or joined");
  }
  bool given = false;
  filter_.begin_turn();
  Result<bool> more = advance(sink, given);
  if (more) return more;
  failure_ = more.error();
  if (given) return true;  // The entries given so far are returned first; the next call reports the error.
  return failure_;
}

Result<bool> SlotfileIterator::advance(const Sink& sink, bool& given) {
  for (Given last = Given::Nothing; last != Given::Stop && !filter_.is_turn_over();) {
    if (at_ == pending_.size()) {
      if (start_listed()) continue;
      if (next_cell_ < kCells) {
        FJORD_TRY(start_slot());
        continue;
      }
      if (on_corruption_ == OnCorruption::Fail && bucket_ != nullptr && bucket_->is_damaged()) {
        return Status(StatusCode::Corruption, id_.to_string() + " has lost entries");
      }
      return false;
    }
    if (looks_ahead_ && at_ >= looked_end_ && is_list_valid()) look_ahead();
    if (at_ < looked_end_ && matches_[at_] == Matches::No) {
      if (++at_ == pending_.size() / 2 + 1) ask_for_next_slot();
      continue;
    }
    const Result<Given> done = give(sink);
    if (done) {
      last = *done;
      given = given || last != Given::Nothing;
    } else if (done.error().code() != StatusCode::Corruption || on_corruption_ != OnCorruption::Skip) {
      return done.error();
    }
    if (++at_ == pending_.size() / 2 + 1) ask_for_next_slot();
  }
  return true;
}

Status SlotfileIterator::take_snapshot() {
  bucket_ = table_.find(id_);
  while (next_cell_ < kCells) {
    FJORD_TRY(start_slot());
    copy_held();
    if (!pending_.empty()) listed_.push_back({std::move(pending_), std::move(files_)});
    pending_.clear();
  }
  if (bucket_->is_damaged()) {
    return {StatusCode::Corruption, id_.to_string() + " has lost entries"};
  }
  return Status::ok();
}

void SlotfileIterator::copy_held() {
  for (Pending& pending : pending_) {
    if (!pending.entry.held()) continue;
    const MetaEntry entry = pending.entry;
    for (const Part part : {Part::Header, Part::Body}) {
      (part == Part::Header ? pending.entry.header_position : pending.entry.body_position) =
          static_cast<std::uint32_t>(held_copy_.size());
      held_copy_ += slot_->held_part(entry, part);
    }
  }
}

bool SlotfileIterator::start_listed() {
  if (listed_.empty()) return false;
  pending_ = std::move(listed_.front().entries);
  files_ = std::move(listed_.front().files);
  listed_.pop_front();
  at_ = 0;
  looked_end_ = 0;
  open_file_ = MetaEntry::kGone;
  return true;
}

Status SlotfileIterator::start_slot() {
  Slot& slot = *bucket_->by_cell[next_cell_];
  if (at_slot_) at_slot_(*bucket_, slot);
  pending_.clear();
  at_ = 0;
  if (const Status loaded = table_.load(slot); !loaded) {
    if (on_corruption_ == OnCorruption::Fail) return loaded;
    next_cell_ = slot.end_cell();
    return Status::ok();
  }
  slot.sort_index();
  // False if the first cells of the slot were already given, before slots were joined.
  const bool whole = slot.first_cell() == next_cell_;
  const std::span<const MetaEntry> entries = slot.index().entries();
  pending_.reserve(slot.index().size());
  for (std::uint32_t number = 0; number < entries.size(); ++number) {
    const MetaEntry& entry = entries[number];
    if (!slot.is_visible(entry) || !filter_.wants(entry.timestamp(), entry.removed())) continue;
    if (whole || cell_of(entry.gid) >= next_cell_) pending_.push_back({entry, number});
  }
  const auto before = [](const Pending& a, const Pending& b) {
    return std::tie(a.entry.file, a.entry.header_position) < std::tie(b.entry.file, b.entry.header_position);
  };
  if (!std::is_sorted(pending_.begin(), pending_.end(), before)) std::sort(pending_.begin(), pending_.end(), before);
  slot_ = &slot;
  slot_serial_ = slot.index_serial();
  changes_ = context_.changes;
  files_ = slot.files();
  open_file_ = MetaEntry::kGone;
  next_cell_ = slot.end_cell();
  looked_end_ = 0;
  if (next_cell_ < kCells && !bucket_->by_cell[next_cell_]->is_loaded()) bucket_->by_cell[next_cell_]->ask_for_lists();
  return Status::ok();
}

/// Applies the selection to some documents in advance, by their headers alone. The bodies of those that match are then
/// requested together, so that the medium works on all of them at the same time.
void SlotfileIterator::look_ahead() {
  constexpr std::size_t kDocuments = 512;
  const std::size_t end = std::min(at_ + kDocuments, pending_.size());
  matches_.resize(pending_.size());
  looked_end_ = at_;
  for (const std::uint16_t file = pending_[at_].entry.file; looked_end_ < end; ++looked_end_) {
    if (pending_[looked_end_].entry.file != file || filter_.is_turn_over()) break;
    look_at(looked_end_);
  }
}

void SlotfileIterator::look_at(std::size_t i) {
  const MetaEntry& entry = pending_[i].entry;
  matches_[i] = Matches::Unknown;
  if (entry.removed() || entry.held() || entry.header_length() == 0) return;
  // An unreadable header is skipped here; it is reported when its entry is given.
  const Result<std::string_view> stored = stored_part(entry, Part::Header);
  if (!stored || mapped_.empty() || !verify_part(entry, Part::Header, *stored)) return;
  const Result<std::string_view> header = plain(entry, Part::Header, stored->substr(0, entry.header_length()));
  if (!header) return;
  const Result<bool> is_match = filter_.matches(*header, {});
  if (!is_match) return;  // Reported, too, when the entry is given.
  matches_[i] = *is_match ? Matches::Yes : Matches::No;
  if (matches_[i] == Matches::No || !filter_.wants_body() || !context_.cold_reads.is_sample()) return;
  const std::uint64_t bytes = stored_bytes(entry.body_length());
  const bool resident = handle_->is_resident(entry.body_position, bytes);
  context_.cold_reads.note(resident);
  if (!resident) handle_->will_need(entry.body_position, bytes);
}

/// Requests the first data of the next slot while the second half of this one is processed.
void SlotfileIterator::ask_for_next_slot() {
  // The scrub reads slowly on purpose, so it requests nothing in advance.
  if (next_cell_ >= kCells || on_corruption_ == OnCorruption::Skip) return;
  Slot& next = *bucket_->by_cell[next_cell_];
  constexpr std::uint64_t kIndexBytesOfEntry = 64;
  const std::uint64_t index_bytes = context_.stats.index_bytes + next.info().entries * kIndexBytesOfEntry;
  // Loads no index in advance that would make others be unloaded.
  if (!next.is_loaded() && index_bytes > context_.options.limits.index_bytes_max) return;
  if (!table_.load(next)) return;  // The error is reported when the iterator reaches the slot.
  for (std::uint16_t ordinal = 0; ordinal < next.files().size(); ++ordinal) {
    const Result<RandomAccessFile*> file = next.files()[ordinal]->file().get();
    if (!file) return;
    for (const Part part : {Part::Header, Part::Body}) {
      const bool reads_body = goes_in_order(Part::Body) && (filter_.wants_body() || filter_.selects_on_body());
      if (part == Part::Body && !reads_body) continue;
      std::uint64_t begin = ~std::uint64_t{0};
      std::uint64_t end = 0;
      std::uint64_t bytes = 0;
      for (const MetaEntry& entry : next.index().entries()) {
        if (entry.file != ordinal || entry.length(part) == 0) continue;
        begin = std::min<std::uint64_t>(begin, entry.position(part));
        end = std::max<std::uint64_t>(end, entry.position(part) + stored_bytes(entry.length(part)));
        bytes += stored_bytes(entry.length(part));
      }
      const bool dense = end > begin && end - begin <= 2 * bytes + kScanGapBytesMax;
      if (dense) (*file)->will_need(begin, std::min(end - begin, kAskBytes));
    }
  }
}

Result<SlotfileIterator::Given> SlotfileIterator::give(const Sink& sink) {
  const MetaEntry& listed = pending_[at_].entry;
  if (is_snapshot_ || (changes_ == context_.changes && !listed.held())) {
    moved_ = false;
    return give_entry(listed, sink);
  }
  FJORD_TRY_ASSIGN(const MetaEntry* now, as_it_is_now());
  if (now == nullptr) return Given::Nothing;
  moved_ = now->timestamp_us != listed.timestamp_us || listed.held();
  if (!moved_) return give_entry(listed, sink);
  if (!filter_.wants(now->timestamp(), now->removed())) return Given::Nothing;
  const MetaEntry copy = *now;  // Copied, because reading may put the entry in quarantine and change the index.
  return give_entry(copy, sink);
}

/// Returns the current entry as it is in the index; null if it is no longer there.
Result<const MetaEntry*> SlotfileIterator::as_it_is_now() {
  const Pending& pending = pending_[at_];
  Slot& slot = bucket_->slot_for(pending.entry.gid);
  if (&slot == slot_ && slot.is_loaded() && slot.index_serial() == slot_serial_) {
    const MetaEntry& now = slot.index().at(pending.number);
    return slot.is_visible(now) ? &now : nullptr;
  }
  FJORD_TRY(table_.load(slot));
  const std::uint32_t number = slot.find_visible(pending.entry.gid);
  return number == SlotIndex::kNone ? nullptr : &slot.index().at(number);
}

Result<SlotfileIterator::Given> SlotfileIterator::give_entry(const MetaEntry& entry, const Sink& sink) {
  if (!entry.removed()) return give_document(entry, sink);
  FJORD_TRY_ASSIGN(const std::string_view id, part(entry, Part::Header));
  return hand_over(
      {.gid = entry.gid, .timestamp = entry.timestamp(), .removed = true, .id = id, .header = {}, .body = {}}, sink);
}

Result<SlotfileIterator::Given> SlotfileIterator::give_document(const MetaEntry& entry, const Sink& sink) {
  FJORD_TRY_ASSIGN(const std::string_view header, part(entry, Part::Header));
  const bool selects_on_body = filter_.selects_on_body();
  const bool known = !moved_ && at_ < looked_end_ && matches_[at_] == Matches::Yes;
  if (!known && !selects_on_body) {
    FJORD_TRY_ASSIGN(const bool is_match, filter_.matches(header, {}));
    if (!is_match) return Given::Nothing;
  }
  std::string_view body;
  if (filter_.wants_body() || selects_on_body) {
    FJORD_TRY_ASSIGN(body, part(entry, Part::Body));
  }
  if (selects_on_body) {
    FJORD_TRY_ASSIGN(const bool is_match, filter_.matches(header, body));
    if (!is_match) return Given::Nothing;
  }
  return hand_over({.gid = entry.gid,
                    .timestamp = entry.timestamp(),
                    .removed = false,
                    .id = {},
                    .header = filter_.project(header),
                    .body = filter_.wants_body() ? body : std::string_view{}},
                   sink);
}

Result<std::string_view> SlotfileIterator::part(const MetaEntry& entry, Part part) {
  const std::uint64_t length = stored_bytes(entry.length(part));
  if (length == 0) return std::string_view();
  if (moved_) return moved_part(entry, part);
  FJORD_TRY_ASSIGN(std::string_view stored, read_or_loss(entry, part));
  bool is_right = verify_part(entry, part, stored);
  if (!is_right && !mapped_.empty() && !entry.held()) {
    // Lost pages of a mapping are zeros. From here on a read call is used, which returns the content of the file.
    mapped_ = {};
    FJORD_TRY_ASSIGN(stored, stored_part(entry, part));
    is_right = verify_part(entry, part, stored);
  }
  if (!is_right) {
    report(entry);
    const std::string where = entry.held() ? "memory" : files_[entry.file]->file().path();
    return Status(StatusCode::Corruption,
                  where + ": a document part at " + std::to_string(entry.position(part)) + " does not verify");
  }
  return plain(entry, part, stored.substr(0, length - kPartChecksumBytes));
}

/// Reads a part as stored_part() does. For the scrub, a part that twice cannot be read is empty, so that it does not
/// verify. A file that cannot be opened may be whole, so that stays an error.
Result<std::string_view> SlotfileIterator::read_or_loss(const MetaEntry& entry, Part part) {
  Result<std::string_view> stored = stored_part(entry, part);
  if (on_corruption_ == OnCorruption::Fail || stored || stored.error().code() != StatusCode::IoError) return stored;
  stored = stored_part(entry, part);
  if (stored || stored.error().code() != StatusCode::IoError || handle_ == nullptr) return stored;
  log::error("slotfile", "{}: {}", id_.to_string(), stored.error().message());
  return std::string_view();
}

/// Returns the part with its checksum, which is not yet verified.
Result<std::string_view> SlotfileIterator::stored_part(const MetaEntry& entry, Part part) {
  const std::uint64_t begin = entry.position(part);
  const std::uint64_t length = stored_bytes(entry.length(part));
  if (entry.held()) return std::string_view(held_copy_).substr(begin, length);
  if (entry.file != open_file_) FJORD_TRY(open_file_of(entry));
  Side& side = sides_[part == Part::Header ? 0 : 1];
  if (begin + length <= mapped_.size()) {
    ask_for(side, entry, part);
    return mapped_.substr(begin, length);
  }
  const std::uint64_t ahead_end = side.window.contains(begin, length) ? 0 : read_ahead(entry, part);
  return side.window.read(*handle_, begin, length, ahead_end);
}

Status SlotfileIterator::open_file_of(const MetaEntry& entry) {
  SlotFile& file = *files_[entry.file].file;
  open_file_ = MetaEntry::kGone;
  handle_ = nullptr;
  mapped_ = {};
  FJORD_TRY_ASSIGN(handle_, file.file().share());
  if (on_corruption_ == OnCorruption::Fail) {
    FJORD_TRY_ASSIGN(mapped_, file.mapped());
  }
  open_file_ = entry.file;
  for (const Part part : {Part::Header, Part::Body}) {
    Side& side = sides_[part == Part::Header ? 0 : 1];
    side.window.forget();
    side.asked_end = side.last_end = 0;
    for (std::size_t i = at_; i < pending_.size() && pending_[i].entry.file == entry.file; ++i) {
      const MetaEntry& other = pending_[i].entry;
      const std::uint64_t end = other.position(part) + stored_bytes(other.length(part));
      if (other.length(part) != 0) side.last_end = std::max(side.last_end, end);
    }
  }
  return Status::ok();
}

/// Asks the system to read mapped data that will be used soon. Otherwise the iterator would wait for each page.
void SlotfileIterator::ask_for(Side& side, const MetaEntry& entry, Part part) {
  const std::uint64_t begin = entry.position(part);
  const std::uint64_t end = begin + stored_bytes(entry.length(part));
  if (!goes_in_order(part)) {
    const bool large = end - begin >= kLargePartBytes;
    if (large && !handle_->is_resident(begin, end - begin)) handle_->will_need(begin, end - begin);
    return;
  }
  if (end + kAskBytes / 2 <= side.asked_end || side.asked_end >= side.last_end) return;
  const std::uint64_t from = std::max(begin, side.asked_end);
  const std::uint64_t to = std::min(std::max(from, end) + kAskBytes, side.last_end);
  side.asked_end = std::max(to, end);
  // Checks only at intervals whether data is in memory, because the request checks each page.
  constexpr std::uint64_t kBetweenSamples = 256 << 10;
  bool resident = true;
  for (std::uint64_t at = from; resident && at < to; at += kBetweenSamples) resident = handle_->is_resident(at, 1);
  if (!resident) handle_->will_need(from, to - from);
}

/// Reads a part of an entry that was held in memory when the list was made, or was replaced since. `entry` is its
/// current state.
Result<std::string_view> SlotfileIterator::moved_part(const MetaEntry& entry, Part part) {
  Slot& slot = bucket_->slot_for(entry.gid);
  Side& side = sides_[part == Part::Header ? 0 : 1];
  return slot.read_part(slot.index().find(entry.gid), part, side.held);
}

Result<std::string_view> SlotfileIterator::plain(const MetaEntry& entry, Part part, std::string_view stored) {
  if (entry.compression(part) == spi::Compression::None) return stored;
  Side& side = sides_[part == Part::Header ? 0 : 1];
  FJORD_TRY(decompress(stored, entry.compression(part), side.held));
  return std::string_view(side.held);
}

/// Quarantines an entry that failed verification, unless it was replaced meanwhile.
void SlotfileIterator::report(const MetaEntry& entry) {
  ++context_.stats.corrupt_reads;
  if (bucket_ == nullptr) return;
  Slot& slot = bucket_->slot_for(entry.gid);
  if (!table_.load(slot)) return;
  const std::uint32_t number = slot.index().find(entry.gid);
  if (number == SlotIndex::kNone || slot.index().at(number).timestamp_us != entry.timestamp_us) return;
  log::error("slotfile", "{}: {} does not verify and is put in quarantine", id_.to_string(), entry.gid.to_string());
  slot.quarantine_with_cut_off(number);
  table_.note_damage(*bucket_);
}

/// Returns the offset up to which to read the file, so that the read includes the next wanted parts. These are the
/// parts of the entries that the iterator has yet to return. If a selection looks at headers alone, only some bodies
/// are wanted; the distance then doubles as long as the next wanted body lies close behind the previous read.
std::uint64_t SlotfileIterator::read_ahead(const MetaEntry& entry, Part part) {
  const std::uint64_t begin = entry.position(part);
  const std::uint64_t length = stored_bytes(entry.length(part));
  if (part == Part::Body && filter_.has_selection() && !filter_.selects_on_body()) {
    Side& side = sides_[1];
    const bool goes_on = begin >= side.window.end() && begin - side.window.end() <= kScanGapBytesMax;
    side.ahead = goes_on ? std::min(side.ahead * 2, ReadWindow::kBytesMax) : kScanGapBytesMax / 4;
    return std::min(begin + std::max(length, side.ahead), files_[entry.file]->size());
  }
  std::uint64_t end = begin + length;
  for (std::size_t i = at_ + 1; i < pending_.size() && pending_[i].entry.file == entry.file; ++i) {
    const std::uint64_t size = stored_bytes(pending_[i].entry.length(part));
    const std::uint64_t offset = pending_[i].entry.position(part);
    if (size == 0) continue;
    if (offset < end || offset - end > kScanGapBytesMax || offset + size - begin > ReadWindow::kBytesMax) break;
    end = offset + size;
  }
  return end;
}

}  // namespace fjord::slotfile
