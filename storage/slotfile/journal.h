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

/// What is acknowledged and not yet in slotfiles: segments of records in the order in which things happened.
///
/// Threading: confined to its engine. Lifetime: the context outlives it.
class Journal {
 public:
  struct Record {
    std::uint64_t lsn;  ///< Rises by one from record to record.
    RecordType type;
    std::string_view meta;
    std::string_view parts;
  };
  struct ReplayResult {
    bool begun = false;  ///< It is known which record is the first one, or one was found.
    std::uint64_t last_lsn = 0;
    std::uint64_t end = 0;  ///< Of the last record in the segment that was replayed last.
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
    /// Records that are missing before others that are there: more than the end of what was being written is lost.
    std::uint64_t lost_records = 0;
  };

  explicit Journal(EngineContext& context) : context_(context), segment_bytes_(context.options.journal_segment_bytes) {}

  /// Gives all valid records of the segments from `first` on, in order, to `visit`, which says whether it could use
  /// them. Errors: IoError, and those of `visit`; NotImplemented for a newer format.
  Result<ReplayResult> replay(std::uint64_t first, const std::function<Status(const Record&)>& visit);

  /// Writes what was replayed once more, in its place, so that the next sync is about it whatever came of those of the
  /// life before: one that failed may have left it in memory only, where the system takes it for written. Errors:
  /// IoError.
  Status rewrite_replayed();

  /// Begins a new segment; records are numbered from `next_lsn` on. Errors: NoSpace, IoError.
  Status start(std::uint64_t next_lsn);
  /// The same, behind what is there.
  Status rotate() { return start(next_lsn_); }

  /// Appends a record and, where asked, syncs. The meta part is checksummed here, the pieces of the second part check
  /// themselves. On NoSpace and IoError there is no such record; Timeout: a sync failed, and it may be there or not.
  Status append(RecordType type, std::string_view meta, std::span<const std::string_view> parts, bool sync);
  /// Makes everything appended so far durable. Errors: Timeout; see health().
  Status sync();
  /// What another thread has to sync so that everything appended so far is durable, and the note that it did.
  struct SyncTicket {
    std::vector<std::shared_ptr<RandomAccessFile>> files;
    std::uint64_t segment = 0;
    std::uint64_t position = 0;
  };
  SyncTicket begin_sync() const;
  void end_sync(const SyncTicket& ticket);
  /// Not OK once a sync failed or a broken record could not be taken back; nothing is appended any more then.
  const Status& health() const { return health_; }

  std::uint64_t last_lsn() const { return next_lsn_ - 1; }
  std::uint64_t segment() const { return segment_; }
  /// In all segments from the oldest one that is kept.
  std::uint64_t bytes() const;
  /// Gives up the segments before `segment`; one of them is kept to be used again.
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
  std::vector<std::uint64_t> replayed_ends_;  ///< Where the last record of each replayed segment ends.
  std::vector<std::pair<std::uint64_t, std::shared_ptr<RandomAccessFile>>> unsynced_;  ///< Older segments, by number.
  std::uint64_t segment_ = 0;
  std::uint64_t segment_bytes_;  ///< When it is that long, the next one begins.
  std::uint64_t position_ = 0;
  std::uint64_t synced_position_ = 0;
  std::uint64_t next_lsn_ = 1;
  bool name_durable_ = false;
  std::string frame_;
  std::vector<std::string_view> pieces_;
};

}  // namespace fjord::slotfile
