#include "slot.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "part_codec.h"

namespace fjord::slotfile {

void LoadedSlots::touch(Slot& slot) {
  if (newest_ == &slot) return;
  if (slot.linked_) remove(slot);
  slot.newer_ = nullptr;
  slot.older_ = newest_;
  if (newest_ != nullptr) newest_->newer_ = &slot;
  newest_ = &slot;
  if (oldest_ == nullptr) oldest_ = &slot;
  slot.linked_ = true;
}

void LoadedSlots::remove(Slot& slot) {
  if (!slot.linked_) return;
  (slot.newer_ != nullptr ? slot.newer_->older_ : newest_) = slot.older_;
  (slot.older_ != nullptr ? slot.older_->newer_ : oldest_) = slot.newer_;
  slot.linked_ = false;
}

Slot* LoadedSlots::newer(const Slot& slot) const { return slot.newer_; }

Slot::Slot(EngineContext& context, LoadedSlots& loaded, BucketId bucket, unsigned first_cell, unsigned depth)
    : context_(context),
      loaded_(loaded),
      bucket_(bucket),
      first_cell_(first_cell),
      depth_(depth),
      held_(context.chunks) {}

Slot::~Slot() {
  ++context_.changes;
  loaded_.remove(*this);
  context_.stats.index_bytes -= index_bytes();
  context_.stats.held_bytes -= held_.bytes();
  for (const auto& file : files_) --file->users;
}

SlotRecord Slot::record() const {
  SlotRecord record{.first_cell = static_cast<std::uint8_t>(first_cell_),
                    .depth = static_cast<std::uint8_t>(depth_),
                    .info = info_,
                    .live_bytes = live_bytes_,
                    .files = {}};
  for (const FileRef& ref : files_) {
    record.files.push_back({.number = ref->number(),
                            .bucket = ref.bucket,
                            .first_cell = static_cast<std::uint8_t>(ref.first_cell),
                            .end_cell = static_cast<std::uint8_t>(ref.end_cell)});
  }
  return record;
}

std::uint64_t Slot::files_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files_) sum += file->size();
  return sum;
}

void Slot::add_file(FileRef ref) {
  ++ref->users;
  files_.push_back(std::move(ref));
}

/// Returns the part of `from`, a reference of another slot, that this slot covers.
FileRef Slot::part_of(const FileRef& from) const {
  return {.file = from.file,
          .bucket = from.bucket.used_bits() > bucket_.used_bits() ? from.bucket : bucket_,
          .first_cell = std::max(from.first_cell, first_cell_),
          .end_cell = std::min(from.end_cell, end_cell())};
}

/// Returns true if all entries of the last file belong to this slot alone and `bytes` more bytes fit into it.
bool Slot::may_append(std::uint64_t bytes) const {
  return !files_.empty() && !files_.back().missing && files_.back()->users == 1 &&
         files_.back() == whole(files_.back().file) && files_.back()->size() + bytes <= kFileBytesMax;
}

void Slot::set_info(const BucketInfo& info, std::uint64_t live_bytes) {
  info_ = info;
  live_bytes_ = live_bytes;
}

std::uint64_t Slot::set_forgotten(const spi::Forgotten& forgotten) {
  const std::uint64_t before = info_.checksum;
  const auto account_removed = [this](bool add) {
    if (index_ == nullptr) return;
    for (const MetaEntry& entry : index_->entries()) {
      if (entry.file != MetaEntry::kGone && entry.removed()) account(entry, add);
    }
  };
  account_removed(false);
  forgotten_ = forgotten;
  account_removed(true);
  ++context_.changes;
  return before - info_.checksum;
}

void Slot::account(const MetaEntry& entry, bool add) {
  const std::uint64_t sign = add ? 1 : ~std::uint64_t{0};
  if (is_forgotten(entry)) {
    forgotten_entries_ += sign;
    return;
  }
  info_.entries += sign;
  if (!entry.removed()) info_.documents += sign;
  info_.bytes += sign * entry.document_bytes();
  info_.checksum += sign * spi::entry_hash(entry.gid, entry.timestamp(), entry.removed());
  live_bytes_ += sign * entry.stored_bytes();
  if (add) info_.max_timestamp_us = std::max(info_.max_timestamp_us, entry.timestamp_us);
}

