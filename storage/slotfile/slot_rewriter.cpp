#include "slot_rewriter.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::slotfile {

namespace {

/// A gap of at most this size between wanted parts is read too, instead of beginning a new read.
constexpr std::uint64_t kGapBytesMax = 32 << 10;
constexpr std::uint64_t kWriteBytes = 1 << 20;

}  // namespace

SlotRewriter::SlotRewriter(EngineContext& context, Slot& slot, std::shared_ptr<SlotFile> fresh, Losses losses)
    : context_(context), slot_(slot), fresh_(std::move(fresh)), losses_(losses) {
  slot_.rewriting = true;
  const std::span<const MetaEntry> all = slot_.index().entries();
  for (std::uint32_t number = 0; number < all.size(); ++number) {
    const MetaEntry& entry = all[number];
    if (entry.file == MetaEntry::kGone || entry.held()) continue;
    if (slot_.is_forgotten(entry)) {
      forgotten_.emplace_back(number, entry);
    } else {
      numbers_.push_back(number);
    }
  }
  std::sort(numbers_.begin(), numbers_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(all[a].file, all[a].header_position) < std::tie(all[b].file, all[b].header_position);
  });
  for (const std::uint32_t number : numbers_) old_.push_back(all[number]);
  lay_out();
}

SlotRewriter::~SlotRewriter() {
  slot_.rewriting = false;
  if (fresh_ != nullptr) fresh_->remove_when_unused();
}

void SlotRewriter::lay_out() {
  entries_ = old_;
  frame_.entries = static_cast<std::uint32_t>(entries_.size());
  for (const MetaEntry& entry : entries_) {
    frame_.header_bytes += stored_bytes(entry.header_length());
    frame_.body_bytes += stored_bytes(entry.body_length());
  }
  std::uint64_t header = kFileHeaderBytes + kRunFrameBytes + frame_.entries_bytes();
  std::uint64_t body = header + frame_.header_bytes;
  out_offset_ = header;
  for (MetaEntry& entry : entries_) {
    entry.file = 0;
    entry.header_position = static_cast<std::uint32_t>(header);
    entry.body_position = static_cast<std::uint32_t>(body);
    header += stored_bytes(entry.header_length());
    body += stored_bytes(entry.body_length());
  }
}

Result<bool> SlotRewriter::step(std::uint64_t bytes_max) {
  if (entries_.empty()) return true;
  if (phase_ == Phase::Headers && at_ == 0 && out_.empty()) {
    if (kFileHeaderBytes + frame_.bytes() > kFileBytesMax) {
      return Status(StatusCode::NoSpace, slot_.bucket().to_string() + ": the slot is too large for one file");
    }
    FJORD_TRY(fresh_->file().create());
  }
  if (phase_ == Phase::Headers || phase_ == Phase::Bodies) {
    FJORD_TRY(copy(phase_ == Phase::Headers ? Part::Header : Part::Body, bytes_max));
    if (at_ < old_.size()) return false;
    at_ = 0;
    phase_ = phase_ == Phase::Headers ? Phase::Bodies : Phase::Lists;
    if (phase_ == Phase::Lists) FJORD_TRY(write_out());
    return false;
  }
  if (phase_ == Phase::Lists) {
    FJORD_TRY(write_lists());
    phase_ = Phase::Done;
  }
  return true;
}

Status SlotRewriter::copy(Part part, std::uint64_t bytes_max) {
  for (std::uint64_t done = 0; at_ < old_.size() && done < bytes_max; ++at_) {
    const std::uint64_t length = stored_bytes(old_[at_].length(part));
    if (length == 0) continue;
    const Result<std::string_view> stored = part_or_loss(at_, part);
    // A file that is missing has lost its entries, like one that does not verify.
    if (!stored && stored.error().code() != StatusCode::Corruption) return stored.error();
    done += length + kEntryBytes;
    if (stored && verify_part(old_[at_], part, *stored)) {
      out_.append(*stored);
    } else {
      if (stored) {
        log::error("slotfile", "{}: a document part in {} does not verify", slot_.bucket().to_string(),
                   slot_.files()[old_[at_].file]->file().path());
      }
      ++context_.stats.corrupt_reads;
      lost_ = true;
      entries_[at_].body_length_flags |= kFlagVoid;
      out_.append(length, '\0');
    }
    if (out_.size() >= kWriteBytes) FJORD_TRY(write_out());
  }
  return Status::ok();
}

