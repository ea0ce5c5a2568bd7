#include "job_answers.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace fjord::mapreduce {
namespace {

Status not_held(const std::string& job) {
  return {StatusCode::NotFound, "the results of " + job + " are not held any more"};
}

Status rows_error(const std::string& job, const Status& error) {
  return error.code() == StatusCode::NotFound ? not_held(job) : error.with_context("the results of " + job);
}

bool has_direct_results(const JobState& job) {
  return job.phase == rpc::JobPhase::Done && job.shuffle == rpc::Shuffle::Direct;
}

/// True if results of the job, which ended here, can only be stored beside its record.
bool has_kept_rows(const LocalJob& job) {
  return has_direct_results(job.state) && !job.has_rows && job.writer->has_record();
}

void add_rows(const rpc::ListJobs& request, const JobRows& rows, rpc::ListJobsReply& reply) {
  std::size_t at = static_cast<std::size_t>(std::min<std::uint64_t>(request.results_from, rows.size()));
  if (request.packed) {
    reply.packed_results = rows.packed(at, request.results_bytes_max, at);
  } else {
    std::size_t bytes = 0;
    for (; at < rows.size(); ++at) {
      const auto [key, value] = rows[at];
      bytes += key.size() + value.size() + sizeof(rpc::Parameter);  // rows are short, so the overhead matters
      if (bytes > request.results_bytes_max && !reply.results.empty()) break;
      reply.results.push_back({std::string(key), std::string(value)});
    }
  }
  reply.more_results = at < rows.size();
}

/// Completes `reply` with rows that were read beside a record.
void add_rows(const rpc::ListJobs& request, const Result<JobRows>& rows, rpc::ListJobsReply& reply) {
  if (rows) {
    add_rows(request, *rows, reply);
  } else {
    reply.status = rows_error(request.job_id, rows.error());
  }
}

}  // namespace

void JobAnswers::list(const rpc::ListJobs& request, rpc::Responder respond) {
  LocalJob* const job = request.job_id.empty() ? nullptr : table_.find(request.job_id);
  if (job == nullptr && request.records) {
    request.job_id.empty() ? list_records(request, std::move(respond)) : read_record(request, std::move(respond));
  } else if (request.results_bytes_max != 0 && job != nullptr && has_kept_rows(*job)) {
    read_kept_rows(request, std::move(respond));
  } else if (request.wait_us <= 0 || job == nullptr || is_over(job->state.phase)) {
    respond(answer_to(request));
  } else {
    wait(request, *job, std::move(respond));
  }
}

void JobAnswers::wait(const rpc::ListJobs& request, LocalJob& job, rpc::Responder respond) {
  const std::uint64_t waiter = next_waiter_++;
  job.waiters.emplace(waiter, LocalJob::Waiter{request, std::move(respond)});
  context_.executor.post_after(std::min(Duration(request.wait_us), context_.options.wait_max),
                               [this, id = request.job_id, number = job.number, waiter] {
                                 LocalJob* known = table_.find(id, number);
                                 if (known == nullptr) return;
                                 if (auto found = known->waiters.extract(waiter)) {
                                   found.mapped().respond(answer_to(found.mapped().request));
                                 }
                               });
}

void JobAnswers::answer_waiters(LocalJob& job) {
  for (auto& [number, waiter] : std::exchange(job.waiters, {})) waiter.respond(answer_to(waiter.request));
}

JobAnswerOptions JobAnswers::answer_options(const rpc::ListJobs& request, const JobOutlook* outlook) const {
  return {.outlook = outlook,
          .results_kept = milliseconds(context_.results_retention.value()),
          .dead_letters = request.dead_letters && !request.job_id.empty()};
}

rpc::ListJobsReply JobAnswers::answer_to(const rpc::ListJobs& request) const {
  rpc::ListJobsReply reply;
  for (const auto& [id, job] : table_.jobs()) {
    if (!request.job_id.empty() && request.job_id != id) continue;
    reply.jobs.push_back(status_of(job, request));
  }
  if (request.job_id.empty() || reply.jobs.empty() || request.results_bytes_max == 0) return reply;
  const LocalJob& job = table_.at(request.job_id);
  if (!has_direct_results(job.state)) return reply;
  if (!job.has_rows) {
    reply.status = not_held(request.job_id);
    return reply;
  }
  add_rows(request, job.rows, reply);
  return reply;
}

void JobAnswers::read_kept_rows(const rpc::ListJobs& request, rpc::Responder respond) {
  rpc::ListJobs without = request;
  without.results_bytes_max = 0;
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  context_.records.read_rows(request.job_id, context_.mailbox,
                             [request, answer, reply = answer_to(without)](const Result<JobRows>& rows) mutable {
                               add_rows(request, rows, reply);
                               (*answer)(std::move(reply));
                             });
}

void JobAnswers::list_records(const rpc::ListJobs& request, rpc::Responder respond) {
  context_.records.list(context_.mailbox,
                        [this, request, answer = std::make_shared<rpc::Responder>(std::move(respond))](
                            const Result<std::vector<JobState>>& found) {
                          rpc::ListJobsReply reply = answer_to(request);
                          if (!found) reply.status = found.error();
                          for (const JobState& record : found ? *found : std::vector<JobState>()) {
                            if (table_.contains(record.job_id)) continue;
                            reply.jobs.push_back(to_status(record, answer_options(request, nullptr)));
                          }
                          (*answer)(std::move(reply));
                        });
}

void JobAnswers::read_record(const rpc::ListJobs& request, rpc::Responder respond) {
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  context_.records.read(request.job_id, context_.mailbox, [this, request, answer](const Result<JobState>& found) {
    rpc::ListJobsReply reply;
    if (!found) {
      if (found.error().code() != StatusCode::NotFound) reply.status = found.error();
      return (*answer)(std::move(reply));
    }
    reply.jobs.push_back(to_status(*found, answer_options(request, nullptr)));
    if (!has_direct_results(*found) || request.results_bytes_max == 0) return (*answer)(std::move(reply));
    context_.records.read_rows(request.job_id, context_.mailbox,
                               [request, answer, reply](const Result<JobRows>& rows) mutable {
                                 add_rows(request, rows, reply);
                                 (*answer)(std::move(reply));
                               });
  });
}

rpc::JobStatus JobAnswers::status_of(const LocalJob& job, const rpc::ListJobs& request) const {
  JobState state = job.runner == nullptr ? job.state : job.runner->report().state();
  if (job.runner != nullptr && is_over(state.phase)) state.phase = rpc::JobPhase::CleanUp;
  state.owner = context_.options.name;
  state.owner_id = context_.own_id;
  state.epoch = job.state.epoch;
  const JobOutlook outlook =
      job.runner == nullptr ? JobOutlook{.bound_by = job.waits_for} : job.runner->report().outlook();
  return to_status(state, answer_options(request, &outlook));
}

}  // namespace fjord::mapreduce
