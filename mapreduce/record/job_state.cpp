#include "fjord/mapreduce/job_state.h"

#include "job_record_v1.h"
#include "job_state_fields.h"

namespace fjord::mapreduce {
namespace {

/// Version of the format that this program writes. The first byte of a record of version 1 is that of a Thrift message.
constexpr std::uint8_t kVersion = 2;
constexpr unsigned kRowKey = 1;
constexpr unsigned kRowValue = 2;

/// Returns the content without its version. Errors: Corruption; NotImplemented.
Result<std::string_view> without_version(std::string_view content) {
  const auto version = content.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(content[0]);
  if (version == kVersion) return content.substr(1);
  if (version < kVersion) return Status(StatusCode::Corruption, "the record of a job has no version");
  return Status(StatusCode::NotImplemented, "the record of a job has the version " + std::to_string(version) +
                                                "; this program reads versions 1 to " + std::to_string(kVersion));
}

template <typename T>
Result<T> decoded(std::string_view content) {
  FJORD_TRY_ASSIGN(const std::string_view bytes, without_version(content));
  T value;
  if (const Status status = FieldReader::read(bytes, value); !status) {
    return status.with_context("the record of a job is malformed");
  }
  return value;
}

template <typename T>
std::string encoded(const T& value) {
  std::string content(1, static_cast<char>(kVersion));
  FieldWriter writer(content);
  fields(writer, value);
  return content;
}

struct StoredRow {
  std::string key;
  std::string value;
};
template <typename V, FieldsOf<StoredRow> M>
void fields(V& visit, M& m) {
  visit(kRowKey, m.key);
  visit(kRowValue, m.value);
}
struct StoredRows {
  std::vector<StoredRow> rows;
};
template <typename V, FieldsOf<StoredRows> M>
void fields(V& visit, M& m) {
  visit(1, m.rows);
}

rpc::PassStatus to_status(const PassResult& pass) {
  const PassCounts& counts = pass.counts;
  return {.map_tasks = counts.map_tasks,
          .map_tasks_done = counts.map_tasks_done,
          .reduce_tasks = counts.reduce_tasks,
          .reduce_tasks_done = counts.reduce_tasks_done,
          .documents_read = counts.documents_read,
          .bytes_read = counts.bytes_read,
          .tuples = counts.tuples,
          .tuple_documents = counts.tuple_documents,
          .results = counts.results,
          .tasks_repeated = counts.tasks_repeated,
          .spilled_bytes = counts.spilled_bytes,
          .sent_bytes = counts.sent_bytes,
          .dead_letters = pass.dead_letters,
          .documents_put = counts.documents_put,
          .documents_removed = counts.documents_removed,
          .documents_reused = counts.documents_reused,
          .shuffle = pass.shuffle};
}

void set_counts(const PassCounts& counts, rpc::JobStatus& status) {
  status.map_tasks = counts.map_tasks;
  status.map_tasks_done = counts.map_tasks_done;
  status.reduce_tasks = counts.reduce_tasks;
  status.reduce_tasks_done = counts.reduce_tasks_done;
  status.documents_read = counts.documents_read;
  status.bytes_read = counts.bytes_read;
  status.tuples = counts.tuples;
  status.tuple_documents = counts.tuple_documents;
  status.results = counts.results;
  status.tasks_repeated = counts.tasks_repeated;
  status.spilled_bytes = counts.spilled_bytes;
  status.sent_bytes = counts.sent_bytes;
  status.documents_put = counts.documents_put;
  status.documents_removed = counts.documents_removed;
  status.documents_reused = counts.documents_reused;
}

}  // namespace

std::uint64_t JobState::in_passes_done(std::uint64_t PassCounts::*count) const {
  std::uint64_t sum = 0;
  for (const PassResult& pass : passes_done) sum += pass.counts.*count;
  return sum;
}

std::uint64_t JobState::dead_letters_before() const {
  std::uint64_t sum = 0;
  for (const PassResult& pass : passes_done) sum += pass.dead_letters;
  return sum;
}

rpc::JobStatus to_status(const JobState& job, const JobAnswerOptions& options) {
  rpc::JobStatus status;
  status.job_id = job.job_id;
  status.spec = job.spec;
  status.phase = job.phase;
  status.error = job.error;
  set_counts(job.counts, status);
  status.submitted_unix_us = job.submitted_unix_us;
  status.finished_unix_us = job.finished_unix_us;
  status.output_buckets = job.output_buckets;
  status.output_base = job.output_base;
  status.shuffle = job.shuffle;
  status.paused = job.paused;
  status.owner = job.owner;
  status.epoch = job.epoch;
  status.dead_letters = job.dead_letters.size();
  if (options.dead_letters) status.dead_letter_list = job.dead_letters;
  status.settings = job.settings;
  status.busy_us = job.busy_us;
  status.taken_over = job.taken_over;
  status.revision = job.revision;
  status.owner_id = job.owner_id;
  status.run = job.run;
  status.bits = job.bits;
  status.outcome = job.outcome;
  status.cancel_wanted = job.cancel_wanted;
  for (const PassResult& pass : job.passes_done) status.passes_done.push_back(to_status(pass));
  status.pass_run = job.pass_run;
  status.application_version = job.application_version;
  status.processor_us = job.processor_us;
  status.application_versions = job.application_versions;
  status.results_removed = job.results_removed;
  const bool has_results = job.phase == rpc::JobPhase::Done && job.counts.results > 0 && !job.results_removed;
  if (has_results && options.results_kept > Duration(0)) {
    status.results_until_unix_us = job.finished_unix_us + options.results_kept.count();
  }
  if (options.outlook != nullptr) {
    status.live = true;
    status.bound_by = options.outlook->bound_by;
    status.left_us = options.outlook->left.count();
    status.left_error_us = options.outlook->left_error.count();
  }
  return status;
}

std::string encode_job_state(const JobState& job) { return encoded(job); }

Result<JobState> decode_job_state(std::string_view content) {
  return is_job_record_v1(content) ? decode_job_state_v1(content) : decoded<JobState>(content);
}

std::string encode_job_rows(const JobRows& rows) {
  StoredRows stored;
  stored.rows.reserve(rows.size());
  for (const auto& [key, value] : rows) stored.rows.push_back({std::string(key), std::string(value)});
  return encoded(stored);
}

Result<JobRows> decode_job_rows(std::string_view content) {
  if (is_job_record_v1(content)) return decode_job_rows_v1(content);
  FJORD_TRY_ASSIGN(StoredRows stored, decoded<StoredRows>(content));
  JobRows rows;
  for (const StoredRow& row : stored.rows) rows.add(row.key, row.value);
  return rows;
}

}  // namespace fjord::mapreduce
