#include "map_phase.h"

#include <utility>

#include "job_tasks.h"

namespace fjord::mapreduce {

visitors::VisitorSessionOptions map_options(const JobParts& parts) {
  const CurrentPass& pass = parts.pass;
  auto options = parts.tasks.options(kMapVisitor);
  options.selection = pass.input_selection();
  if (pass.reads_rows()) options.buckets = pass.output_buckets();
  options.parameters = pass.map_task().to_parameters();
  options.header_only = !pass.application().needs_body() && !pass.reads_rows();
  return options;
}

void MapPhase::start() {
  auto options = map_options(parts_);
  if (resume_) resume_->question = options.fingerprint();
  options.resume = resume_;
  is_running_ = true;
  parts_.tasks.run(
      std::move(options),
      {.on_task = [this](BucketId bucket, const TaskReport& report) { return on_task(bucket, report); },
       .on_known =
           [this](std::uint64_t buckets) { parts_.job.counts.map_tasks = parts_.job.counts.map_tasks_done + buckets; },
       .on_ended = [this] { on_ended(); }});
}

void MapPhase::stop() {
  if (std::exchange(is_running_, false)) resume_ = parts_.tasks.cursor();
}

std::string MapPhase::cursor() const {
  if (is_running_) return parts_.tasks.cursor().to_text();
  return resume_ ? resume_->to_text() : std::string();
}

Status MapPhase::on_task(BucketId bucket, const TaskReport& report) {
  JobState& job = parts_.job;
  if (resume_ && bucket.used_bits() != job.bits) {
    return Status(StatusCode::NotReady, "the distribution bits have changed");
  }
  ++job.counts.map_tasks_done;
  job.counts.documents_read += report.documents;
  job.counts.bytes_read += report.bytes;
  job.counts.tuples += report.tuples;
  job.counts.spilled_bytes += report.spilled_bytes;
  job.counts.sent_bytes += report.sent_bytes;
  job.busy_us += report.busy_us;
  job.processor_us += report.processor_us;
  std::uint64_t documents = 0;
  for (const auto& [destination, count] : report.tuple_documents) {
    if (destination < job.expected_documents.size()) job.expected_documents[destination] += count;
    documents += count;
  }
  job.counts.tuple_documents += documents;
  job.dead_letters.insert(job.dead_letters.end(), report.dead_letters.begin(), report.dead_letters.end());
  parts_.tasks.count(report.sent_bytes, documents);
  return Status::ok();
}

void MapPhase::on_ended() {
  stop();
  if (const Status whole = parts_.pass.check_input(); !whole) {
    parts_.host.failed(whole);
  } else {
    parts_.host.ended();
  }
}

}  // namespace fjord::mapreduce
