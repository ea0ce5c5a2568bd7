#include "job_record_writer.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/common/retry.h"

namespace fjord::mapreduce {
namespace {

constexpr Duration kAgainFirst = milliseconds(50);
constexpr Duration kAgainMax = seconds(2);

}  // namespace

struct JobRecordWriter::RowsCall {
  std::string job;
  JobRows rows;
  UniqueFunction<void(Status)> written = {};
  UniqueFunction<void(Result<JobRows>)> read = {};
  unsigned failures = 0;
};

void JobRecordWriter::save(std::function<void()> then) {
  if (then) later_.push_back(std::move(then));
  if (writing_) {
    again_ = true;
  } else {
    write();
  }
}

void JobRecordWriter::write() {
  writing_ = true;
  again_ = false;
  write_began_ = clock_.now();
  std::move(later_.begin(), later_.end(), std::back_inserter(now_));
  later_.clear();
  JobState record = callbacks_.current();
  record.revision = revision_ + 1;
  records_.write(record, revision_, mailbox_, [weak = weak_from_this(), record](const Status& status) {
    if (const auto self = weak.lock()) self->on_written(record, status);
  });
}

void JobRecordWriter::on_written(const JobState& record, const Status& status) {
  if (status) {
    written(record.revision);
    return;
  }
  // After any error the stored record is read: the write may have been applied.
  const bool was_refused = status.code() == StatusCode::TestAndSetFailed;
  records_.read(record.job_id, mailbox_, [weak = weak_from_this(), record, was_refused](Result<JobState> found) {
    if (const auto self = weak.lock()) self->on_read(record, was_refused, std::move(found));
  });
}

void JobRecordWriter::on_read(const JobState& wanted, bool was_refused, Result<JobState> found) {
  if (!found) {
    if (found.error().code() == StatusCode::NotFound) revision_ = 0;
    write_later();
    return;
  }
  const bool is_mine = found->owner_id == wanted.owner_id && found->epoch == wanted.epoch;
  if (!is_mine) {
    log::info("job", "{}: {} goes on with it", found->job_id, found->owner);
    const auto on_lost = std::exchange(callbacks_, {}).on_lost;
    on_lost(*found);
    return;
  }
  // A process that requests something also writes the next revision, but leaves all other fields unchanged.
  const bool is_written =
      !was_refused && found->revision == wanted.revision &&
      std::tie(found->phase, found->outcome, found->run, found->resume, found->paused, found->cancel_wanted,
               found->settings) == std::tie(wanted.phase, wanted.outcome, wanted.run, wanted.resume, wanted.paused,
                                            wanted.cancel_wanted, wanted.settings);
  revision_ = found->revision;
  if (is_written) {
    written(found->revision);
    return;
  }
  callbacks_.on_wanted(*found);
  write_later();
}

void JobRecordWriter::written(std::uint64_t revision) {
  const auto self = shared_from_this();  // a callback may release the writer
  revision_ = revision;
  writing_ = false;
  failures_ = 0;
  confirmed_ = write_began_;
  for (const auto& then : std::exchange(now_, {})) then();
  if (again_ && !writing_ && callbacks_.current) write();
}

void JobRecordWriter::write_later() {
  again_later(failures_++, [](JobRecordWriter& self) { self.write(); });
}

void JobRecordWriter::again_later(unsigned failures, std::function<void(JobRecordWriter&)> what) {
  const Duration wait = std::min(kAgainMax, kAgainFirst * (1 << std::min(failures, 10u)));
  executor_.post_after(wait, [weak = weak_from_this(), what = std::move(what)] {
    if (const auto self = weak.lock()) what(*self);
  });
}

// --- Results beside the record

void JobRecordWriter::save_rows(JobRows rows, UniqueFunction<void(Status)> done) {
  write_rows(std::make_shared<RowsCall>(RowsCall{callbacks_.current().job_id, std::move(rows), std::move(done)}));
}

void JobRecordWriter::write_rows(std::shared_ptr<RowsCall> call) {
  records_.write_rows(call->job, call->rows, mailbox_, [weak = weak_from_this(), call](const Status& status) {
    const auto self = weak.lock();
    if (self == nullptr || !self->callbacks_.current) return;  // another process owns the job
    if (!may_succeed_later(status.code())) return call->written(status);
    if (call->failures == 0)
      log::warning("job", "{}: the results wait for the store: {}", call->job, status.to_string());
    self->again_later(call->failures++, [call](JobRecordWriter& writer) { writer.write_rows(call); });
  });
}

void JobRecordWriter::load_rows(UniqueFunction<void(Result<JobRows>)> done) {
  read_rows(std::make_shared<RowsCall>(RowsCall{callbacks_.current().job_id, {}, {}, std::move(done)}));
}

void JobRecordWriter::read_rows(std::shared_ptr<RowsCall> call) {
  records_.read_rows(call->job, mailbox_, [weak = weak_from_this(), call](Result<JobRows> rows) {
    const auto self = weak.lock();
    if (self == nullptr || !self->callbacks_.current) return;
    if (rows || !may_succeed_later(rows.error().code())) return call->read(std::move(rows));
    self->again_later(call->failures++, [call](JobRecordWriter& writer) { writer.read_rows(call); });
  });
}

}  // namespace fjord::mapreduce