Status Slot::load(Unreadable unreadable) {
  loaded_.touch(*this);
  if (index_ != nullptr) return Status::ok();
  auto index = std::make_unique<SlotIndex>();
  index->reserve(info_.entries);
  // Visits the files in the order in which they were made, so that an unreadable entry is known to be newer than those
  // before it.
  std::vector<std::uint16_t> order(files_.size());
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return files_[a]->number() < files_[b]->number(); });
  ask_for_lists();
  for (const std::uint16_t ordinal : order) FJORD_TRY(load_file(ordinal, *index, unreadable));
  index_ = std::move(index);
  index_serial_ = ++context_.index_serial;
  context_.stats.index_bytes += index_bytes();
  const BucketInfo expected = std::exchange(info_, {});
  live_bytes_ = 0;
  forgotten_entries_ = 0;
  for (const MetaEntry& entry : index_->entries()) {
    if (entry.file != MetaEntry::kGone) account(entry, true);
  }
  info_.max_timestamp_us = std::max(info_.max_timestamp_us, expected.max_timestamp_us);
  const bool differs = info_.entries != expected.entries || info_.checksum != expected.checksum;
  if (differs && !adopting_info) {
    log::error("slotfile", "{}: {} entries were expected in its slotfiles and {} are there", bucket_.to_string(),
               expected.entries, info_.entries);
    lost_entries_ = true;
    set_suspect();
  }
  return Status::ok();
}

void Slot::ask_for_lists() {
  for (const FileRef& ref : files_) {
    const Result<RandomAccessFile*> file = ref->file().get();
    if (!file) return;  // The next reader of the file reports the error.
    // Announces the beginning of the file: if the file was rewritten, its first run contains all entries.
    const std::uint64_t lists = kFileHeaderBytes + kRunFrameBytes + info_.entries * kEntryBytes;
    (*file)->will_need(0, std::min(lists, ref->size()));
  }
}

Status Slot::load_file(std::uint16_t ordinal, SlotIndex& index, Unreadable unreadable) {
  SlotFile& file = *files_[ordinal].file;
  const FileRef& ref = files_[ordinal];
  const auto visit = [&](const MetaEntry& found, bool valid) {
    if (!ref.covers(found.gid)) return;
    const std::uint32_t number = index.find(found.gid);
    if (!valid) {
      // The unreadable entry replaced the older entry of the same id, which must not come back.
      if (number != SlotIndex::kNone) index.erase(number);
      quarantine_.emplace_back(found.gid, 0);
      return;
    }
    if (number != SlotIndex::kNone && index.at(number).timestamp_us > found.timestamp_us) return;
    MetaEntry entry = found;
    entry.file = ordinal;
    if (number == SlotIndex::kNone) {
      index.insert(entry);
    } else {
      index.at(number) = entry;
    }
  };
  const Result<SlotFile::Corrupt> corrupt = file.walk(visit);
  if (!corrupt) {
    const StatusCode code = corrupt.error().code();
    const bool is_lost = code == StatusCode::IoError && unreadable == Unreadable::IsLost && file.file().is_open();
    if (code != StatusCode::Corruption && !is_lost) return corrupt.error();
    log::error("slotfile", "{}: {}", bucket_.to_string(), corrupt.error().message());
    ++context_.stats.bad_slotfiles;
    files_[ordinal].missing = true;
    lost_entries_ = true;
    set_suspect();
    return Status::ok();
  }
  context_.stats.repaired_entries += corrupt->repaired;
  context_.stats.bad_entries += corrupt->entries;
  context_.stats.bad_runs += corrupt->frames;
  context_.stats.bad_headers += corrupt->headers;
  lost_entries_ = lost_entries_ || corrupt->loses_entries();
  if (corrupt->any()) set_suspect();
  return Status::ok();
}

void Slot::unload() {
  FJORD_CHECK(held_.empty());
  ++context_.changes;
  loaded_.remove(*this);
  context_.stats.index_bytes -= index_bytes();
  index_.reset();
}

bool Slot::is_superseded(std::uint32_t number, const GlobalId& gid, std::uint64_t timestamp_us,
                         spi::WriteResult& result) {
  if (number != SlotIndex::kNone) {
    result.existed = !index_->at(number).removed();
    result.superseded = index_->at(number).timestamp_us >= timestamp_us;
    return result.superseded;
  }
  for (const auto& [lost, lost_at] : quarantine_) {
    if (lost == gid && lost_at > timestamp_us) result.superseded = true;
  }
  return result.superseded;
}

