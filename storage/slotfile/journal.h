#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine_context.h"
#include "journal_format.h"

namespace fjord::slotfile {

/// The acknowledged writes and edits that are not yet in slotfiles and catalog: records in segments, in the order in
/// which the writes and edits were made.
///
/// Threading: confined to its engine. Lifetime: the context outlives it.
class Journal {
 public:
  struct Record {
    std::uint64_t lsn;  ///< Number of the record; each record has the number of its predecessor plus one.
    RecordType type;
    std::string_view meta;
    std::string_view parts;
  };
  struct ReplayResult {
    bool begun = false;  ///< True if the first record's number is known, or a record was found.
    std::uint64_t last_lsn = 0;
    std::uint64_t end = 0;  ///< End of the last record in the segment replayed last.
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
    /// Number of missing records that are followed by intact ones: these were lost, not just left unfinished at the
    /// end.
    std::uint64_t lost_records = 0;
  };

  explicit Journal(EngineContext& context) : context_(context), segment_bytes_(context.options.journal_segment_bytes) {}

  /// Passes all valid records of the segments from `first` on to `visit`, in order. `visit` returns Corruption for a
  /// record that it cannot use. Errors: IoError; other errors of `visit`; NotImplemented for a newer format.
  Result<ReplayResult> replay(std::uint64_t first, const std::function<Status(const Record&)>& visit);

  /// Writes the replayed bytes again at the same place, so that the next sync certainly covers them. After a failed
  /// sync of the previous process, the system may keep them in memory only and treat them as written. Errors: IoError.
  Status rewrite_replayed();

  /// Begins a new segment whose records are numbered from `next_lsn` on. Errors: NoSpace, IoError.
  Status start(std::uint64_t next_lsn);
  /// Begins a new segment after the current one. Errors: NoSpace, IoError.
  Status rotate() { return start(next_lsn_); }

  /// Appends a record, and syncs it if `sync` is true. `meta` gets a checksum here; the pieces of `parts` contain their
  /// own. Errors: NoSpace, IoError (the record is not in the journal); Timeout (a sync failed: the record may be there
  /// or not).
  Status append(RecordType type, std::string_view meta, std::span<const std::string_view> parts, bool sync);
  /// Makes all appended records durable. Errors: Timeout; see health().
  Status sync();
  /// The files that another thread has to sync to make all appended records durable. A call of end_sync() then records
  /// that they are synced.
  struct SyncTicket {
    std::vector<std::shared_ptr<RandomAccessFile>> files;
    std::uint64_t segment = 0;
    std::uint64_t position = 0;
  };
  SyncTicket begin_sync() const;
  void end_sync(const SyncTicket& ticket);
  /// Returns an error after a failed sync, or if a broken record could not be overwritten. Nothing is appended from
  /// then on.
  const Status& health() const { return health_; }

  std::uint64_t last_lsn() const { return next_lsn_ - 1; }
  std::uint64_t segment() const { return segment_; }
  /// Returns the bytes in all segments that are kept.
  std::uint64_t bytes() const;
  /// Releases the segments before `segment`; one of them is kept for reuse.
  void retire(std::uint64_t segment);

 private:
  struct Segment {
    std::uint64_t number;
    std::uint64_t bytes;
  };

  Status replay_segment(std::uint64_t number, const std::function<Status(const Record&)>& visit, ReplayResult& result);
  Status make_segment(std::uint64_t number, std::uint64_t first_lsn);
  Status take_back(Status why);
  void grow_segments_for(std::uint64_t record_bytes);

  EngineContext& context_;
  Status health_;
  std::vector<Segment> segments_;  ///< Oldest first; the last is the current one.
  std::vector<std::string> spare_;
  std::shared_ptr<RandomAccessFile> file_;
  std::vector<std::uint64_t> replayed_ends_;  ///< End of the last record of each replayed segment.
  /// Older segments that are not synced, by number.
  std::vector<std::pair<std::uint64_t, std::shared_ptr<RandomAccessFile>>> unsynced_;
  std::uint64_t segment_ = 0;
  std::uint64_t segment_bytes_;  ///< The next segment begins when one has this size.
  std::uint64_t position_ = 0;
  std::uint64_t synced_position_ = 0;
  std::uint64_t next_lsn_ = 1;
  bool name_durable_ = false;
  std::string frame_;
  std::vector<std::string_view> pieces_;
};

}  // namespace fjord::slotfile
