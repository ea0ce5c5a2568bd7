#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catalog.h"
#include "fjord/storage/slotfile/slotfile_inspect.h"
#include "journal_format.h"
#include "slot_file.h"

/// Inspects single files; slotfile_inspect.cpp inspects the whole folder.
namespace fjord::slotfile {

/// Collects findings.
class FindingSink {
 public:
  explicit FindingSink(std::vector<InspectFinding>& findings) : findings_(findings) {}

  void problem(const std::string& path, std::uint64_t offset, std::string what) {
    findings_.push_back({InspectFinding::Severity::Problem, path, offset, std::move(what)});
  }
  void note(const std::string& path, std::uint64_t offset, std::string what) {
    findings_.push_back({InspectFinding::Severity::Note, path, offset, std::move(what)});
  }

 private:
  std::vector<InspectFinding>& findings_;
};

StructureReport report_of(const Catalog& catalog);
StructureReport report_of(const Edit& edit);

/// A verified record; its views refer to the bytes read.
struct FoundRecord {
  std::uint64_t offset = 0;
  RecordHeader header;
  std::optional<Edit> edit;
  std::vector<JournalWrite> writes;
};
/// The reader's position in the journal, across segments.
struct JournalCursor {
  struct Broken {
    std::string path;
    std::uint64_t offset = 0;
  };
  std::optional<std::uint64_t> last_lsn;  ///< Lsn of the preceding record; nothing if it is unknown.
  std::optional<Broken> broken;  ///< A record that failed verification, while no valid record has been found after it.

  /// Advances to `lsn`, which is that of a record, or of the first record of a segment that begins there. Returns false
  /// if it is not after the last one.
  bool arrive(std::uint64_t lsn, const std::string& path, std::uint64_t offset, FindingSink& sink);
  void settle(bool number_was_used_again, FindingSink& sink);
  /// Must be called after the last segment of the journal: reports what the journal left incomplete.
  void finish(FindingSink& sink) const;
};
/// Reads a segment and passes each valid record to `visit`, in order. Segments must be read in the order of their
/// numbers. `last` says that no segment follows, so that its creation may have been interrupted. Errors: NotFound,
/// IoError.
Result<SegmentReport> inspect_segment(Env& env, const std::string& path, std::optional<std::uint64_t> number, bool last,
                                      JournalCursor& cursor, FindingSink& sink,
                                      const std::function<void(const FoundRecord&)>& visit);

/// Inspects a slotfile in two steps: first its entries, which determine the newest versions, then its parts.
class SlotfileInspection {
 public:
  /// `counted` is the number of bytes of the file that the catalog counts; nothing: all bytes count.
  SlotfileInspection(std::string path, std::optional<std::uint32_t> number, std::optional<std::uint64_t> counted,
                     FindingSink& sink)
      : sink_(sink), counted_(counted), number_(number) {
    report_.path = std::move(path);
  }

  /// Reads headers, frames and entries. The report contains the state of an entry only if it does not depend on other
  /// entries: Bad or Void. Errors: NotFound, IoError.
  Status read_entries(Env& env);
  /// Calls `judge`, which sets state and bucket, for each entry that is neither Bad nor Void, and then verifies the
  /// parts of the entry. Errors: IoError.
  Status read_parts(Env& env, const std::function<void(EntryReport&, const MetaEntry&)>& judge, bool keep_entries);

  std::uint32_t number() const { return report_.number; }
  /// Calls `visit` for each valid entry that is not void.
  void for_each(const std::function<void(const MetaEntry&)>& visit) const;
  SlotfileReport take() { return std::move(report_); }

 private:
  struct Run {
    std::uint64_t offset;
    RunFrame frame;
    std::vector<std::optional<MetaEntry>> entries;
  };

  Status read_header(const RandomAccessFile& file);
  Result<std::optional<RunFrame>> frame_at(const RandomAccessFile& file, std::uint64_t offset, std::uint32_t magic);
  Status read_runs(const RandomAccessFile& file);
  Status read_run(const RandomAccessFile& file, std::uint64_t offset, const RunFrame& frame);
  Status read_entry_parts(const RandomAccessFile& file, const MetaEntry& entry, EntryReport& report);

  FindingSink& sink_;
  const std::optional<std::uint64_t> counted_;
  const std::optional<std::uint32_t> number_;
  SlotfileReport report_;
  std::vector<Run> runs_;
};

}  // namespace fjord::slotfile
