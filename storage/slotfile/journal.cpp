#include "journal.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"

namespace fjord::slotfile {

namespace {

constexpr std::size_t kSpareMax = 1;
constexpr std::uint64_t kScanBytes = 256 << 10;

/// Returns the number of bytes to skip before a record can begin.
std::size_t bytes_before_magic(std::string_view bytes) {
  std::size_t at = 0;
  while (at + sizeof(kRecordMagic) <= bytes.size() && load_fixed<std::uint32_t>(bytes.data() + at) != kRecordMagic) {
    at += kRecordAlignment;
  }
  return std::min(at, bytes.size() / kRecordAlignment * kRecordAlignment);
}

/// Returns the lsn of the segment's first record; nothing if the segment header is damaged or was never completed.
Result<std::optional<std::uint64_t>> first_lsn_of(std::string_view bytes, std::uint64_t number) {
  const Result<SegmentHeader> found = decode_segment_header(bytes);
  if (!found && found.error().code() == StatusCode::NotImplemented) return found.error();
  return found && found->number == number ? std::optional(found->first_lsn) : std::nullopt;
}

}  // namespace

Result<Journal::ReplayResult> Journal::replay(std::uint64_t first, const std::function<Status(const Record&)>& visit) {
  FJORD_TRY_ASSIGN(const std::vector<std::string> names, context_.env.list_directory(context_.options.directory));
  segments_.clear();
  unsynced_.clear();
  replayed_ends_.clear();
  for (const std::string& name : names) {  // The names are sorted, and therefore in the order of the segments' numbers.
    const auto number = parse_journal_name(name, context_.options.stripe);
    if (!number) continue;
    segment_ = std::max(segment_, *number);
    if (*number >= first) {
      segments_.push_back({*number, 0});
    } else {
      // Removes the segment instead of reusing it. If a loss of power undoes its last renaming, it may hold records
      // with a number that this process will assign to another segment.
      static_cast<void>(context_.env.remove_file(context_.path(name)));  // If this fails, the next start removes it.
    }
  }
  ReplayResult result;
  for (Segment& segment : segments_) {
    const std::uint64_t before = result.bytes;
    result.end = 0;
    FJORD_TRY(replay_segment(segment.number, visit, result));
    segment.bytes = result.bytes - before;
    replayed_ends_.push_back(result.end);
  }
  return result;
}

Status Journal::replay_segment(std::uint64_t number, const std::function<Status(const Record&)>& visit,
                               ReplayResult& result) {
  const std::string path = context_.path(journal_name(context_.options.stripe, number));
  FJORD_TRY_ASSIGN(const std::shared_ptr<RandomAccessFile> file, context_.env.open_random_access(path));
  unsynced_.emplace_back(number, file);  // The previous process may not have synced this segment.
  FJORD_TRY_ASSIGN(const std::uint64_t size, file->size());
  ReadWindow window;
  FJORD_TRY_ASSIGN(std::string_view bytes, window.read(*file, 0, kSegmentHeaderBytes, size));
  // Each record contains the number of its segment, so records can be used without the segment's header.
  FJORD_TRY_ASSIGN(const std::optional<std::uint64_t> first_lsn, first_lsn_of(bytes, number));
  if (first_lsn && !result.begun) {
    result.begun = true;
    result.last_lsn = *first_lsn - 1;
  }
  std::uint64_t offset = kSegmentHeaderBytes;
  while (offset + kRecordHeaderBytes <= size) {
    FJORD_TRY_ASSIGN(bytes, window.read(*file, offset, kRecordHeaderBytes, size));
    const std::optional<RecordHeader> header = decode_record_header(bytes, number, offset);
    if (!header || offset + header->bytes() > size) {
      // Searches on, because intact records may follow a broken one. At the end of the journal none follows.
      offset += kRecordAlignment;
      FJORD_TRY_ASSIGN(bytes, window.read(*file, offset, std::min(size - offset, kScanBytes), size));
      offset += bytes_before_magic(bytes);
      continue;
    }
    const std::uint64_t length = header->bytes() - kRecordHeaderBytes;
    FJORD_TRY_ASSIGN(bytes, window.read(*file, offset + kRecordHeaderBytes, length, size));
    const std::uint64_t at = std::exchange(offset, offset + header->bytes());
    if (bytes.size() < length || checksum32(bytes.substr(0, header->meta_bytes)) != header->meta_checksum) continue;
    if (header->lsn <= result.last_lsn) continue;
    const Status used = visit({.lsn = header->lsn,
                               .type = header->type,
                               .meta = bytes.substr(0, header->meta_bytes),
                               .parts = bytes.substr(header->meta_bytes, header->parts_bytes)});
    if (!used && used.code() == StatusCode::Corruption) continue;
    FJORD_TRY(used);
    if (std::exchange(result.begun, true)) {
      result.lost_records += header->lsn - result.last_lsn - 1;
    } else if (at != kSegmentHeaderBytes) {
      ++result.lost_records;  // Records are missing here; at least one is lost.
    }
    result.last_lsn = header->lsn;
    result.bytes += header->bytes();
    ++result.records;
    result.end = offset;
  }
  return Status::ok();
}

Status Journal::rewrite_replayed() {
  ReadWindow window;
  for (std::size_t i = 0; i < unsynced_.size(); ++i) {
    RandomAccessFile& file = *unsynced_[i].second;
    window.forget();
    for (std::uint64_t at = 0; at < replayed_ends_[i];) {
      const std::uint64_t length = std::min(replayed_ends_[i] - at, ReadWindow::kBytesMax);
      FJORD_TRY_ASSIGN(const std::string_view bytes, window.read(file, at, length, at + length));
      if (bytes.size() < length) return Status(StatusCode::IoError, "a journal segment became shorter");
      FJORD_TRY(file.write(at, bytes));
      at += length;
    }
  }
  return Status::ok();
}

Status Journal::make_segment(std::uint64_t number, std::uint64_t first_lsn) {
  const std::string path = context_.path(journal_name(context_.options.stripe, number));
  std::unique_ptr<RandomAccessFile> file;
  if (!spare_.empty()) {
    FJORD_TRY(context_.env.rename(context_.path(spare_.back()), path));
    spare_.pop_back();
    FJORD_TRY_ASSIGN(file, context_.env.open_random_access(path));
  } else {
    FJORD_TRY_ASSIGN(file, context_.env.create_random_access(path));
    Status status = file->allocate(segment_bytes_);
    if (!status) {
      static_cast<void>(context_.env.remove_file(path));
      return status;
    }
  }
  FJORD_TRY(file->write(0, encode_segment_header({.number = number, .first_lsn = first_lsn})));
  file_ = std::move(file);
  return Status::ok();
}

Status Journal::start(std::uint64_t next_lsn) {
  FJORD_TRY(health_);
  next_lsn_ = next_lsn;
  std::shared_ptr<RandomAccessFile> before = std::move(file_);
  if (const Status status = make_segment(segment_ + 1, next_lsn); !status) {
    file_ = std::move(before);
    return io_error_if_gone(status);
  }
  // Later records may depend on this segment, so the next sync includes it.
  if (before != nullptr && synced_position_ < position_) {
    context_.start_writeback(before);
    unsynced_.emplace_back(segment_, std::move(before));
  }
  ++segment_;
  segments_.push_back({segment_, 0});
  position_ = kSegmentHeaderBytes;
  synced_position_ = 0;
  name_durable_ = false;
  return Status::ok();
}

Status Journal::append(RecordType type, std::string_view meta, std::span<const std::string_view> parts, bool sync_it) {
  FJORD_TRY(health_);
  if (file_ == nullptr || position_ >= segment_bytes_) FJORD_TRY(rotate());
  RecordHeader header{.type = type,
                      .lsn = next_lsn_,
                      .meta_bytes = static_cast<std::uint32_t>(meta.size()),
                      .parts_bytes = 0,
                      .meta_checksum = checksum32(meta)};
  std::uint64_t parts_bytes = 0;
  for (const std::string_view part : parts) parts_bytes += part.size();
  if (meta.size() + parts_bytes > 0xffffff00) return Status(StatusCode::TooLarge, "a batch may have 4 GiB at most");
  header.parts_bytes = static_cast<std::uint32_t>(parts_bytes);
  frame_.clear();
  append_record_header(frame_, header, segment_, position_);
  frame_.append(meta);
  pieces_.assign(1, frame_);
  pieces_.insert(pieces_.end(), parts.begin(), parts.end());
  static constexpr std::string_view kPadding("\0\0\0\0\0\0\0", kRecordAlignment - 1);
  const std::uint64_t end = meta.size() + parts_bytes;
  if (record_aligned(end) != end) pieces_.push_back(kPadding.substr(0, record_aligned(end) - end));
  if (const Status status = file_->write_gather(position_, pieces_); !status) return take_back(status);
  position_ += header.bytes();
  segments_.back().bytes += header.bytes();
  grow_segments_for(header.bytes());
  ++next_lsn_;
  return sync_it ? sync() : Status::ok();
}

/// Makes later segments larger if records are large. Creating a segment costs a sync of the folder, so each segment
/// should have room for several records.
void Journal::grow_segments_for(std::uint64_t record_bytes) {
  constexpr std::uint64_t kRecords = 8;
  const std::uint64_t least = context_.options.journal_segment_bytes;
  const std::uint64_t most = std::max(least, context_.options.limits.journal_bytes_max / 8);
  segment_bytes_ = std::clamp(std::max(segment_bytes_, record_bytes * kRecords), least, most);
}

/// Overwrites a record whose writing failed, so that a replay does not find it.
Status Journal::take_back(Status why) {
  const std::string zeros(kRecordHeaderBytes, '\0');
  Status status = file_->write(position_, zeros);
  // On a full disk there may be no room for zeros at the end of the file. Truncating the file needs no space.
  if (status.code() == StatusCode::NoSpace) status = file_->truncate(position_);
  if (!status) {
    health_ = status.with_context("a broken journal record could not be taken back; closed until the next start");
    return Status(StatusCode::Timeout, "in doubt: " + health_.message());
  }
  return why;
}

Status Journal::sync() {
  FJORD_TRY(health_);
  if (synced_position_ == position_ && unsynced_.empty()) return Status::ok();
  Status status;
  for (const auto& [number, file] : unsynced_) {
    if (status) status = file->sync();
  }
  if (status && file_ != nullptr) status = file_->sync();
  if (status && !name_durable_) status = context_.env.sync_directory(context_.options.directory);
  if (!status) {
    health_ = status.with_context("a sync of the journal failed; closed until the next start");
    log::error("slotfile", "{}", health_.to_string());
    return Status(StatusCode::Timeout, "in doubt: " + health_.message());
  }
  unsynced_.clear();
  name_durable_ = true;
  synced_position_ = position_;
  return Status::ok();
}

Journal::SyncTicket Journal::begin_sync() const {
  SyncTicket ticket{.files = {}, .segment = segment_, .position = position_};
  for (const auto& [number, file] : unsynced_) ticket.files.push_back(file);
  if (synced_position_ < position_) ticket.files.push_back(file_);
  return ticket;
}

void Journal::end_sync(const SyncTicket& ticket) {
  std::erase_if(unsynced_, [&](const auto& older) { return older.first < ticket.segment; });
  // A newer segment has begun. The caller has made the segments' names durable.
  if (ticket.segment != segment_) return;
  name_durable_ = true;
  synced_position_ = std::max(synced_position_, ticket.position);
}

std::uint64_t Journal::bytes() const {
  std::uint64_t sum = 0;
  for (const Segment& segment : segments_) sum += segment.bytes;
  return sum;
}

void Journal::retire(std::uint64_t segment) {
  std::erase_if(unsynced_, [&](const auto& older) { return older.first < segment; });
  while (!segments_.empty() && segments_.front().number < segment) {
    std::string name = journal_name(context_.options.stripe, segments_.front().number);
    segments_.erase(segments_.begin());
    spare_.push_back(std::move(name));
  }
  while (spare_.size() > kSpareMax) {
    context_.remove_file(context_.path(spare_.front()));
    spare_.erase(spare_.begin());
  }
}

}  // namespace fjord::slotfile
