#include <algorithm>
#include <fmt/format.h>

#include "fjord/document/document_format.h"
#include "inspect_files.h"
#include "part_codec.h"

namespace fjord::slotfile {

namespace {

/// Returns `length` bytes from `offset`, fewer only at the end of the file. Errors: IoError.
Result<std::string> read_bytes(const RandomAccessFile& file, std::uint64_t offset, std::uint64_t length) {
  std::string bytes(length, '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file.read(offset, bytes));
  bytes.resize(got);
  return bytes;
}

}  // namespace

Status SlotfileInspection::read_entries(Env& env) {
  report_.number = number_.value_or(0);
  FJORD_TRY_ASSIGN(const auto file, env.open_random_access(report_.path));
  FJORD_TRY_ASSIGN(report_.bytes, file->size());
  report_.counted_bytes = counted_.value_or(report_.bytes);
  FJORD_TRY(read_header(*file));
  if (report_.bytes < report_.counted_bytes) {
    sink_.problem(report_.path, report_.bytes,
                  fmt::format("{} bytes are missing at the end", report_.counted_bytes - report_.bytes));
  }
  return read_runs(*file);
}

Status SlotfileInspection::read_header(const RandomAccessFile& file) {
  if (report_.counted_bytes == 0) return Status::ok();  // The file was created, and nothing refers to it yet.
  FJORD_TRY_ASSIGN(const std::string head, read_bytes(file, 0, kFileHeaderBytes));
  const Result<FileHeader> header = decode_file_header(head);
  if (!header) {
    sink_.problem(report_.path, 0, header.error().message());
    return Status::ok();
  }
  report_.made_for = header->bucket;
  if (!number_) report_.number = header->number;
  if (header->number != report_.number) {
    sink_.problem(report_.path, 0, fmt::format("the header is that of {}", slotfile_name(header->number)));
  }
  return Status::ok();
}

Result<std::optional<RunFrame>> SlotfileInspection::frame_at(const RandomAccessFile& file, std::uint64_t offset,
                                                             std::uint32_t magic) {
  FJORD_TRY_ASSIGN(const std::string bytes, read_bytes(file, offset, kRunFrameBytes));
  return decode_run_frame(bytes, magic, report_.number, offset);
}

Status SlotfileInspection::read_runs(const RandomAccessFile& file) {
  const std::uint64_t size = report_.counted_bytes;
  std::uint64_t offset = kFileHeaderBytes;
  while (offset < size) {
    FJORD_TRY_ASSIGN(const std::optional<RunFrame> frame, frame_at(file, offset, kRunHeaderMagic));
    if (!frame || frame->bytes() > size - offset) break;
    const std::uint64_t trailer_at = offset + frame->bytes() - kRunFrameBytes;
    FJORD_TRY_ASSIGN(const std::optional<RunFrame> trailer, frame_at(file, trailer_at, kRunTrailerMagic));
    if (trailer != frame) sink_.problem(report_.path, trailer_at, "the run's second frame does not verify");
    FJORD_TRY(read_run(file, offset, *frame));
    offset += frame->bytes();
  }
  if (offset >= size) return Status::ok();
  // Runs behind an unreadable frame, found by reading from the end of the file.
  std::vector<std::pair<std::uint64_t, RunFrame>> behind;
  std::uint64_t end = size;
  while (end - offset >= 2 * kRunFrameBytes) {
    FJORD_TRY_ASSIGN(const std::optional<RunFrame> frame, frame_at(file, end - kRunFrameBytes, kRunTrailerMagic));
    if (!frame || frame->bytes() > end - offset) break;
    end -= frame->bytes();
    behind.emplace_back(end, *frame);
  }
  if (end > offset) {
    sink_.problem(report_.path, offset, fmt::format("{} bytes are not a run", end - offset));
  }
  std::reverse(behind.begin(), behind.end());
  for (const auto& [at, frame] : behind) {
    FJORD_TRY_ASSIGN(const std::optional<RunFrame> first, frame_at(file, at, kRunHeaderMagic));
    if (first != frame) sink_.problem(report_.path, at, "the run's first frame does not verify");
    FJORD_TRY(read_run(file, at, frame));
  }
  return Status::ok();
}

Status SlotfileInspection::read_run(const RandomAccessFile& file, std::uint64_t offset, const RunFrame& frame) {
  Run& run = runs_.emplace_back(Run{.offset = offset, .frame = frame, .entries = {}});
  const std::uint64_t begin = offset + kRunFrameBytes;
  FJORD_TRY_ASSIGN(const std::string bytes, read_bytes(file, begin, frame.entries_bytes()));
  for (std::uint64_t i = 0; i < frame.entries; ++i) {
    const std::uint64_t at = begin + i * kEntryBytes;
    if ((i + 1) * kEntryBytes > bytes.size()) {  // The file ends here. This has been reported already.
      run.entries.emplace_back();
      continue;
    }
    const char* stored = bytes.data() + i * kEntryBytes;
    std::optional<MetaEntry> entry = decode_entry(stored, report_.number, at);
    if (!entry) {
      entry = repair_entry(stored, report_.number, at);
      sink_.problem(report_.path, at,
                    entry ? "a metadata entry has a flipped bit" : "the checksum of a metadata entry is wrong");
    }
    run.entries.push_back(entry);
  }
  return Status::ok();
}

void SlotfileInspection::for_each(const std::function<void(const MetaEntry&)>& visit) const {
  for (const Run& run : runs_) {
    for (const std::optional<MetaEntry>& entry : run.entries) {
      if (entry && !entry->is_void()) visit(*entry);
    }
  }
}

Status SlotfileInspection::read_parts(Env& env, const std::function<void(EntryReport&, const MetaEntry&)>& judge,
                                      bool keep_entries) {
  FJORD_TRY_ASSIGN(const auto file, env.open_random_access(report_.path));
  for (const Run& run : runs_) {
    RunReport& of_run = report_.runs.emplace_back();
    of_run.offset = run.offset;
    of_run.header_bytes = run.frame.header_bytes;
    of_run.body_bytes = run.frame.body_bytes;
    of_run.entry_count = run.entries.size();
    for (std::size_t i = 0; i < run.entries.size(); ++i) {
      EntryReport entry;
      entry.offset = run.offset + kRunFrameBytes + i * kEntryBytes;
      entry.state = EntryState::Bad;
      if (run.entries[i]) {
        judge(entry, *run.entries[i]);
        FJORD_TRY(read_entry_parts(*file, *run.entries[i], entry));
      }
      if (keep_entries) of_run.entries.push_back(std::move(entry));
    }
  }
  runs_.clear();
  return Status::ok();
}

Status SlotfileInspection::read_entry_parts(const RandomAccessFile& file, const MetaEntry& entry, EntryReport& report) {
  report.gid = entry.gid;
  report.timestamp_us = entry.timestamp_us;
  report.removed = entry.removed();
  report.header_position = entry.header_position;
  report.header_length = entry.header_length();
  report.header_compression = entry.compression(Part::Header);
  report.body_position = entry.body_position;
  report.body_length = entry.body_length();
  report.body_compression = entry.compression(Part::Body);
  if (entry.is_void()) {
    report.state = EntryState::Void;
    return Status::ok();
  }
  if (report.state == EntryState::Newest) report_.live_bytes += entry.stored_bytes();
  for (const Part part : {Part::Header, Part::Body}) {
    const std::uint64_t length = stored_bytes(entry.length(part));
    if (length == 0) continue;
    FJORD_TRY_ASSIGN(std::string bytes, read_bytes(file, entry.position(part), length));
    bool right = verify_part(entry, part, bytes);
    if (right) bytes.resize(entry.length(part));
    if (right && entry.compression(part) != spi::Compression::None) {
      const std::string stored = std::exchange(bytes, {});
      right = decompress(stored, entry.compression(part), bytes).is_ok();
    }
    if (right && part == Part::Header) report.id = entry.removed() ? bytes : document_id_of_header(bytes);
    if (right) continue;
    const std::string what = fmt::format("the {} of {} ({} bytes, entry at {}, {}) does not verify",
                                         part == Part::Header ? "header" : "body", entry.gid.to_string(), length,
                                         report.offset, to_string(report.state));
    if (report.state == EntryState::Newest) {
      sink_.problem(report_.path, entry.position(part), what);
    } else {
      sink_.note(report_.path, entry.position(part), what);
    }
  }
  return Status::ok();
}

}  // namespace fjord::slotfile