void Slot::put_entry(std::uint32_t number, MetaEntry entry) {
  const std::uint64_t index_before = index_bytes();
  account(entry, true);
  if (number == SlotIndex::kNone) {
    number = index_->insert(entry);
  } else {
    account(index_->at(number), false);
    index_->at(number) = entry;
  }
  held_.staged.push_back({number, entry.header_position, entry.body_position});
  context_.stats.index_bytes += index_bytes() - index_before;
}

namespace {

/// Appends a part with its checksum. Returns its length and compression, as in MetaEntry.
std::uint32_t append_part(PartBuffer& run, std::string_view bytes, const PartCompression& wanted, std::uint64_t seed) {
  if (bytes.empty()) return 0;
  std::string& to = run.open(bytes.size() + kCompressedExtraBytes + kPartChecksumBytes);
  const std::size_t begin = to.size();
  const spi::Compression done = append_compressed(to, bytes, wanted);
  const auto length = static_cast<std::uint32_t>(to.size() - begin);
  put_fixed(to, checksum32(std::string_view(to).substr(begin), seed));
  return length | (static_cast<std::uint32_t>(done) << kCompressionShift);
}

}  // namespace

bool Slot::stage(const spi::Write& write, spi::WriteResult& result, Undo& undo) {
  const std::uint32_t number = index_->find(write.gid);
  if (is_superseded(number, write.gid, write.timestamp.us, result)) return false;
  const std::uint64_t held_before = held_.bytes();
  undo = {.slot = this,
          .number = number,
          .inserted = number == SlotIndex::kNone,
          .before = number == SlotIndex::kNone ? MetaEntry{} : index_->at(number),
          .max_timestamp_us = info_.max_timestamp_us,
          .headers = held_.headers.size(),
          .bodies = held_.bodies.size()};
  MetaEntry entry;
  entry.timestamp_us = write.timestamp.us;
  entry.gid = write.gid;
  entry.file = MetaEntry::kHeld;
  entry.header_position = static_cast<std::uint32_t>(undo.headers);
  entry.body_position = static_cast<std::uint32_t>(undo.bodies);
  const std::uint64_t header_seed = part_seed(write.gid, write.timestamp.us, Part::Header);
  if (write.remove) {
    entry.header_length_flags = append_part(held_.headers, write.id, {}, header_seed) | kFlagRemoved;
    if (spi::is_token_id(write.id)) entry.header_length_flags |= kFlagToken;
  } else {
    entry.header_length_flags = append_part(held_.headers, write.header, write.header_compression, header_seed);
    entry.body_length_flags = append_part(held_.bodies, write.body, write.body_compression,
                                          part_seed(write.gid, write.timestamp.us, Part::Body));
  }
  put_entry(number, entry);
  if (undo.inserted) undo.number = held_.staged.back().number;
  context_.stats.held_bytes += held_.bytes() - held_before;
  return true;
}

bool Slot::stage_stored(MetaEntry entry, std::string_view header, std::string_view body, bool replaces_equal) {
  spi::WriteResult result;
  const std::uint32_t number = index_->find(entry.gid);
  const bool is_equal =
      number != SlotIndex::kNone && index_->at(number).timestamp_us == entry.timestamp_us && !index_->at(number).held();
  if (!(replaces_equal && is_equal) && is_superseded(number, entry.gid, entry.timestamp_us, result)) return false;
  const std::uint64_t held_before = held_.bytes();
  entry.file = MetaEntry::kHeld;
  entry.header_position = static_cast<std::uint32_t>(held_.headers.size());
  entry.body_position = static_cast<std::uint32_t>(held_.bodies.size());
  held_.headers.append(header);
  held_.bodies.append(body);
  put_entry(number, entry);
  context_.stats.held_bytes += held_.bytes() - held_before;
  return true;
}

