#include "slot.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "metadata_list.h"

namespace fjord::slotfile {

namespace {

std::string_view part_name(Part part) { return part == Part::Header ? "header" : "body"; }

}  // namespace

Slot::Slot(EngineContext& context, std::string path, const FileHeader& header, std::span<const MetaEntry> entries)
    : context_(context), file_(context.files, std::move(path)), header_(header) {
  index_.reserve(entries.size());
  for (const MetaEntry& entry : entries) index_.insert(entry);
  adopt(entries);
}

/// Takes over where the entries of a file without superseded ones are.
void Slot::adopt(std::span<const MetaEntry> entries) {
  live_ = {};
  for (const MetaEntry& entry : entries) live_ += Room::of(entry);
  used_ = live_;
  must_rewrite_ = false;
  ++layout_version_;
}

Result<std::unique_ptr<Slot>> Slot::load(EngineContext& context, std::string path, const FileHeader& expected) {
  FJORD_TRY_ASSIGN(auto file, context.env.open_random_access(path));
  FJORD_TRY_ASSIGN(const FileHeader header, read_file_header(*file, path));
  if (header.bucket != expected.bucket || header.generation != expected.generation || header.slot != expected.slot ||
      header.slot_bits != expected.slot_bits) {
    return Status(StatusCode::Corruption, path + ": the header is that of another slotfile");
  }
  FJORD_TRY_ASSIGN(const MetadataList list, MetadataList::read(*file, header));
  FJORD_TRY_ASSIGN(const std::uint64_t size, file->size());
  if (size < header.file_bytes()) {
    ++context.stats.short_slotfiles;
    log::warning("slotfile", "{}: {} bytes are missing at the end", path, header.file_bytes() - size);
  }
  if (list.lost() + list.torn() + list.repaired() != 0) {
    log::warning("slotfile", "{}: {} metadata entries are lost, {} torn, {} repaired", path, list.lost(), list.torn(),
                 list.repaired());
  }
  context.stats.bad_entries += list.lost();
  context.stats.torn_entries += list.torn();
  context.stats.repaired_entries += list.repaired();
  auto slot = std::make_unique<Slot>(context, std::move(path), header, list.newest());
  slot->used_ = {list.used(), list.header_bytes_used(), list.body_bytes_used()};
  slot->must_rewrite_ = size < header.file_bytes();
  return slot;
}

bool Slot::fits(const Room& need) const {
  if (need.entries == 0) return true;
  return !must_rewrite_ && used_.entries + need.entries <= header_.entry_capacity &&
         used_.header_bytes + need.header_bytes <= header_.header_capacity &&
         used_.body_bytes + need.body_bytes <= header_.body_capacity;
}

Room Slot::room_for(std::span<const spi::Write> writes, std::span<const std::uint32_t> group) const {
  Room need;
  for (const std::uint32_t i : group) {
    const std::uint32_t number = index_.find(writes[i].gid);
    if (number == SlotIndex::kNone || index_.at(number).timestamp() < writes[i].timestamp) {
      need += Room::of(writes[i]);
    }
  }
  return need;
}

Status Slot::append(std::span<const spi::Write> writes, std::span<const std::uint32_t> group,
                    std::span<spi::WriteResult> results, BucketInfo& info) {
  WriteScratch& scratch = context_.scratch;
  scratch.headers.clear();
  scratch.bodies.clear();
  scratch.entries.clear();
  scratch.undo.clear();
  const BucketInfo info_before = info;
  const Room used_before = used_;
  const Room live_before = live_;

  index_.reserve(index_.size() + group.size());
  for (const std::uint32_t i : group) stage(writes[i], results[i], info);
  if (scratch.undo.empty()) return Status::ok();  // all superseded

  Status status = write_runs(used_before);
  if (status) return status;
  ++context_.stats.failed_writes;
  undo();
  info = info_before;
  used_ = used_before;
  live_ = live_before;
  for (const std::uint32_t i : group) results[i] = spi::WriteResult{.status = status};
  return status;
}

/// Adds one write to the runs and to the index, with the way back in scratch.undo.
void Slot::stage(const spi::Write& write, spi::WriteResult& result, BucketInfo& info) {
  WriteScratch& scratch = context_.scratch;
  result = {};
  const std::uint32_t found = index_.find(write.gid);
  if (found != SlotIndex::kNone) {
    const MetaEntry& old = index_.at(found);
    result.existed = !old.removed();
    result.superseded = old.timestamp() >= write.timestamp;
    if (result.superseded) return;
    info.bytes -= old.document_bytes();
    info.checksum -= spi::entry_hash(write.gid, old.timestamp(), old.removed());
    --info.entries;
    if (!old.removed()) --info.documents;
    live_ -= Room::of(old);
  }

  const std::string_view header = write.remove ? write.id : write.header;
  const std::string_view body = write.remove ? std::string_view{} : write.body;
  MetaEntry entry;
  entry.timestamp_us = write.timestamp.us;
  entry.gid = write.gid;
  entry.header_position = static_cast<std::uint32_t>(used_.header_bytes);
  entry.body_position = static_cast<std::uint32_t>(used_.body_bytes);
  entry.header_length_flags = static_cast<std::uint32_t>(header.size()) | (write.remove ? kFlagRemoved : 0);
  entry.body_length = static_cast<std::uint32_t>(body.size());
  stage_part(scratch.headers, header, part_seed(header_.bucket, write.gid, entry.timestamp_us, Part::Header));
  stage_part(scratch.bodies, body, part_seed(header_.bucket, write.gid, entry.timestamp_us, Part::Body));
  char encoded[kEntryBytes];
  encode_entry(entry, entry_seed(header_.bucket, header_.slot, used_.entries), encoded);
  scratch.entries.append(encoded, kEntryBytes);

  used_ += Room::of(entry);
  live_ += Room::of(entry);
  ++info.entries;
  if (!entry.removed()) ++info.documents;
  info.bytes += entry.document_bytes();
  info.checksum += spi::entry_hash(write.gid, write.timestamp, write.remove);
  info.max_timestamp_us = std::max(info.max_timestamp_us, entry.timestamp_us);
  if (found == SlotIndex::kNone) {
    scratch.undo.push_back({.number = index_.insert(entry), .inserted = true, .before = {}});
  } else {
    scratch.undo.push_back({.number = found, .inserted = false, .before = std::exchange(index_.at(found), entry)});
  }
}

void Slot::stage_part(std::string& run, std::string_view bytes, std::uint64_t seed) {
  if (bytes.empty()) return;
  run.append(bytes);
  put_fixed<std::uint32_t>(run, checksum32(bytes, seed));
}

/// The order makes every point of a crash safe: until its metadata entry is there, a part is unused space.
Status Slot::write_runs(const Room& before) {
  const WriteScratch& scratch = context_.scratch;
  FJORD_TRY_ASSIGN(RandomAccessFile * file, file_.get());
  if (!scratch.headers.empty()) {
    FJORD_TRY(file->write(header_.header_offset() + before.header_bytes, scratch.headers));
  }
  if (!scratch.bodies.empty()) FJORD_TRY(file->write(header_.body_offset() + before.body_bytes, scratch.bodies));
  FJORD_TRY(sync(*file));
  Status status = file->write(header_.entry_offset(before.entries), scratch.entries);
  if (!status) {
    // Some of the entries may be there. What failed must not come back after a restart, least of all with parts that
    // later writes have replaced: take them out, or if that fails too, write no more to this file.
    const std::string zeros(scratch.entries.size(), '\0');
    must_rewrite_ = !file->write(header_.entry_offset(before.entries), zeros).is_ok();
    return status;
  }
  return sync(*file);
}

Status Slot::sync(RandomAccessFile& file) {
  if (!context_.sync()) return Status::ok();
  const Status status = file.sync();
  sync_failed_ = !status;
  return status;
}

void Slot::undo() {
  const std::vector<WriteScratch::Undo>& steps = context_.scratch.undo;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->inserted) {
      index_.remove_last();
    } else {
      index_.at(step->number) = step->before;
    }
  }
}

