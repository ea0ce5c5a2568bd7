#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/mapreduce/job_records.h"

namespace fjord::mapreduce {

/// For what may be put as often as one likes: trying again is right.
inline bool may_go_away(const Status& status) {
  return is_transient(status.code()) || status.code() == StatusCode::Timeout;
}

/// Keeps the record of one job that this process owns up to date: one write after the other, each on the condition that
/// nobody has written in between. Who else writes either asks for something (a pause, a cancel, settings), which is
/// taken over, or has taken the job over, which ends the keeper.
///
/// Threading: confined to `executor`. Lifetime: destroying it ends it without a word; `records`, `clock` and `executor`
/// outlive it.
class JobKeeper : public std::enable_shared_from_this<JobKeeper> {
 public:
  struct Callbacks {
    /// What the record should say; owner, owner_id and epoch are those of this process.
    std::function<rpc::JobStatus()> current;
    /// Somebody has asked for what is in `record`: paused, cancel_wanted, settings.
    std::function<void(const rpc::JobStatus& record)> on_wanted;
    /// Another process owns the job, as `record` says. Nothing is called after that.
    std::function<void(const rpc::JobStatus& record)> on_lost;
  };

  /// `revision` of the record as it is; 0: there is none. `ignores_owners`: wrong on purpose; goes on whoever owns it.
  JobKeeper(JobRecords& records, visitors::Mailbox mailbox, Clock& clock, Executor& executor, Callbacks callbacks,
            std::uint64_t revision, bool ignores_owners = false)
      : records_(records),
        mailbox_(std::move(mailbox)),
        clock_(clock),
        executor_(executor),
        callbacks_(std::move(callbacks)),
        revision_(revision),
        ignores_owners_(ignores_owners),
        confirmed_(clock.now()) {}

  /// Or will have one: the first write is under way.
  bool has_record() const { return revision_ != 0 || writing_; }
  /// For how long nothing has shown that this process owns the job: since the last write that succeeded began.
  Duration unconfirmed() const { return clock_.now() - confirmed_; }
  /// Writes the record as it is now; `then` (may be empty) is called when that has been written. What cannot be written
  /// is tried again, for ever.
  void save(std::function<void()> then);
  /// Writes results beside the record. An error that may go away is tried again, for ever. Errors: others of a put.
  void save_rows(JobRows rows, UniqueFunction<void(Status)> done);
  /// Reads them. The same; errors: NotFound, others of a get.
  void load_rows(UniqueFunction<void(Result<JobRows>)> done);

 private:
  /// An attempt to read or write rows that is repeated, on its own, until its result stays.
  struct RowsCall;
  void write();
  void on_written(const rpc::JobStatus& record, const Status& status);
  void on_read(const rpc::JobStatus& wanted, bool was_refused, Result<rpc::JobStatus> found);
  void written(std::uint64_t revision);
  void write_later();
  void write_rows(std::shared_ptr<RowsCall> call);
  void read_rows(std::shared_ptr<RowsCall> call);
  void again_later(unsigned failures, std::function<void(JobKeeper&)> what);

  JobRecords& records_;
  visitors::Mailbox mailbox_;
  Clock& clock_;
  Executor& executor_;
  Callbacks callbacks_;
  std::uint64_t revision_;
  bool ignores_owners_;
  bool writing_ = false;
  bool again_ = false;
  unsigned failures_ = 0;
  MonotonicTime confirmed_;
  MonotonicTime write_began_;
  std::vector<std::function<void()>> now_;    ///< Wait for the write that is under way.
  std::vector<std::function<void()>> later_;  ///< For the next one.
};

}  // namespace fjord::mapreduce
