#include "fjord/library/detail/job_calls.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <thread>

#include "fjord/common/random.h"
#include "fjord/mapreduce/passes.h"

namespace fjord {

bool has_ended(const rpc::JobStatus& job) {
  return job.phase == rpc::JobPhase::Done || job.phase == rpc::JobPhase::Failed ||
         job.phase == rpc::JobPhase::Cancelled;
}

std::string_view phase_text(rpc::JobPhase phase) {
  switch (phase) {
    case rpc::JobPhase::Queued:
      return "queued";
    case rpc::JobPhase::Map:
      return "map";
    case rpc::JobPhase::Reduce:
      return "reduce";
    case rpc::JobPhase::Put:
      return "put";
    case rpc::JobPhase::CleanUp:
      return "cleanup";
    case rpc::JobPhase::Done:
      return "done";
    case rpc::JobPhase::Failed:
      return "failed";
    case rpc::JobPhase::Cancelled:
      return "cancelled";
    case rpc::JobPhase::Unknown:
      break;
  }
  return "unknown";
}

double fraction_done(const rpc::JobStatus& job) {
  if (job.phase == rpc::JobPhase::Done) return 1;
  const auto part = [](std::uint64_t done, std::uint64_t total) {
    return total == 0 ? 0.0 : static_cast<double>(done) / static_cast<double>(total);
  };
  const double of_pass =
      0.75 * part(job.map_tasks_done, job.map_tasks) + 0.25 * part(job.reduce_tasks_done, job.reduce_tasks);
  return (static_cast<double>(job.passes_done.size()) + of_pass) /
         static_cast<double>(mapreduce::passes_of(job.spec).size());
}

namespace {

using JobAnswers = std::vector<std::pair<rpc::Address, Result<rpc::ListJobsReply>>>;

/// Returns the newest answer about the job.
Result<rpc::ListJobsReply> newest_of(const std::string& id, JobAnswers answers) {
  Status error(StatusCode::NotFound, fmt::format("no distributor that is up knows a job \"{}\"", id));
  rpc::ListJobsReply* best = nullptr;
  for (auto& [address, reply] : answers) {
    if (!reply || (!reply->status && reply->jobs.empty())) {
      error = reply.has_value() ? reply->status : reply.error();
    } else if (!reply->jobs.empty()) {
      const bool is_better = best == nullptr || rpc::is_newer(reply->jobs.front(), best->jobs.front());
      // Only the process that ran a direct job is sure to have its results; the job record may lack them.
      const bool has_results = best != nullptr && best->status && mapreduce::has_results(*best);
      if (is_better && !(has_results && !reply->status)) best = &*reply;
    }
  }
  if (best == nullptr) return error;
  return std::move(*best);
}

}  // namespace

void ask_for_job(Connection& connection, rpc::ListJobs request, Duration timeout,
                 UniqueFunction<void(Result<rpc::ListJobsReply>)> done) {
  const Duration wait(request.wait_us);
  std::string id = request.job_id;
  connection.client().call_all(std::move(request), wait + timeout,
                               [id = std::move(id), done = std::move(done)](Result<JobAnswers> answers) mutable {
                                 if (!answers) return done(answers.error());
                                 done(newest_of(id, std::move(*answers)));
                               });
}

Result<rpc::ListJobsReply> ask_for_job(Connection& connection, rpc::ListJobs request, Duration timeout) {
  const auto answer = std::make_shared<Answer<Result<rpc::ListJobsReply>>>();
  ask_for_job(connection, std::move(request), timeout,
              [answer](Result<rpc::ListJobsReply> reply) { answer->set(std::move(reply)); });
  return answer->wait();
}

Result<rpc::ListJobsReply> wait_for_job(Connection& connection, const std::string& job, JobWatch& watch) {
  using SteadyClock = std::chrono::steady_clock;
  constexpr Duration kAskMax = milliseconds(500);
  constexpr std::chrono::milliseconds kPauseAfterError{100};
  const auto start = SteadyClock::now();
  auto last_answer = start;
  while (!watch.stop.stop_requested()) {
    const auto passed = std::chrono::duration_cast<Duration>(SteadyClock::now() - start);
    const Duration left = watch.time_limit > Duration(0) ? watch.time_limit - passed : kAskMax;
    if (left <= Duration(0)) {
      watch.was_ended = true;
      return Status(StatusCode::Timeout, fmt::format("{} has lasted for its time limit of {} s", job,
                                                     static_cast<double>(watch.time_limit.count()) / 1e6));
    }
    rpc::ListJobs request;
    request.job_id = job;
    request.wait_us = std::min(kAskMax, left).count();
    request.results_bytes_max = watch.results_bytes_max;
    request.packed = true;
    auto reply = ask_for_job(connection, request, watch.timeout);
    if (!reply) {
      request.records = true;
      reply = ask_for_job(connection, std::move(request), watch.timeout);
    }
    if (reply) {
      last_answer = SteadyClock::now();
      const rpc::JobStatus& now = reply->jobs.front();
      if (watch.on_progress) watch.on_progress(now);
      if (has_ended(now)) return reply;
      // No process runs the job until a distributor has taken it over.
      if (!now.live) std::this_thread::sleep_for(kPauseAfterError);
      continue;
    }
    if (reply.error().code() == StatusCode::NotFound && watch.spec != nullptr) {
      if (const auto again = connection.sync().submit_job(*watch.spec, job); again) continue;
    }
    if (SteadyClock::now() - last_answer > watch.timeout) return reply.error();
    std::this_thread::sleep_for(kPauseAfterError);
  }
  watch.was_ended = true;
  return Status(StatusCode::Cancelled, "the caller does not wait for the job any more");
}

JobResultReader::JobResultReader(Connection& connection, rpc::JobStatus job, std::uint64_t window_bytes,
                                 std::uint64_t bytes_max)
    : connection_(connection),
      results_(std::make_unique<mapreduce::JobResults>(std::move(job), connection.transport(), snapshot_,
                                                       connection.runtime().clock, Random::from_system(),
                                                       connection.executor(), bytes_max, window_bytes)) {}

JobResultReader::~JobResultReader() {
  Answer<bool> ended;
  connection_.executor().post([&] {
    results_.reset();
    ended.set(true);
  });
  ended.wait();
}

Result<std::vector<mapreduce::KeyedResult>> JobResultReader::next() {
  if (const auto snapshot = connection_.client().snapshot(); snapshot != nullptr) {
    if (const auto updated = snapshot_.update(snapshot->info()); !updated) return updated.error();
  }
  Answer<Result<std::vector<mapreduce::KeyedResult>>> answer;
  Executor& executor = connection_.executor();
  executor.post([&] {
    results_->start([&](Result<std::vector<mapreduce::KeyedResult>> got) {
      executor.post([&, got = std::move(got)]() mutable { answer.set(std::move(got)); });
    });
  });
  return answer.wait();
}

Result<std::vector<mapreduce::KeyedResult>> read_results(Connection& connection, const rpc::JobStatus& job,
                                                         std::uint64_t bytes_max) {
  return JobResultReader(connection, job, 0, bytes_max).next();
}

Result<std::vector<mapreduce::KeyedResult>> results_of(Connection& connection, rpc::ListJobsReply& reply) {
  const rpc::JobStatus& job = reply.jobs.front();
  if (job.shuffle != rpc::Shuffle::Direct || reply.more_results || !reply.status) return read_results(connection, job);
  return mapreduce::take_results(reply);
}

}  // namespace fjord