bool Slot::has_bad_copy(const MetaEntry& entry) {
  const std::uint32_t number = index_->find(entry.gid);
  if (number == SlotIndex::kNone) return false;
  const MetaEntry& stored = index_->at(number);
  if (stored.held() || stored.timestamp_us != entry.timestamp_us) return false;
  SlotFile& file = *files_[stored.file].file;
  const auto is_bad = [&](Part part) { return !file.read_part(stored, part, context_.part_buffers[0]).has_value(); };
  return is_bad(Part::Header) || is_bad(Part::Body);
}

void Slot::take_back(const Undo& undo) {
  const std::uint64_t held_before = held_.bytes();
  account(index_->at(undo.number), false);
  if (undo.inserted) {
    index_->erase(undo.number);
  } else {
    index_->at(undo.number) = undo.before;
    account(undo.before, true);
  }
  info_.max_timestamp_us = undo.max_timestamp_us;
  held_.staged.pop_back();
  held_.headers.shrink(undo.headers);
  held_.bodies.shrink(undo.bodies);
  context_.stats.held_bytes += held_.bytes() - held_before;
}

std::string_view Slot::held_part(const MetaEntry& entry, Part part) const {
  const PartBuffer& run = part == Part::Header ? held_.headers : held_.bodies;
  return run.view(entry.position(part), stored_bytes(entry.length(part)));
}

/// The oldest part of the held run, which is written to a file.
struct Slot::Prefix {
  std::size_t staged = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t body_bytes = 0;
  std::vector<std::uint32_t> numbers;  ///< Index numbers of those entries that are still the newest of their id.
};

Slot::Prefix Slot::first_held(std::uint64_t bytes_max) const {
  Prefix prefix;
  const std::vector<HeldRun::Staged>& staged = held_.staged;
  while (prefix.staged < staged.size() && prefix.header_bytes + prefix.body_bytes < bytes_max) {
    const HeldRun::Staged& one = staged[prefix.staged++];
    const bool last = prefix.staged == staged.size();
    prefix.header_bytes = last ? held_.headers.size() : staged[prefix.staged].header_position;
    prefix.body_bytes = last ? held_.bodies.size() : staged[prefix.staged].body_position;
    const MetaEntry& entry = index_->at(one.number);
    if (one.is(entry)) prefix.numbers.push_back(one.number);
  }
  return prefix;
}

Status Slot::flush(std::uint64_t bytes_max, const std::function<std::shared_ptr<SlotFile>()>& make_file) {
  if (held_.empty()) return Status::ok();
  ++context_.changes;
  const Prefix prefix = first_held(bytes_max);
  std::vector<MetaEntry> entries;
  entries.reserve(prefix.numbers.size());
  for (const std::uint32_t number : prefix.numbers) entries.push_back(index_->at(number));
  if (!entries.empty()) FJORD_TRY(append_prefix(prefix, entries, make_file));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].file = static_cast<std::uint16_t>(files_.size() - 1);
    index_->at(prefix.numbers[i]) = entries[i];
  }
  drop_held(prefix);
  return Status::ok();
}

namespace {

/// Appends a piece, or extends the last piece if the new one follows it directly in memory.
void add_piece(std::vector<std::string_view>& pieces, std::string_view piece) {
  if (!pieces.empty() && pieces.back().data() + pieces.back().size() == piece.data()) {
    pieces.back() = {pieces.back().data(), pieces.back().size() + piece.size()};
  } else if (!piece.empty()) {
    pieces.push_back(piece);
  }
}

}  // namespace

/// Writes the run of the prefix to the file, and changes the positions in `entries` to positions in the file.
Status Slot::append_prefix(const Prefix& prefix, std::vector<MetaEntry>& entries,
                           const std::function<std::shared_ptr<SlotFile>()>& make_file) {
  std::vector<std::string_view> headers;
  std::vector<std::string_view> bodies;
  RunFrame frame{.entries = static_cast<std::uint32_t>(entries.size()),
                 .header_bytes = prefix.header_bytes,
                 .body_bytes = prefix.body_bytes};
  if (entries.size() == prefix.staged) {
    held_.headers.list(prefix.header_bytes, headers);
    held_.bodies.list(prefix.body_bytes, bodies);
  } else {  // The run has replaced entries, which are left out.
    frame.header_bytes = frame.body_bytes = 0;
    for (MetaEntry& entry : entries) {
      const std::string_view header = held_part(entry, Part::Header);
      const std::string_view body = held_part(entry, Part::Body);
      entry.header_position = static_cast<std::uint32_t>(frame.header_bytes);
      entry.body_position = static_cast<std::uint32_t>(frame.body_bytes);
      frame.header_bytes += header.size();
      frame.body_bytes += body.size();
      add_piece(headers, header);
      add_piece(bodies, body);
    }
  }
  const bool append = may_append(frame.bytes());
  std::shared_ptr<SlotFile> fresh = append ? nullptr : make_file();
  SlotFile& target = append ? *files_.back().file : *fresh;
  if (const Status status = target.append(bucket_, frame, entries, headers, bodies); !status) {
    if (fresh != nullptr) fresh->remove_when_unused();
    return status;
  }
  if (fresh != nullptr) add_file(whole(std::move(fresh)));
  return Status::ok();
}

