#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/mapreduce/job_records.h"

namespace fjord::mapreduce {

/// Keeps the record of a job that this process owns up to date. It writes one revision after the other, each on the
/// condition that the stored revision is the one it knows. Another writer of the record either requests something (a
/// pause, a cancel, settings), which on_wanted reports, or has taken the job over, which ends the writer.
///
/// Threading: confined to `executor`. Lifetime: destroying it ends it without a callback; `records`, `clock` and
/// `executor` outlive it.
class JobRecordWriter : public std::enable_shared_from_this<JobRecordWriter> {
 public:
  struct Callbacks {
    /// Returns the content of the next record; owner, owner_id and epoch are those of this process.
    std::function<JobState()> current;
    /// Another process has requested what `record` contains: paused, cancel_wanted, settings.
    std::function<void(const JobState& record)> on_wanted;
    /// Another process owns the job, as `record` says. No callback is called after this one.
    std::function<void(const JobState& record)> on_lost;
  };

  /// `revision` is that of the stored record; 0: there is none.
  JobRecordWriter(JobRecords& records, visitors::Mailbox mailbox, Clock& clock, Executor& executor, Callbacks callbacks,
                  std::uint64_t revision)
      : records_(records),
        mailbox_(std::move(mailbox)),
        clock_(clock),
        executor_(executor),
        callbacks_(std::move(callbacks)),
        revision_(revision),
        confirmed_(clock.now()) {}

  /// True if the job has a record or its first write is in flight.
  bool has_record() const { return revision_ != 0 || writing_; }
  /// Returns for how long the ownership of this process is unconfirmed, counted from the start of the last write that
  /// succeeded.
  Duration unconfirmed() const { return clock_.now() - confirmed_; }
  /// Writes the current content and then calls `then` (may be empty). A failed write is retried without end.
  void save(std::function<void()> then);
  /// Stores the job's results in a document beside its record. Retries without end after a transient error or a
  /// timeout. Errors: any other error of a put.
  void save_rows(JobRows rows, UniqueFunction<void(Status)> done);
  /// Reads the results that save_rows() has stored, with the same retries. Errors: NotFound if there are none; any
  /// other error of a get.
  void load_rows(UniqueFunction<void(Result<JobRows>)> done);

 private:
  /// A read or write of rows that is retried until it succeeds or fails for good.
  struct RowsCall;
  void write();
  void on_written(const JobState& record, const Status& status);
  void on_read(const JobState& wanted, bool was_refused, Result<JobState> found);
  void written(std::uint64_t revision);
  void write_later();
  void write_rows(std::shared_ptr<RowsCall> call);
  void read_rows(std::shared_ptr<RowsCall> call);
  void again_later(unsigned failures, std::function<void(JobRecordWriter&)> what);

  JobRecords& records_;
  visitors::Mailbox mailbox_;
  Clock& clock_;
  Executor& executor_;
  Callbacks callbacks_;
  std::uint64_t revision_;
  bool writing_ = false;
  bool again_ = false;
  unsigned failures_ = 0;
  MonotonicTime confirmed_;
  MonotonicTime write_began_;
  std::vector<std::function<void()>> now_;    ///< Callbacks for the write in flight.
  std::vector<std::function<void()>> later_;  ///< Callbacks for the next write.
};

}  // namespace fjord::mapreduce
