#include "jobs.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/library/detail/aggregate_run.h"
#include "fjord/library/detail/job_spec.h"
#include "job_words.h"

namespace fjord::gateway {
namespace {

constexpr Duration kAskTimeout = seconds(5);

using Plan = std::shared_ptr<const mapreduce::AggregatePlan>;

struct Submitted {
  std::string job;
  rpc::JobSpec spec;
};

/// Starts an aggregation; waits for the cluster.
Result<Submitted> submit(Client& client, const api::Aggregate& request) {
  FJORD_TRY_ASSIGN(const JobRequest job, request_of(request));
  FJORD_TRY(client.core().refresh());
  Submitted submitted;
  FJORD_TRY_ASSIGN(submitted.spec, job_spec_of(job, client.core().types()));
  FJORD_TRY_ASSIGN(submitted.job, client.core().connection().sync().submit_job(submitted.spec));
  return submitted;
}

/// Starts a job; waits for the cluster.
Result<std::string> submit(Client& client, const api::StartJob& request) {
  FJORD_TRY_ASSIGN(const JobRequest job, request_of(request));
  FJORD_TRY(client.core().refresh());
  FJORD_TRY_ASSIGN(rpc::JobSpec spec, job_spec_of(job, client.core().types()));
  return client.core().connection().sync().submit_job(std::move(spec), request.job);
}

Status change_job(Client& client, const api::ChangeJob& request) {
  fjord::Jobs jobs = client.jobs();
  switch (request.action) {
    case fjord::api::JobAction::PAUSE:
      return jobs.pause(request.job);
    case fjord::api::JobAction::RESUME:
      return jobs.resume(request.job);
    case fjord::api::JobAction::CANCEL:
      return jobs.cancel(request.job);
    case fjord::api::JobAction::SET:
      return jobs.set(request.job, request.settings);
    case fjord::api::JobAction::REMOVE:
      return jobs.remove(request.job);
    case fjord::api::JobAction::REMOVE_RESULTS:
      return jobs.remove_results(request.job);
    default:
      return {StatusCode::InvalidArgument,
              fmt::format("action is {}: expected PAUSE, RESUME, CANCEL, SET, REMOVE or REMOVE_RESULTS",
                          static_cast<int>(request.action))};
  }
}

Result<std::vector<JobInfo>> find_jobs(Client& client, const std::string& job) {
  if (job.empty()) return client.jobs().list();
  FJORD_TRY_ASSIGN(JobInfo info, client.jobs().status(job));
  return std::vector<JobInfo>{std::move(info)};
}

/// Asks the distributors for the job's status, also in its record.
Result<rpc::JobStatus> find_job(Client& client, const std::string& job) {
  FJORD_TRY(client.core().wait_ready());
  rpc::ListJobs request;
  request.job_id = job;
  request.records = true;
  FJORD_TRY_ASSIGN(rpc::ListJobsReply reply, ask_for_job(client.core().connection(), std::move(request), kAskTimeout));
  return std::move(reply.jobs.front());
}

/// Returns the plan of an aggregation, with the newest schemas.
Result<Plan> find_plan(Client& client, const rpc::JobStatus& job) {
  FJORD_TRY(client.core().refresh());
  return plan_of(job, client.core().types());
}

/// Returns how many rows, beginning with `from`, fit into `bytes`; at least one if there is one.
std::size_t page_of(const ResultStore::Rows& rows, std::size_t from, std::size_t bytes) {
  std::size_t count = 0;
  for (std::size_t size = 0; from + count < rows.size(); ++count) {
    size += rows[from + count].first.size() + rows[from + count].second.size();
    if (count > 0 && size > bytes) break;
  }
  return count;
}

/// Adds the page of rows that begins with row `from`. Errors: Corruption.
Status add_rows(const mapreduce::AggregatePlan& plan, const ResultStore::Rows& rows, std::size_t from,
                std::size_t bytes, api::AggregateReply& reply) {
  const std::size_t begin = std::min(from, rows.size());
  const std::size_t count = page_of(rows, begin, bytes);
  FJORD_TRY_ASSIGN(const auto page, cells_of(plan, std::span(rows).subspan(begin, count)));
  for (const auto& column : plan.columns()) reply.columns.push_back(column.name);
  for (const std::vector<Cell>& cells : page) {
    api::Row& row = reply.rows.emplace_back();
    for (const Cell& cell : cells) row.cells.push_back(words_of(cell));
  }
  reply.more_rows = begin + count < rows.size();
  return Status::ok();
}

}  // namespace

template <typename Reply>
void Jobs::limit(const Call<Reply>& call, std::int64_t timeout_ms) {
  context_.inbox->post_after(timeout_of(timeout_ms), [call] {
    call.end({StatusCode::Timeout, "there was no answer within timeout_ms; the call may have taken effect"});
  });
}

void Jobs::wait_for(const std::string& job, std::optional<rpc::JobSpec> spec, Duration timeout, JobWait::Done done) {
  const auto wait = std::make_shared<JobWait>(context_.client(), context_.inbox, context_.clock, job, std::move(spec));
  std::erase_if(waits_, [](const std::weak_ptr<JobWait>& one) { return one.expired(); });
  waits_.push_back(wait);
  wait->start(timeout, std::move(done));
}

void Jobs::end_waits(const Status& why) {
  for (const auto& weak : waits_) {
    if (const auto wait = weak.lock()) wait->end(why);
  }
}

std::size_t Jobs::page_bytes(std::int64_t asked) const {
  const std::int64_t most = context_.chunk_bytes_max.value();
  return static_cast<std::size_t>(asked <= 0 ? most : std::min(asked, most));
}

template <typename Reply>
void Jobs::end_without_results(const Status& status, const Call<Reply>& call) const {
  if (status.code() != StatusCode::TooLarge) return call.end(status);
  call.end(over_limit(status.code(), status.message(), results_.bytes_max()));
}

void Jobs::aggregate(api::Aggregate request, Call<api::AggregateReply> call) {
  if (request.rows_from < 0) {
    return call.end({StatusCode::InvalidArgument, "rows_from is negative: expected 0 or more"});
  }
  const MonotonicTime deadline = context_.clock.now() + timeout_of(request.timeout_ms);
  const auto asked = std::make_shared<const api::Aggregate>(std::move(request));
  const auto wait = [this, asked, call, deadline](const std::string& job, std::optional<rpc::JobSpec> spec) {
    const Duration left = std::max(deadline - context_.clock.now(), Duration(0));
    wait_for(job, std::move(spec), left, [this, asked, call](const Result<rpc::JobStatus>& status) {
      if (!status) return call.end(status.error());
      on_aggregated(*asked, *status, call);
    });
  };
  if (!asked->job.empty()) return wait(asked->job, std::nullopt);
  context_.workers.run([this, client = &context_.client(), asked, call, wait] {
    auto submitted = std::make_shared<Result<Submitted>>(submit(*client, *asked));
    context_.inbox->post([submitted, call, wait] {
      if (!*submitted) return call.end(submitted->error());
      wait((*submitted)->job, std::move((*submitted)->spec));
    });
  });
}

void Jobs::on_aggregated(const api::Aggregate& request, const rpc::JobStatus& job,
                         const Call<api::AggregateReply>& call) {
  const auto reply = std::make_shared<api::AggregateReply>();
  reply->job = job.job_id;
  reply->has_ended = has_ended(job);
  reply->documents_read = static_cast<std::int64_t>(job.documents_read);
  reply->documents_put = static_cast<std::int64_t>(job.documents_put);
  reply->fraction_done = fraction_done(job);
  if (job.phase == rpc::JobPhase::Failed) reply->__set_status(call.status_of(job.error));
  if (job.phase == rpc::JobPhase::Cancelled) {
    reply->__set_status(call.status_of({StatusCode::Cancelled, "the job was cancelled"}));
  }
  if (job.phase != rpc::JobPhase::Done) return call.answer(std::move(*reply));
  limit(call, request.timeout_ms);
  const auto from = static_cast<std::size_t>(request.rows_from);
  const std::size_t bytes = page_bytes(request.bytes_max);
  context_.workers.run([this, client = &context_.client(), job, reply, call, from, bytes] {
    auto plan = find_plan(*client, job);
    context_.inbox->post([this, job, reply, call, from, bytes, plan] {
      if (!plan) return call.end(plan.error());
      results_.get(
          job.job_id + "/rows", job, [plan](ResultStore::Rows& rows) { return (*plan)->arrange(rows); },
          [this, plan, reply, call, from, bytes](const Result<std::shared_ptr<const ResultStore::Rows>>& rows) {
            if (!rows) return end_without_results(rows.error(), call);
            if (const Status added = add_rows(**plan, **rows, from, bytes, *reply); !added) return call.end(added);
            call.answer(std::move(*reply));
          });
    });
  });
}

void Jobs::start(api::StartJob request, Call<api::StartJobReply> call) {
  limit(call, request.timeout_ms);
  context_.workers.run([client = &context_.client(), request = std::move(request), call] {
    auto job = submit(*client, request);
    if (!job) return call.end(job.error());
    api::StartJobReply reply;
    reply.job = std::move(*job);
    call.answer(std::move(reply));
  });
}

void Jobs::list(const api::GetJobs& request, Call<api::GetJobsReply> call) {
  limit(call, request.timeout_ms);
  context_.workers.run([client = &context_.client(), job = request.job, call] {
    const auto found = find_jobs(*client, job);
    if (!found) return call.end(found.error());
    api::GetJobsReply reply;
    for (const JobInfo& info : *found) reply.jobs.push_back(words_of(info));
    call.answer(std::move(reply));
  });
}

void Jobs::await(const api::AwaitJob& request, Call<api::AwaitJobReply> call) {
  wait_for(request.job, std::nullopt, timeout_of(request.timeout_ms), [call](const Result<rpc::JobStatus>& status) {
    if (!status) return call.end(status.error());
    api::AwaitJobReply reply;
    reply.__set_job(words_of(job_info_of(*status)));
    call.answer(std::move(reply));
  });
}

void Jobs::change(const api::ChangeJob& request, Call<api::ChangeJobReply> call) {
  limit(call, request.timeout_ms);
  context_.workers.run([client = &context_.client(), request, call] { call.end(change_job(*client, request)); });
}

void Jobs::results(const api::GetJobResults& request, Call<api::GetJobResultsReply> call) {
  if (request.results_from < 0) {
    return call.end({StatusCode::InvalidArgument, "results_from is negative: expected 0 or more"});
  }
  limit(call, request.timeout_ms);
  const auto give = [this, call, from = static_cast<std::size_t>(request.results_from),
                     bytes =
                         page_bytes(request.bytes_max)](const Result<std::shared_ptr<const ResultStore::Rows>>& rows) {
    if (!rows) return end_without_results(rows.error(), call);
    const std::size_t begin = std::min(from, (*rows)->size());
    const std::size_t count = page_of(**rows, begin, bytes);
    api::GetJobResultsReply reply;
    for (const auto& [key, value] : std::span(**rows).subspan(begin, count)) {
      api::JobResult& result = reply.results.emplace_back();
      result.key = key;
      result.value = value;
    }
    reply.more_results = begin + count < (*rows)->size();
    call.answer(std::move(reply));
  };
  context_.workers.run([this, client = &context_.client(), job = request.job, call, give] {
    auto found = std::make_shared<Result<rpc::JobStatus>>(find_job(*client, job));
    context_.inbox->post([this, found, call, give] {
      if (!*found) return call.end(found->error());
      results_.get((*found)->job_id, **found, {}, give);
    });
  });
}

}  // namespace fjord::gateway