void Slot::drop_held(const Prefix& prefix) {
  context_.stats.held_bytes -= held_.bytes();
  held_.staged.erase(held_.staged.begin(), held_.staged.begin() + static_cast<std::ptrdiff_t>(prefix.staged));
  to_flush -= std::min(to_flush, prefix.staged);
  held_.headers.drop_front(prefix.header_bytes);
  held_.bodies.drop_front(prefix.body_bytes);
  context_.stats.held_bytes += held_.bytes();
  for (HeldRun::Staged& staged : held_.staged) {
    MetaEntry& entry = index_->at(staged.number);
    const bool newest = staged.is(entry);
    staged.header_position -= static_cast<std::uint32_t>(prefix.header_bytes);
    staged.body_position -= static_cast<std::uint32_t>(prefix.body_bytes);
    if (!newest) continue;
    entry.header_position = staged.header_position;
    entry.body_position = staged.body_position;
  }
}

void Slot::make_index(std::uint64_t expected_entries) {
  index_ = std::make_unique<SlotIndex>();
  index_->reserve(expected_entries);
  context_.stats.index_bytes += index_bytes();
  index_serial_ = ++context_.index_serial;
  loaded_.touch(*this);
}

void Slot::inherit_damage(const Slot& other) {
  for (const auto& lost : other.quarantine_) {
    if (covers(lost.first)) quarantine_.push_back(lost);
  }
  lost_entries_ = lost_entries_ || other.lost_entries_;
  if (other.suspect_) set_suspect();
  list_bad_ = list_bad_ || other.list_bad_;
}

void Slot::adopt(MetaEntry entry, const FileRef& from) {
  const std::uint32_t number = index_->find(entry.gid);
  if (number != SlotIndex::kNone && index_->at(number).timestamp_us >= entry.timestamp_us) return;
  const std::uint64_t index_before = index_bytes();
  const FileRef part = part_of(from);
  auto ref = std::find(files_.begin(), files_.end(), part);
  if (ref == files_.end()) {
    add_file(part);
    ref = files_.end() - 1;
  }
  entry.file = static_cast<std::uint16_t>(ref - files_.begin());
  account(entry, true);
  if (number == SlotIndex::kNone) {
    index_->insert(entry);
  } else {
    account(index_->at(number), false);
    index_->at(number) = entry;
  }
  context_.stats.index_bytes += index_bytes() - index_before;
}

void Slot::keep_file(const FileRef& from) {
  FileRef part = part_of(from);
  if (std::find(files_.begin(), files_.end(), part) == files_.end()) add_file(std::move(part));
}

void Slot::adopt_held(const Slot& other) {
  for (const HeldRun::Staged& staged : other.held_.staged) {
    const MetaEntry& entry = other.index_->at(staged.number);
    if (!staged.is(entry) || !covers(entry.gid)) continue;
    stage_stored(entry, other.held_part(entry, Part::Header), other.held_part(entry, Part::Body), false);
  }
}

void Slot::prefetch_parts(const GlobalId& gid) {
  constexpr std::size_t kCacheLine = 64;
  constexpr std::size_t kBytesMax = 1024;
  const std::uint32_t number = index_->find(gid);
  if (number == SlotIndex::kNone) return;
  const MetaEntry& entry = index_->at(number);
  if (entry.held() || !files_[entry.file]->file().is_open()) return;
  const Result<std::string_view> all = files_[entry.file]->mapped();
  if (!all) return;  // The reader of the document reports the error.
  for (const Part part : {Part::Header, Part::Body}) {
    const std::size_t length = std::min<std::size_t>(kBytesMax, stored_bytes(entry.length(part)));
    if (entry.position(part) + length > all->size()) continue;
    for (std::size_t at = 0; at < length; at += kCacheLine) __builtin_prefetch(all->data() + entry.position(part) + at);
  }
}

