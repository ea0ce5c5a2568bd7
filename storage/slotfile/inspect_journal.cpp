#include <fmt/format.h>

#include "fjord/common/hash.h"
#include "inspect_files.h"
#include "read_window.h"

namespace fjord::slotfile {

namespace {

BucketReport report_of(const BucketRecord& bucket) {
  BucketReport report{.uid = bucket.uid,
                      .bucket = bucket.id,
                      .replicas = bucket.replicas,
                      .forgotten = bucket.forgotten,
                      .damaged = bucket.damaged,
                      .slots = {}};
  for (const SlotRecord& slot : bucket.slots) {
    SlotReport& of_slot = report.slots.emplace_back();
    of_slot.first_cell = slot.first_cell;
    of_slot.end_cell = slot.first_cell + (kCells >> slot.depth);
    of_slot.info = slot.info;
    of_slot.live_bytes = slot.live_bytes;
    for (const FileShare& file : slot.files) {
      of_slot.files.push_back(
          {.number = file.number, .bucket = file.bucket, .first_cell = file.first_cell, .end_cell = file.end_cell});
    }
  }
  return report;
}

SuccessorsReport report_of(const Successors& successors) {
  return {.uid = successors.uid, .lsn = successors.lsn, .buckets = successors.buckets};
}

/// Returns the header after correcting the one flipped bit that explains the wrong checksum.
std::optional<RecordHeader> repair_header(std::string_view stored, std::uint64_t segment, std::uint64_t offset) {
  std::string bytes(stored);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const char flip = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
    if (std::optional<RecordHeader> header = decode_record_header(bytes, segment, offset)) return header;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
  }
  return std::nullopt;
}

class SegmentInspection {
 public:
  SegmentInspection(const RandomAccessFile& file, JournalCursor& cursor, SegmentReport& report, FindingSink& sink,
                    const std::function<void(const FoundRecord&)>& visit)
      : file_(file), cursor_(cursor), report_(report), sink_(sink), visit_(visit) {}

  Status run() {
    std::uint64_t offset = kSegmentHeaderBytes;
    report_.used_bytes = offset;
    while (offset + kRecordHeaderBytes <= report_.bytes) {
      FJORD_TRY_ASSIGN(const std::string_view bytes, window_.read(file_, offset, kRecordHeaderBytes, report_.bytes));
      const std::optional<RecordHeader> header = decode_record_header(bytes, report_.number, offset);
      if (header && offset + header->bytes() <= report_.bytes) {
        FJORD_TRY(read_record(*header, offset));
        offset += header->bytes();
        continue;
      }
      // Checks for flipped bits only where a record is expected; elsewhere the bytes may be remains of earlier
      // segments.
      if (offset == expected_ && !header && repair_header(bytes, report_.number, offset)) {
        sink_.problem(report_.path, offset, "a record's header has a flipped bit");
        gap_told_ = true;
      }
      offset += kRecordAlignment;
    }
    return Status::ok();
  }

 private:
  Status read_record(const RecordHeader& header, std::uint64_t offset) {
    const std::uint64_t length = header.bytes() - kRecordHeaderBytes;
    FJORD_TRY_ASSIGN(const std::string_view bytes,
                     window_.read(file_, offset + kRecordHeaderBytes, length, report_.bytes));
    if (offset != expected_ && !gap_told_) {
      sink_.problem(report_.path, expected_,
                    fmt::format("{} bytes are not a record, and there is one behind them", offset - expected_));
    }
    gap_told_ = false;
    expected_ = offset + header.bytes();
    FoundRecord found{.offset = offset, .header = header, .edit = {}, .writes = {}};
    if (bytes.size() < length || !decode(bytes, found)) {
      cursor_.settle(false, sink_);
      cursor_.broken = {.path = report_.path, .offset = offset};
      return Status::ok();
    }
    if (!cursor_.arrive(header.lsn, report_.path, offset, sink_)) return Status::ok();
    cursor_.last_lsn = header.lsn;
    report_.used_bytes = expected_;
    add(found);
    return Status::ok();
  }

  void add(const FoundRecord& found) {
    RecordReport& record = report_.records.emplace_back();
    record.offset = found.offset;
    record.bytes = found.header.bytes();
    record.lsn = found.header.lsn;
    record.write_count = found.writes.size();
    if (found.edit) record.edit = slotfile::report_of(*found.edit);
    visit_(found);
  }

