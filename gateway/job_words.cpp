#include "job_words.h"

#include <fmt/format.h>
#include <utility>

#include "fjord/mapreduce/passes.h"

namespace fjord::gateway {
namespace {

using mapreduce::AggregatePlan;
using mapreduce::AggregateSpec;

/// Errors: InvalidArgument.
Result<AggregateRequest> aggregate_of(const api::AggregateWords& words) {
  if (words.limit < 0) return Status(StatusCode::InvalidArgument, "limit is negative: expected 0 or more");
  AggregateRequest request;
  request.type = words.type;
  request.selection = words.selection;
  request.group_by = words.group_by;
  request.aggregates = words.aggregates;
  request.having = words.having;
  request.order_by = words.order_by;
  request.limit = static_cast<std::uint64_t>(words.limit);
  request.into = words.into;
  request.into_namespace = words.into_namespace;
  request.name = words.into_name;
  return request;
}

/// Errors: InvalidArgument.
Result<JobPassRequest> pass_of(const api::JobPassWords& words) {
  const int kinds = static_cast<int>(words.__isset.aggregate) + static_cast<int>(!words.script.empty()) +
                    static_cast<int>(!words.application.empty());
  if (kinds != 1) {
    return Status(StatusCode::InvalidArgument, "expected exactly one of application, script and aggregate");
  }
  if (words.__isset.aggregate) {
    FJORD_TRY_ASSIGN(AggregateRequest aggregate, aggregate_of(words.aggregate));
    return JobPassRequest::of_aggregation(std::move(aggregate));
  }
  JobPassRequest pass = words.script.empty()
                            ? JobPassRequest::of_application(words.application, words.type, words.selection)
                            : JobPassRequest::of_script(words.script, words.type, words.selection);
  pass.parameters.insert(words.parameters.begin(), words.parameters.end());
  pass.into = {words.into, words.into_namespace, words.into_name};
  return pass;
}

}  // namespace

Result<JobRequest> request_of(const api::Aggregate& request) {
  FJORD_TRY_ASSIGN(AggregateRequest aggregate, aggregate_of(request.words));
  JobRequest job;
  job.passes.push_back(JobPassRequest::of_aggregation(std::move(aggregate)));
  job.settings = request.settings;
  job.incremental = request.incremental;
  return job;
}

Result<JobRequest> request_of(const api::StartJob& request) {
  JobRequest job;
  for (const api::JobPassWords& words : request.passes) {
    auto pass = pass_of(words);
    if (!pass) return pass.error().with_context(fmt::format("pass {}", job.passes.size() + 1));
    job.passes.push_back(std::move(*pass));
  }
  job.settings = request.settings;
  job.incremental = request.incremental;
  job.output_namespace = request.output_namespace;
  return job;
}

Result<std::shared_ptr<const AggregatePlan>> plan_of(const rpc::JobStatus& job,
                                                     const std::shared_ptr<const DocumentTypeRepo>& types) {
  const std::vector<rpc::JobPass> passes = mapreduce::passes_of(job.spec);
  if (passes.size() != 1 || passes[0].application != mapreduce::kAggregateApplication || passes[0].parameters.empty()) {
    return Status(
        StatusCode::InvalidArgument,
        fmt::format("the job {} is not an aggregation of one pass; getJobResults has its results", job.job_id));
  }
  FJORD_TRY_ASSIGN(const AggregateSpec spec, AggregateSpec::from_json(passes[0].parameters[0].value));
  return AggregatePlan::compile(spec, *types);
}

api::JobInfo words_of(const JobInfo& info) {
  using State = api::JobState;
  constexpr State::type kStates[] = {State::QUEUED, State::RUNNING, State::PAUSED,   State::ORPHANED,
                                     State::DONE,   State::FAILED,  State::CANCELLED};
  api::JobInfo words;
  words.job = info.id;
  words.state = kStates[static_cast<std::size_t>(info.state)];
  words.phase = info.phase;
  if (info.state == JobState::Failed) {
    words.__set_error(wire_status(info.error, info.owner));
  }
  words.application = info.passes.front().application;
  words.type = info.passes.front().type;
  words.selection = info.passes.front().selection;
  words.passes = static_cast<std::int32_t>(info.passes.size());
  words.passes_done = static_cast<std::int32_t>(info.passes_done);
  words.fraction_done = info.fraction_done;
  words.documents_read = static_cast<std::int64_t>(info.documents_read());
  words.dead_letters = static_cast<std::int64_t>(info.dead_letters);
  words.results = static_cast<std::int64_t>(info.current().results);
  words.owner = info.owner;
  words.submitted_unix_us = info.submitted_unix_us;
  words.finished_unix_us = info.finished_unix_us;
  return words;
}

api::Cell words_of(const Cell& cell) {
  struct Words {
    void operator()(std::monostate) const {}
    void operator()(std::int64_t value) const { words.__set_integer(value); }
    void operator()(double value) const { words.__set_number(value); }
    void operator()(const std::string& value) const { words.__set_text(value); }
    void operator()(bool value) const { words.__set_truth(value); }
    void operator()(const Json& value) const { words.__set_json(value.text); }
    api::Cell& words;
  };
  api::Cell words;
  std::visit(Words{words}, cell);
  return words;
}

}  // namespace fjord::gateway