Result<std::string_view> Slot::read_part(std::uint32_t number, Part part, std::string& buffer) {
  const MetaEntry& entry = index_->at(number);
  Result<std::string_view> stored = entry.held() ? held_part(entry, part).substr(0, entry.length(part))
                                                 : files_[entry.file]->read_part(entry, part, buffer);
  if (stored && entry.length(part) != 0 && entry.compression(part) != spi::Compression::None) {
    std::string plain;
    const Status status = decompress(*stored, entry.compression(part), plain);
    buffer = std::move(plain);
    stored = status ? Result<std::string_view>(buffer) : status;
  }
  if (!stored && stored.error().code() == StatusCode::Corruption) {
    ++context_.stats.corrupt_reads;
    log::error("slotfile", "{}: {}", bucket_.to_string(), stored.error().to_string());
    quarantine_with_cut_off(number);
  }
  return stored;
}

void Slot::sort_index() {
  if (rewriting || !held_.empty() || !index_->sort()) return;
  index_serial_ = ++context_.index_serial;
  ++context_.changes;
}

void Slot::quarantine(std::uint32_t number) {
  const MetaEntry entry = index_->at(number);
  if (entry.file == MetaEntry::kGone || entry.held()) return;
  ++context_.changes;
  account(entry, false);
  index_->erase(number);
  quarantine_.emplace_back(entry.gid, entry.timestamp_us);
  damage_reported = false;
  set_suspect();
}

void Slot::quarantine_with_cut_off(std::uint32_t number) {
  const std::uint16_t ordinal = index_->at(number).file;
  quarantine(number);
  if (ordinal >= files_.size()) return;
  SlotFile& file = *files_[ordinal].file;
  const std::uint64_t size = file.size_on_disk();
  if (size >= file.size()) return;
  std::uint64_t more = 0;
  for (std::uint32_t i = 0; i < index_->entries().size(); ++i) {
    const MetaEntry& entry = index_->entries()[i];
    if (entry.file != ordinal) continue;
    const bool is_there = entry.header_position + stored_bytes(entry.header_length()) <= size &&
                          entry.body_position + stored_bytes(entry.body_length()) <= size;
    if (is_there) continue;
    quarantine(i);
    ++more;
  }
  log::error("slotfile", "{}: {} was cut off: it has {} of {} bytes; {} more entries are in quarantine",
             bucket_.to_string(), file.file().path(), size, file.size(), more);
}

void Slot::forget(std::uint32_t number) {
  ++context_.changes;
  account(index_->at(number), false);
  index_->erase(number);
}

bool Slot::is_uncertain(const GlobalId& gid) const {
  if (lost_entries_) return true;
  return std::any_of(quarantine_.begin(), quarantine_.end(), [&](const auto& lost) { return lost.first == gid; });
}

bool Slot::is_damaged() {
  if (index_ != nullptr) {
    std::erase_if(quarantine_, [&](const auto& lost) {
      const std::uint32_t number = index_->find(lost.first);
      return number != SlotIndex::kNone && index_->at(number).timestamp_us >= lost.second;
    });
  }
  return lost_entries_ || !quarantine_.empty();
}

void Slot::clear_damage() {
  quarantine_.clear();
  lost_entries_ = false;
  damage_reported = false;
}

void Slot::put_off_rewrite(MonotonicTime now) {
  constexpr Duration kFirst = std::chrono::seconds(10);
  constexpr Duration kMost = std::chrono::minutes(10);
  rewrite_delay_ = std::clamp(rewrite_delay_ * 2, kFirst, kMost);
  rewrite_at_ = now + rewrite_delay_;
}

void Slot::replace_files(std::shared_ptr<SlotFile> file) {
  ++context_.changes;
  for (const auto& old : files_) --old->users;
  files_.clear();
  clear_suspect();
  list_bad_ = false;
  rewrite_delay_ = Duration(0);
  rewrite_at_ = {};
  if (file != nullptr) add_file(whole(std::move(file)));
}

}  // namespace fjord::slotfile
