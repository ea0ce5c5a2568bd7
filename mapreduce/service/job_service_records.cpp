// The part of the service that answers from records, and takes over jobs of other processes.

#include <algorithm>
#include <charconv>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/mapreduce/passes.h"
#include "job_service_impl.h"

namespace fjord::mapreduce {
namespace {

/// Returns the index in a name such as "distributor.3".
std::optional<std::uint16_t> index_of(const std::string& name) {
  const std::size_t dot = name.find('.');
  std::uint16_t index = 0;
  const char* end = name.data() + name.size();
  if (dot == std::string::npos) return std::nullopt;
  const auto [at, error] = std::from_chars(name.data() + dot + 1, end, index);
  if (error != std::errc() || at != end) return std::nullopt;
  return index;
}

Status not_held(const std::string& job) {
  return {StatusCode::NotFound, "the results of " + job + " are not held any more"};
}

Status rows_error(const std::string& job, const Status& error) {
  return error.code() == StatusCode::NotFound ? not_held(job) : error.with_context("the results of " + job);
}

}  // namespace

// --- Answers

JobAnswerOptions JobService::Impl::answer_options(const rpc::ListJobs& request, const JobOutlook* outlook) const {
  return {.outlook = outlook,
          .results_kept = milliseconds(results_retention_.value()),
          .dead_letters = request.dead_letters && !request.job_id.empty()};
}

rpc::ListJobsReply JobService::Impl::answer_to(const rpc::ListJobs& request) const {
  rpc::ListJobsReply reply;
  for (const auto& [id, job] : jobs_) {
    if (!request.job_id.empty() && request.job_id != id) continue;
    reply.jobs.push_back(status_of(job, request));
  }
  if (request.job_id.empty() || reply.jobs.empty() || request.results_bytes_max == 0) return reply;
  const Job& job = jobs_.at(request.job_id);
  if (job.state.phase != rpc::JobPhase::Done || job.state.shuffle != rpc::Shuffle::Direct) return reply;
  if (!job.has_rows) {
    reply.status = not_held(request.job_id);
    return reply;
  }
  add_rows(request, job.rows, reply);
  return reply;
}

bool JobService::Impl::has_kept_rows(const Job& job) {
  return job.state.phase == rpc::JobPhase::Done && job.state.shuffle == rpc::Shuffle::Direct && !job.has_rows &&
         job.writer->has_record();
}

void JobService::Impl::read_kept_rows(const rpc::ListJobs& request, rpc::Responder respond) {
  rpc::ListJobs without = request;
  without.results_bytes_max = 0;
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  records_.read_rows(request.job_id, mailbox_,
                     [request, answer, reply = answer_to(without)](const Result<JobRows>& rows) mutable {
                       if (rows) {
                         add_rows(request, *rows, reply);
                       } else {
                         reply.status = rows_error(request.job_id, rows.error());
                       }
                       (*answer)(std::move(reply));
                     });
}

void JobService::Impl::add_rows(const rpc::ListJobs& request, const JobRows& rows, rpc::ListJobsReply& reply) {
  std::size_t bytes = 0;
  std::uint64_t at = request.results_from;
  for (; at < rows.size(); ++at) {
    const auto& [key, value] = rows[static_cast<std::size_t>(at)];
    bytes += key.size() + value.size() + sizeof(rpc::Parameter);  // rows are short, so the overhead matters
    if (bytes > request.results_bytes_max && !reply.results.empty()) break;
    reply.results.push_back({key, value});
  }
  reply.more_results = at < rows.size();
}

void JobService::Impl::list_records(const rpc::ListJobs& request, rpc::Responder respond) {
  records_.list(mailbox_, [this, request, answer = std::make_shared<rpc::Responder>(std::move(respond))](
                              const Result<std::vector<JobState>>& found) {
    rpc::ListJobsReply reply = answer_to(request);
    if (!found) reply.status = found.error();
    for (const JobState& record : found ? *found : std::vector<JobState>()) {
      if (!jobs_.contains(record.job_id)) reply.jobs.push_back(to_status(record, answer_options(request, nullptr)));
    }
    (*answer)(std::move(reply));
  });
}

void JobService::Impl::read_record(const rpc::ListJobs& request, rpc::Responder respond) {
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  records_.read(request.job_id, mailbox_, [this, request, answer](const Result<JobState>& found) {
    rpc::ListJobsReply reply;
    if (!found) {
      if (found.error().code() != StatusCode::NotFound) reply.status = found.error();
      return (*answer)(std::move(reply));
    }
    const bool has_rows = found->phase == rpc::JobPhase::Done && found->shuffle == rpc::Shuffle::Direct;
    reply.jobs.push_back(to_status(*found, answer_options(request, nullptr)));
    if (!has_rows || request.results_bytes_max == 0) return (*answer)(std::move(reply));
    records_.read_rows(request.job_id, mailbox_, [request, answer, reply](const Result<JobRows>& rows) mutable {
      if (rows) {
        add_rows(request, *rows, reply);
      } else {
        reply.status = rows_error(request.job_id, rows.error());
      }
      (*answer)(std::move(reply));
    });
  });
}

/// Returns the answer about a job. A job whose runner has ended is in clean-up until its results can be read.
rpc::JobStatus JobService::Impl::status_of(const Job& job, const rpc::ListJobs& request) const {
  JobState state = job.runner == nullptr ? job.state : job.runner->state();
  if (job.runner != nullptr && is_over(state.phase)) state.phase = rpc::JobPhase::CleanUp;
  state.owner = options_.name;
  state.owner_id = own_id_;
  state.epoch = job.state.epoch;
  const JobOutlook outlook = job.runner == nullptr ? JobOutlook{.bound_by = job.waits_for} : job.runner->outlook();
  return to_status(state, answer_options(request, &outlook));
}

/// Keeps the results of `job` in memory and drops those of the oldest jobs if all together exceed the limit.
void JobService::Impl::keep_rows(Job& job) {
  job.rows = job.runner->take_rows();
  job.has_rows = true;
  for (const auto& [key, value] : job.rows) job.row_bytes += key.size() + value.size() + sizeof(job.rows[0]);
  rows_bytes_ += job.row_bytes;
  for (const std::string& id : finished_) {
    if (rows_bytes_ <= options_.results_kept_bytes) break;
    forget_rows(jobs_.at(id));
  }
}

void JobService::Impl::forget_rows(Job& job) {
  rows_bytes_ -= std::exchange(job.row_bytes, 0);
  job.rows = {};
  job.has_rows = false;
}

// --- Jobs of other processes

void JobService::Impl::scan_later(Duration wait) {
  // A random delay keeps distributors from scanning at the same time.
  executor_->post_after(wait + Duration(random_.below(static_cast<std::uint64_t>(wait.count()) / 4 + 1)),
                        [this] { scan(); });
}

void JobService::Impl::scan() {
  if (options_.refresh_snapshot) options_.refresh_snapshot();
  const auto snapshot = snapshot_.get();
  if (snapshot == nullptr || snapshot->state_version() == 0) return scan_later(options_.scan_interval);
  records_.list_headers(mailbox_, [this](const Result<Headers>& records) {
    if (records) on_scanned(*records);
    scan_later(options_.scan_interval);
  });
}

void JobService::Impl::on_scanned(const Headers& records) {
  std::map<std::string, Seen> seen;
  for (const JobRecordHeader& record : records) {
    if (record.finished_unix_us != 0 || jobs_.contains(record.job_id)) continue;
    const auto before = seen_.find(record.job_id);
    const bool is_same =
        before != seen_.end() && before->second.epoch == record.epoch && before->second.revision == record.revision;
    seen[record.job_id] = is_same ? before->second : Seen{record.epoch, record.revision, clock_.now()};
  }
  seen_ = std::move(seen);
  for (const JobRecordHeader& record : records) {
    if (seen_.contains(record.job_id) && has_no_owner(record)) take_over(record.job_id, record.revision);
    const auto mine = jobs_.find(record.job_id);
    if (record.finished_unix_us != 0 || mine == jobs_.end() || mine->second.writer->has_record()) continue;
    if (is_over(mine->second.state.phase)) end_elsewhere(record, mine->second);
  }
  expire(records);
}

/// Ends the record of a job that has ended here without one. Its client found no owner and submitted the job again to
/// this process; but its former process is alive and wrote a record. The former process drops the job at its next
/// write. If this write fails, the next scan repeats it.
void JobService::Impl::end_elsewhere(const JobRecordHeader& record, const Job& job) {
  log::info("job", "{} has ended here; its record says so, and {} drops it", record.job_id, record.owner);
  JobState ended = record_of(job);
  ended.epoch = record.epoch + 1;
  ended.revision = record.revision + 1;
  auto write = [this, ended, expected = record.revision] {
    records_.write(ended, expected, mailbox_, [](const Status&) {});
  };
  if (!job.has_rows || job.row_bytes > options_.recorded_rows_bytes) return write();
  records_.write_rows(record.job_id, job.rows, mailbox_, [write](const Status& status) {
    if (status) write();
  });
}

/// True if the job's process seems to have ended: it is an earlier incarnation of this process, down, or silent for the
/// lease. If it is alive, it notices at its next write that it is no longer the owner.
bool JobService::Impl::has_no_owner(const JobRecordHeader& record) {
  if (record.owner == options_.name) {
    if (record.owner_id != own_id_) return true;
  } else {
    const auto index = index_of(record.owner);
    if (!index || !snapshot_.get()->state().is_up({NodeType::Distributor, *index})) return true;
  }
  return clock_.now() - seen_.at(record.job_id).since >= options_.lease;
}

void JobService::Impl::take_over(const std::string& id, std::uint64_t revision) {
  if (!taking_.insert(id).second) return;
  records_.read(id, mailbox_, [this, id, revision](Result<JobState> found) {
    // A process that has just started may not have the schemas yet.
    const bool is_free = found && found->revision == revision && found->finished_unix_us == 0 && !jobs_.contains(id) &&
                         snapshot_.get()->types()->find(passes_of(found->spec).front().document_type) != nullptr;
    if (!is_free) {
      taking_.erase(id);
      return;
    }
    JobState record = std::move(*found);
    record.owner = options_.name;
    record.owner_id = own_id_;
    ++record.epoch;
    ++record.taken_over;
    ++record.revision;
    // If the answer is lost, this process owns a job that it does not run until the lease expires.
    records_.write(record, revision, mailbox_, [this, id, record](const Status& status) {
      taking_.erase(id);
      if (status && !jobs_.contains(id)) taken(record);
    });
  });
}

void JobService::Impl::taken(JobState record) {
  log::info("job", "{} goes on here; it was run by another process before: phase {}, {} buckets mapped in run {}: {}",
            record.job_id, static_cast<int>(record.phase), record.counts.map_tasks_done, record.run, record.resume);
  metrics_.taken_over.add();
  const std::string id = record.job_id;
  if (record.settings.empty()) record.settings = record.spec.settings;
  add(std::move(record), true);
  queue_.push_back(id);
  start_queued();
}

}  // namespace fjord::mapreduce