Result<std::string_view> SlotRewriter::stored_part(std::size_t i, Part part) {
  const MetaEntry& entry = old_[i];
  if (window_file_ != entry.file) window_.forget();
  window_file_ = entry.file;
  FJORD_TRY_ASSIGN(RandomAccessFile * file, slot_.files()[entry.file]->file().get());
  const std::uint64_t length = stored_bytes(entry.length(part));
  const std::uint64_t ahead = window_.contains(entry.position(part), length) ? 0 : read_ahead(i, part);
  return window_.read(*file, entry.position(part), length, ahead);
}

/// Reads a part as stored_part() does. If losses are accepted, a part that twice cannot be read is reported as
/// Corruption, once for all parts. A file that cannot be opened may be whole, so that stays an error.
Result<std::string_view> SlotRewriter::part_or_loss(std::size_t i, Part part) {
  const auto is_unreadable = [](const Result<std::string_view>& stored) {
    return !stored && stored.error().code() == StatusCode::IoError;
  };
  Result<std::string_view> stored = stored_part(i, part);
  if (is_unreadable(stored)) stored = stored_part(i, part);
  CachedFile& file = slot_.files()[old_[i].file]->file();
  if (!is_unreadable(stored) || losses_ == Losses::Refused || !file.is_open()) {
    if (!stored && stored.error().code() == StatusCode::Corruption) {
      log::error("slotfile", "{}: {}", slot_.bucket().to_string(), stored.error().message());
    }
    return stored;
  }
  if (!std::exchange(has_logged_unreadable_, true)) {
    log::error("slotfile", "{}: documents are lost here because {} cannot be read: {}", slot_.bucket().to_string(),
               file.path(), stored.error().message());
  }
  return Status(StatusCode::Corruption, file.path() + " cannot be read");
}

/// Returns the offset at which a read that begins with this part should end.
std::uint64_t SlotRewriter::read_ahead(std::size_t i, Part part) const {
  const std::uint64_t begin = old_[i].position(part);
  std::uint64_t end = begin + stored_bytes(old_[i].length(part));
  for (std::size_t next = i + 1; next < old_.size() && old_[next].file == old_[i].file; ++next) {
    const std::uint64_t size = stored_bytes(old_[next].length(part));
    const std::uint64_t offset = old_[next].position(part);
    if (size == 0) continue;
    if (offset < end || offset - end > kGapBytesMax || offset + size - begin > ReadWindow::kBytesMax) break;
    end = offset + size;
  }
  return end;
}

Status SlotRewriter::write_out() {
  if (out_.empty()) return Status::ok();
  FJORD_TRY_ASSIGN(std::shared_ptr<RandomAccessFile> file, fresh_->file().share());
  FJORD_TRY(file->write(out_offset_, out_));
  context_.start_writeback(std::move(file));
  context_.stats.rewritten_bytes += out_.size();
  out_offset_ += out_.size();
  out_.clear();
  return Status::ok();
}

Status SlotRewriter::write_lists() {
  const std::uint32_t number = fresh_->number();
  std::string head = encode_file_header({.number = number, .bucket = slot_.bucket()});
  head += encode_run_frame(frame_, kRunHeaderMagic, number, kFileHeaderBytes);
  const std::size_t list = head.size();
  head.resize(list + frame_.entries_bytes());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    encode_entry(entries_[i], number, list + i * kEntryBytes, head.data() + list + i * kEntryBytes);
  }
  const std::uint64_t trailer_at = kFileHeaderBytes + frame_.bytes() - kRunFrameBytes;
  FJORD_TRY_ASSIGN(std::shared_ptr<RandomAccessFile> file, fresh_->file().share());
  FJORD_TRY(file->write(0, head));
  FJORD_TRY(file->write(trailer_at, encode_run_frame(frame_, kRunTrailerMagic, number, trailer_at)));
  context_.start_writeback(std::move(file));
  fresh_->set_size(kFileHeaderBytes + frame_.bytes());
  return Status::ok();
}

void SlotRewriter::quarantine_lost() {
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (entries_[i].is_void() && slot_.index().at(numbers_[i]) == old_[i]) slot_.quarantine(numbers_[i]);
  }
}

std::vector<std::shared_ptr<SlotFile>> SlotRewriter::finish() {
  std::vector<std::shared_ptr<SlotFile>> before;
  for (const FileRef& ref : slot_.files()) before.push_back(ref.file);
  SlotIndex& index = slot_.index();
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (index.at(numbers_[i]) != old_[i]) continue;
    if (entries_[i].is_void()) {
      slot_.quarantine(numbers_[i]);
    } else {
      index.at(numbers_[i]) = entries_[i];
    }
  }
  for (const auto& [number, entry] : forgotten_) {
    if (index.at(number) == entry) slot_.forget(number);
  }
  slot_.replace_files(entries_.empty() ? nullptr : std::exchange(fresh_, nullptr));
  return before;
}

}  // namespace fjord::slotfile
