#include "reduce_phase.h"

#include <set>
#include <utility>

#include "job_tasks.h"

namespace fjord::mapreduce {

void ReducePhase::start() {
  JobState& job = parts_.job;
  const TaskSpec task = parts_.pass.reduce_task();
  const unsigned bits = parts_.environment.snapshot.get()->distribution_bits();
  std::set<BucketId> buckets;
  for (std::uint32_t destination = 0; destination < task.output_buckets; ++destination) {
    if (task.expected_documents[destination] > 0) buckets.insert(task.bucket(destination, bits));
  }
  job.counts.reduce_tasks = buckets.size();
  job.counts.reduce_tasks_done = job.counts.results = job.counts.documents_put = documents_ = 0;
  parts_.tasks.progress().begin(0, parts_.environment.clock.now());
  if (buckets.empty()) {
    reduce_nothing();
    return;
  }
  auto options = parts_.tasks.options(kReduceVisitor);
  options.parameters = task.to_parameters();
  options.selection = parts_.pass.tuples_selection();
  options.buckets.emplace(buckets.begin(), buckets.end());
  parts_.tasks.run(std::move(options),
                   {.on_task = [this](BucketId, const TaskReport& report) { return on_task(report); },
                    .on_known = {},
                    .on_ended = [this] { on_ended(); }});
}

Status ReducePhase::on_task(const TaskReport& report) {
  JobState& job = parts_.job;
  ++job.counts.reduce_tasks_done;
  // A bucket that its distributor does not know has an empty report. Its tuples are lost, which on_ended() detects.
  documents_ += report.documents;
  job.counts.results += report.results;
  if (parts_.pass.puts_documents() && !parts_.pass.is_limited()) job.counts.documents_put += report.results;
  job.counts.spilled_bytes += report.spilled_bytes;
  job.busy_us += report.busy_us;
  job.processor_us += report.processor_us;
  parts_.tasks.count(report.sent_bytes, report.results);
  return Status::ok();
}

void ReducePhase::on_ended() {
  const std::uint64_t put = parts_.job.counts.tuple_documents;
  if (documents_ == put) return parts_.host.ended();
  parts_.host.failed(Status(StatusCode::Corruption, "reduce read " + std::to_string(documents_) +
                                                        " tuple documents, map put " + std::to_string(put)));
}

/// Ends reduce if no map task made a tuple. A result without documents (tuple_of_nothing) is made in this process.
void ReducePhase::reduce_nothing() {
  Application& application = parts_.pass.application();
  if (!application.tuple_of_nothing()) {
    parts_.host.ended();
    return;
  }
  auto rows =
      DirectReduce(application, parts_.environment.bulk).finish(static_cast<std::size_t>(parts_.memory().bytes));
  if (!rows) {
    parts_.host.failed(rows.error());
    return;
  }
  parts_.rows.rows = std::move(*rows);
  parts_.rows.are_there = true;
  parts_.job.counts.results = parts_.rows.rows.size();
  parts_.job.shuffle = rpc::Shuffle::Direct;
  parts_.host.ended();
}

}  // namespace fjord::mapreduce
