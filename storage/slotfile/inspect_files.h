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

/// Reading of single files for the inspection; the whole folder is slotfile_inspect.cpp.
namespace fjord::slotfile {

/// Where findings go.
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

/// A record that verifies, with the views into what was read.
struct FoundRecord {
  std::uint64_t offset = 0;
  RecordHeader header;
  std::optional<Edit> edit;
  std::vector<JournalWrite> writes;
};
/// Where the reading of the journal has come to, from segment to segment.
struct JournalCursor {
  struct Broken {
    std::string path;
    std::uint64_t offset = 0;
  };
  std::optional<std::uint64_t> last_lsn;  ///< Of the record before; nothing if nobody knows.
  std::optional<Broken> broken;           ///< A record that does not verify, with none behind it so far.

  /// Moves on to `lsn`, of a record or the first one of a segment that begins there. False if it is not behind the
  /// last.
  bool arrive(std::uint64_t lsn, const std::string& path, std::uint64_t offset, FindingSink& sink);
  void settle(bool number_was_used_again, FindingSink& sink);
  /// At the end of the last segment.
  void finish(FindingSink& sink) const;
};
/// Gives each valid record to `visit`, in order. Segments come in the order of their numbers. `last`: there is none
/// after it, and its making may have been interrupted. Errors: NotFound, IoError.
Result<SegmentReport> inspect_segment(Env& env, const std::string& path, std::optional<std::uint64_t> number, bool last,
                                      JournalCursor& cursor, FindingSink& sink,
                                      const std::function<void(const FoundRecord&)>& visit);

/// A slotfile in two steps: first its entries, which say what the newest versions are, and then its parts.
class SlotfileInspection {
 public:
  /// `counted`: how much of it the catalog knows of; nothing: all of it.
  SlotfileInspection(std::string path, std::optional<std::uint32_t> number, std::optional<std::uint64_t> counted,
                     FindingSink& sink)
      : sink_(sink), counted_(counted), number_(number) {
    report_.path = std::move(path);
  }

  /// Reads headers, frames and entries. An entry in the report has its state only where that does not depend on others:
  /// Bad and Void. Errors: NotFound, IoError.
  Status read_entries(Env& env);
  /// Calls `judge` for each of the other entries, which sets state and bucket. Then verifies its parts.
  /// Errors: IoError.
  Status read_parts(Env& env, const std::function<void(EntryReport&, const MetaEntry&)>& judge, bool keep_entries);

  std::uint32_t number() const { return report_.number; }
  /// Each valid entry that is not void.
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