Status Slot::read_part(const MetaEntry& entry, Part part, std::string& into) {
  const std::uint64_t length = stored_bytes(part_length(entry, part));
  into.resize(length);
  if (length == 0) return Status::ok();
  FJORD_TRY_ASSIGN(RandomAccessFile * file, file_.get());
  FJORD_TRY_ASSIGN(const std::size_t got, file->read(part_offset(entry, part), {into.data(), into.size()}));
  FJORD_TRY(verify(entry, part, std::string_view(into).substr(0, got)));
  into.resize(length - kPartChecksumBytes);
  return Status::ok();
}

Status Slot::verify(const MetaEntry& entry, Part part, std::string_view stored) const {
  const std::uint32_t length = part_length(entry, part);
  if (length == 0) return Status::ok();
  if (stored.size() == stored_bytes(length)) {
    const std::uint64_t seed = part_seed(header_.bucket, entry.gid, entry.timestamp_us, part);
    if (load_fixed<std::uint32_t>(stored.data() + length) == checksum32(stored.substr(0, length), seed)) {
      return Status::ok();
    }
  }
  ++context_.stats.corrupt_reads;
  return Status(
      StatusCode::Corruption,
      fmt::format("{}: the {} of {} at timestamp {} ({} bytes at offset {}) does not verify", path(), part_name(part),
                  entry.gid.to_string(), entry.timestamp_us, length, part_offset(entry, part)));
}

Status Slot::rewrite(const Room& capacity) {
  FileHeader header = header_;
  header.entry_capacity = static_cast<std::uint32_t>(capacity.entries);
  header.header_capacity = capacity.header_bytes;
  header.body_capacity = capacity.body_bytes;
  std::vector<MetaEntry> entries(index_.entries().begin(), index_.entries().end());
  FJORD_TRY(write_slotfile(context_, path(), header, this, entries));
  file_.close();  // the old file, which has no name any more
  if (context_.sync()) {
    // Without it a loss of power would bring the old file back, and take what was written to the new one.
    const Status status = context_.env.sync_directory(path().substr(0, path().find_last_of('/')));
    sync_failed_ = !status;
    FJORD_TRY(status);
  }
  header_ = header;
  for (std::uint32_t i = 0; i < entries.size(); ++i) index_.at(i) = entries[i];
  adopt(entries);
  ++context_.stats.rewrites;
  return Status::ok();
}

}  // namespace fjord::slotfile
