#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/mapreduce/job_rows.h"
#include "fjord/rpc/messages.h"

/// The state of a job: what the process that runs it works with, and what its record stores. The answer to listJobs
/// (rpc::JobStatus) is made from it by to_status(). Format of the record: mapreduce/record/FORMAT.md.
namespace fjord::mapreduce {

/// Counts of one pass. A repeated task counts once.
struct PassCounts {
  std::uint64_t map_tasks = 0;
  std::uint64_t map_tasks_done = 0;
  std::uint64_t reduce_tasks = 0;
  std::uint64_t reduce_tasks_done = 0;
  std::uint64_t documents_read = 0;  ///< Input documents that matched, including dead letters.
  std::uint64_t bytes_read = 0;
  std::uint64_t tuples = 0;           ///< Tuples emitted by map.
  std::uint64_t tuple_documents = 0;  ///< Tuple documents put between map and reduce.
  std::uint64_t results = 0;
  std::uint64_t tasks_repeated = 0;
  std::uint64_t spilled_bytes = 0;      ///< Bytes written to disk by tasks whose groups did not fit into memory.
  std::uint64_t sent_bytes = 0;         ///< Bytes of tuples that tasks put or sent.
  std::uint64_t documents_put = 0;      ///< Number of rows that became documents (rpc::RowTarget).
  std::uint64_t documents_removed = 0;  ///< Number of documents of the target removed because they have no row.
  std::uint64_t documents_reused = 0;   ///< Part of documents_read that comes from partials of an earlier job.
  friend bool operator==(const PassCounts&, const PassCounts&) = default;
};

/// A finished pass.
struct PassResult {
  PassCounts counts;
  std::uint64_t dead_letters = 0;
  rpc::Shuffle shuffle = rpc::Shuffle::Auto;
  friend bool operator==(const PassResult&, const PassResult&) = default;
};

/// The part of a job's record that can be read without its body: who owns the job, and whether it has ended.
struct JobRecordHeader {
  std::string job_id;
  std::string owner;           ///< Process that runs or ran the job, as "distributor.1".
  std::uint64_t owner_id = 0;  ///< Incarnation of that process.
  std::uint64_t epoch = 0;     ///< Rises when another process takes the job over; 0: the job has no record (yet).
  std::uint64_t revision = 0;  ///< Revision of the record; rises with every change of it.
  std::int64_t finished_unix_us = 0;  ///< 0: not finished.
  friend bool operator==(const JobRecordHeader&, const JobRecordHeader&) = default;
};

struct JobState : JobRecordHeader {
  rpc::JobSpec spec;
  std::vector<rpc::Parameter> settings;  ///< Settings in force.
  std::int64_t submitted_unix_us = 0;
  std::uint64_t taken_over = 0;  ///< Number of times that another process has taken the job over.

  rpc::JobPhase phase = rpc::JobPhase::Unknown;
  rpc::JobPhase outcome = rpc::JobPhase::Unknown;  ///< In phase CleanUp: the phase that the job ends with.
  Status error;
  bool paused = false;
  bool cancel_wanted = false;
  bool results_removed = false;  ///< The results have been removed, or are being removed.

  std::uint32_t output_buckets = 0;           ///< Number of output buckets; 0: the job has put nothing.
  std::uint64_t output_base = 0;              ///< Location of output bucket 0.
  std::uint32_t run = 0;                      ///< Restart count of map; part of the tuple documents' ids.
  std::uint32_t pass_run = 0;                 ///< Value of `run` when the pass began.
  std::uint32_t bits = 0;                     ///< Distribution bits under which map began; 0: the pass has not begun.
  rpc::Shuffle shuffle = rpc::Shuffle::Auto;  ///< The shuffle in use; Auto until the pass has begun.
  std::string application_version;            ///< Version of a plugin's application; the same for all tasks.
  /// Used instead of application_version if the job has several passes: one version for each pass.
  std::vector<std::string> application_versions;

  PassCounts counts;  ///< Counts of the current or last pass.
  std::vector<PassResult> passes_done;
  std::vector<rpc::DeadLetter> dead_letters;  ///< Documents of all passes on which map failed.
  std::uint64_t busy_us = 0;                  ///< Time that tasks of all passes spent in map and reduce.
  std::uint64_t processor_us = 0;             ///< Processor time used within busy_us; 0: the job has no cpu_max.

  // The next two members are for the process that takes the job over.
  std::string resume;  ///< Visit cursor of map, with the buckets that the counts here include.
  std::vector<std::uint64_t> expected_documents;  ///< Number of tuple documents of each destination.

  /// Returns the sum of a count over all finished passes.
  std::uint64_t in_passes_done(std::uint64_t PassCounts::*count) const;
  /// Returns the number of dead letters of all finished passes.
  std::uint64_t dead_letters_before() const;
  friend bool operator==(const JobState&, const JobState&) = default;
};

/// True if the job has ended.
inline bool is_over(rpc::JobPhase phase) {
  return phase == rpc::JobPhase::Done || phase == rpc::JobPhase::Failed || phase == rpc::JobPhase::Cancelled;
}

/// Facts about a job that only the process that runs it knows.
struct JobOutlook {
  std::string bound_by;    ///< The resource or limit that the job waits for most.
  Duration left{0};        ///< Estimated time until the phase ends; 0: no estimate.
  Duration left_error{0};  ///< Estimated error of `left`.
};

/// The inputs of to_status() beside the job's state.
struct JobAnswerOptions {
  const JobOutlook* outlook = nullptr;  ///< Null: the answer comes from the record, not from the owner.
  Duration results_kept{0};             ///< Time for which results are kept; 0: without end.
  bool dead_letters = false;            ///< Include the list of dead letters and not only their number.
};

/// Returns the answer about a job that users see.
rpc::JobStatus to_status(const JobState& job, const JobAnswerOptions& options);

/// Encodes the content of a job's record, or the results that are stored beside it, in the current version of the
/// format.
std::string encode_job_state(const JobState& job);
std::string encode_job_rows(const JobRows& rows);
/// Decode content of any version that was ever written. Errors: Corruption; NotImplemented if the content is of a newer
/// version than this program knows.
Result<JobState> decode_job_state(std::string_view content);
Result<JobRows> decode_job_rows(std::string_view content);

}  // namespace fjord::mapreduce
