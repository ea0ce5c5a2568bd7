#include "job_record_v1.h"

#include <charconv>
#include <utility>

#include "fjord/rpc/codec.h"

namespace fjord::mapreduce {
namespace {

constexpr char kThriftCompact = '\x82';  // first byte of a message in the compact protocol

Result<rpc::ListJobsReply> unpacked(std::string_view content) {
  FJORD_TRY_ASSIGN(auto decoded, rpc::decode_reply(content));
  if (!decoded.reply) return decoded.reply.error();
  auto* reply = std::get_if<rpc::ListJobsReply>(&*decoded.reply);
  if (reply == nullptr) return Status(StatusCode::Corruption, "the record of a job holds another message");
  return std::move(*reply);
}

/// Parses numbers that are separated by commas. Errors: Corruption.
Result<std::vector<std::uint64_t>> numbers_in(const std::string& text) {
  std::vector<std::uint64_t> numbers;
  for (const char *at = text.data(), *end = at + text.size(); at < end; ++at) {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc() || (next != end && *next != ',')) {
      return Status(StatusCode::Corruption, "malformed numbers in the record of a job: " + text);
    }
    at = next;
  }
  return numbers;
}

/// `T`: rpc::JobStatus or rpc::PassStatus, which have members of the same names.
template <typename T>
PassCounts counts_of(const T& status) {
  return {.map_tasks = status.map_tasks,
          .map_tasks_done = status.map_tasks_done,
          .reduce_tasks = status.reduce_tasks,
          .reduce_tasks_done = status.reduce_tasks_done,
          .documents_read = status.documents_read,
          .bytes_read = status.bytes_read,
          .tuples = status.tuples,
          .tuple_documents = status.tuple_documents,
          .results = status.results,
          .tasks_repeated = status.tasks_repeated,
          .spilled_bytes = status.spilled_bytes,
          .sent_bytes = status.sent_bytes,
          .documents_put = status.documents_put,
          .documents_removed = status.documents_removed,
          .documents_reused = status.documents_reused};
}

}  // namespace

bool is_job_record_v1(std::string_view content) { return !content.empty() && content[0] == kThriftCompact; }

Result<JobState> decode_job_state_v1(std::string_view content) {
  FJORD_TRY_ASSIGN(rpc::ListJobsReply reply, unpacked(content));
  if (reply.jobs.size() != 1) return Status(StatusCode::Corruption, "the record of a job is malformed");
  rpc::JobStatus& stored = reply.jobs.front();
  JobState job;
  FJORD_TRY_ASSIGN(job.expected_documents, numbers_in(stored.expected));
  job.job_id = std::move(stored.job_id);
  job.owner = std::move(stored.owner);
  job.owner_id = stored.owner_id;
  job.epoch = stored.epoch;
  job.revision = stored.revision;
  job.finished_unix_us = stored.finished_unix_us;
  job.spec = std::move(stored.spec);
  job.settings = std::move(stored.settings);
  job.submitted_unix_us = stored.submitted_unix_us;
  job.taken_over = stored.taken_over;
  job.phase = stored.phase;
  job.outcome = stored.outcome;
  job.error = std::move(stored.error);
  job.paused = stored.paused;
  job.cancel_wanted = stored.cancel_wanted;
  job.results_removed = stored.results_removed;
  job.output_buckets = stored.output_buckets;
  job.output_base = stored.output_base;
  job.run = stored.run;
  job.pass_run = stored.pass_run;
  job.bits = stored.bits;
  job.shuffle = stored.shuffle;
  job.application_version = std::move(stored.application_version);
  job.application_versions = std::move(stored.application_versions);
  job.counts = counts_of(stored);
  for (const rpc::PassStatus& pass : stored.passes_done) {
    job.passes_done.push_back({counts_of(pass), pass.dead_letters, pass.shuffle});
  }
  job.dead_letters = std::move(stored.dead_letter_list);
  job.busy_us = stored.busy_us;
  job.processor_us = stored.processor_us;
  job.resume = std::move(stored.resume);
  return job;
}

Result<JobRows> decode_job_rows_v1(std::string_view content) {
  FJORD_TRY_ASSIGN(rpc::ListJobsReply reply, unpacked(content));
  JobRows rows;
  for (const rpc::Parameter& row : reply.results) rows.add(row.name, row.value);
  return rows;
}

}  // namespace fjord::mapreduce