  bool decode(std::string_view bytes, FoundRecord& found) const {
    const std::string_view meta = bytes.substr(0, found.header.meta_bytes);
    if (checksum32(meta) != found.header.meta_checksum) return false;
    if (found.header.type == RecordType::Edit) {
      Result<Edit> edit = decode_edit(meta);
      if (edit) found.edit = std::move(*edit);
      return edit.has_value();
    }
    Result<std::vector<JournalWrite>> writes =
        decode_writes(meta, bytes.substr(found.header.meta_bytes, found.header.parts_bytes));
    if (writes) found.writes = std::move(*writes);
    return writes && found.header.type == RecordType::Writes;
  }

  const RandomAccessFile& file_;
  JournalCursor& cursor_;
  SegmentReport& report_;
  FindingSink& sink_;
  const std::function<void(const FoundRecord&)>& visit_;
  ReadWindow window_;
  std::uint64_t expected_ = kSegmentHeaderBytes;  ///< Offset at which the next record begins, if there is one.
  bool gap_told_ = false;
};

}  // namespace

StructureReport report_of(const Edit& edit) {
  StructureReport report;
  report.removed = edit.removed;
  for (const BucketRecord& bucket : edit.buckets) report.buckets.push_back(report_of(bucket));
  for (const Successors& successors : edit.successors) report.successors.push_back(report_of(successors));
  report.file_sizes.assign(edit.file_sizes.begin(), edit.file_sizes.end());
  report.next_uid = edit.next_uid;
  report.next_file = edit.next_file;
  return report;
}

StructureReport report_of(const Catalog& catalog) {
  StructureReport report;
  for (const auto& [uid, bucket] : catalog.buckets) report.buckets.push_back(report_of(bucket));
  for (const auto& [uid, successors] : catalog.successors) report.successors.push_back(report_of(successors));
  report.file_sizes.assign(catalog.file_sizes.begin(), catalog.file_sizes.end());
  report.next_uid = catalog.next_uid;
  report.next_file = catalog.next_file;
  return report;
}

/// Reports a broken record. It is a note if the next record has the same number, because then the broken record was
/// never acknowledged; otherwise it is a problem.
void JournalCursor::settle(bool number_was_used_again, FindingSink& sink) {
  if (!broken) return;
  if (number_was_used_again) {
    sink.note(broken->path, broken->offset, "a record is torn: the process ended while writing it");
  } else {
    sink.problem(broken->path, broken->offset, "a record does not verify");
  }
  broken.reset();
}

bool JournalCursor::arrive(std::uint64_t lsn, const std::string& path, std::uint64_t offset, FindingSink& sink) {
  if (last_lsn && lsn <= *last_lsn) {
    sink.problem(path, offset, fmt::format("record {} comes after record {}", lsn, *last_lsn));
    return false;
  }
  const std::uint64_t missing = last_lsn ? lsn - *last_lsn - 1 : 0;
  if (missing > (broken ? 1 : 0)) {
    sink.problem(path, offset, fmt::format("{} records are missing before record {}", missing, lsn));
  }
  settle(last_lsn && missing == 0, sink);
  return true;
}

void JournalCursor::finish(FindingSink& sink) const {
  if (!broken) return;
  sink.note(broken->path, broken->offset,
            "the last record does not verify: the process ended while writing it, or it is damaged");
}

Result<SegmentReport> inspect_segment(Env& env, const std::string& path, std::optional<std::uint64_t> number, bool last,
                                      JournalCursor& cursor, FindingSink& sink,
                                      const std::function<void(const FoundRecord&)>& visit) {
  SegmentReport report;
  report.path = path;
  report.number = number.value_or(0);
  FJORD_TRY_ASSIGN(const auto file, env.open_random_access(path));
  FJORD_TRY_ASSIGN(report.bytes, file->size());
  std::string head(kSegmentHeaderBytes, '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file->read(0, head));
  head.resize(got);
  const Result<SegmentHeader> found = decode_segment_header(head);
  const bool empty = head.find_first_not_of('\0') == std::string::npos;
  if (!found && last && empty) {
    sink.note(path, 0, "the segment was being made");
    return report;
  }
  if (!found) {
    sink.problem(path, 0, found.error().message());
    if (!number) return report;
  } else if (number && found->number != *number) {
    // The last segment may be an old one that was renamed for reuse but not yet written.
    const std::string what = fmt::format("the header is that of segment {}", found->number);
    last ? sink.note(path, 0, what) : sink.problem(path, 0, what);
    return report;
  } else {
    report.number = found->number;
    if (cursor.arrive(found->first_lsn, path, 0, sink)) cursor.last_lsn = found->first_lsn - 1;
  }
  FJORD_TRY(SegmentInspection(*file, cursor, report, sink, visit).run());
  return report;
}

}  // namespace fjord::slotfile
