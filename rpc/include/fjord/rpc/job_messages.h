#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "fjord/common/status.h"

/// The messages of messages.h (which includes this file) about jobs, between clients and distributors.
namespace fjord::rpc {

struct Parameter {
  std::string name;
  std::string value;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// The way of tuples from map to reduce.
enum class Shuffle : std::int32_t {
  Auto = 0,    ///< The system chooses.
  Store = 1,   ///< As documents in the store. The results are documents, too.
  Direct = 2,  ///< In the visitors' answers to the process that runs the job. It reduces them and holds the results.
};

/// The document type and ids under which a pass puts its rows as lasting documents. The id of a row is made of
/// namespace, type, name and group.
struct RowTarget {
  std::string type;        ///< Document type; empty: rows do not become documents.
  std::string name_space;  ///< Namespace; empty: "results".
  std::string name;        ///< Jobs with the same name overwrite each other's documents; empty: the id of the job.
  friend bool operator==(const RowTarget&, const RowTarget&) = default;
};

/// One MapReduce of a job with several passes, or of a job that puts documents.
struct JobPass {
  std::string application;
  std::string document_type;  ///< Input type of the first pass. Later passes: the type that follows, or empty.
  std::string selection;
  std::vector<Parameter> parameters;
  RowTarget into;
  friend bool operator==(const JobPass&, const JobPass&) = default;
};

struct JobSpec {
  std::string application;
  std::string document_type;
  std::string selection;
  std::vector<Parameter> parameters;
  std::string output_namespace;         ///< Namespace of the results; empty: "results".
  std::uint32_t output_buckets = 0;     ///< Number of output buckets; 0: the system chooses.
  std::uint32_t visitors_per_node = 0;  ///< Map tasks at a time on a storage node; 0: the system chooses.
  Shuffle shuffle = Shuffle::Auto;
  /// Limits and throttle, which change how the job runs and not what it computes (docs/design/0010-durable-jobs.md). A
  /// setting that is not listed has its default.
  std::vector<Parameter> settings = {};
  /// Read only what changed since the last equal job, as far as its partials are kept
  /// (docs/design/0011-incremental-refresh.md).
  bool incremental = false;
  /// The passes of a chain; each pass after the first reads the rows of the previous one
  /// (docs/design/0012-chained-passes.md). With passes the members from `application` to `parameters` are empty, so
  /// that a distributor of an older version refuses the job instead of running a part of it.
  std::vector<JobPass> passes = {};
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

enum class JobPhase : std::int32_t {
  Unknown = 0,
  Queued = 1,
  Map = 2,
  Reduce = 3,
  CleanUp = 4,
  Done = 5,
  Failed = 6,
  Cancelled = 7,
  Put = 8,  ///< Rows become documents; after Reduce.
};

/// A document on which the map function of a job failed, with the error.
struct DeadLetter {
  std::string document;
  std::string error;
  friend bool operator==(const DeadLetter&, const DeadLetter&) = default;
};

/// The counts of a finished pass. The fields are those of JobStatus.
struct PassStatus {
  std::uint64_t map_tasks = 0;
  std::uint64_t map_tasks_done = 0;
  std::uint64_t reduce_tasks = 0;
  std::uint64_t reduce_tasks_done = 0;
  std::uint64_t documents_read = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t tuples = 0;
  std::uint64_t tuple_documents = 0;
  std::uint64_t results = 0;
  std::uint64_t tasks_repeated = 0;
  std::uint64_t spilled_bytes = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t dead_letters = 0;
  std::uint64_t documents_put = 0;
  std::uint64_t documents_removed = 0;
  std::uint64_t documents_reused = 0;
  Shuffle shuffle = Shuffle::Auto;
  friend bool operator==(const PassStatus&, const PassStatus&) = default;
};

struct JobStatus {
  std::string job_id;
  JobSpec spec;
  JobPhase phase = JobPhase::Unknown;
  Status error;
  std::uint64_t map_tasks = 0;
  std::uint64_t map_tasks_done = 0;
  std::uint64_t reduce_tasks = 0;
  std::uint64_t reduce_tasks_done = 0;
  std::uint64_t documents_read = 0;  ///< Input documents that matched, each counted once.
  std::uint64_t bytes_read = 0;
  std::uint64_t tuples = 0;           ///< Tuples emitted by map.
  std::uint64_t tuple_documents = 0;  ///< Tuple documents put between map and reduce.
  std::uint64_t results = 0;          ///< Result documents.
  std::uint64_t tasks_repeated = 0;
  std::int64_t submitted_unix_us = 0;
  std::int64_t finished_unix_us = 0;  ///< 0: not finished.
  std::uint32_t output_buckets = 0;
  std::uint64_t output_base = 0;    ///< Location of output bucket 0.
  Shuffle shuffle = Shuffle::Auto;  ///< The shuffle in use; Auto until the job has begun.
  std::uint64_t spilled_bytes = 0;  ///< Bytes written to disk by tasks whose groups did not fit into memory.
  bool paused = false;
  std::string owner;               ///< Process that runs or ran the job, as "distributor.1".
  std::uint64_t epoch = 0;         ///< Rises when another process takes the job over; 0: the job has no record (yet).
  bool live = false;               ///< Reported by the process that runs the job; false: read from the job's record.
  std::uint64_t dead_letters = 0;  ///< Number of documents on which map failed; included in documents_read.
  std::vector<DeadLetter> dead_letter_list;  ///< Only with ListJobs::dead_letters.
  std::vector<Parameter> settings;           ///< Settings in force.
  std::string bound_by;                      ///< The resource or limit that the job waits for most.
  std::int64_t left_us = 0;                  ///< Estimated time until the phase ends; 0: no estimate.
  std::int64_t left_error_us = 0;            ///< Estimated error of left_us.
  std::uint64_t sent_bytes = 0;              ///< Bytes of tuples that tasks put or sent, without repeated tasks.
  std::uint64_t busy_us = 0;                 ///< Time that tasks spent in map and reduce.
  std::uint64_t taken_over = 0;              ///< Number of times that another process has taken the job over.
  // The other fields are for the process that takes the job over.
  std::uint64_t revision = 0;            ///< Revision of the job's record; rises with every change of it.
  std::uint64_t owner_id = 0;            ///< Incarnation of the process that owns the job.
  std::uint32_t run = 0;                 ///< Restart count of map; part of the tuple documents' ids.
  std::uint32_t bits = 0;                ///< Distribution bits under which map began.
  JobPhase outcome = JobPhase::Unknown;  ///< In phase CleanUp: the phase that the job ends with.
  bool cancel_wanted = false;
  std::string resume;                  ///< Visit cursor of map, with the buckets that the counts here include.
  std::string expected;                ///< Number of tuple documents of each destination, separated by commas.
  std::uint64_t documents_reused = 0;  ///< Part of documents_read that comes from partials of an earlier job.
  /// Counts of the finished passes. The counts above are those of the current or last pass, except times, dead letters
  /// and busy_us.
  std::vector<PassStatus> passes_done;
  std::uint64_t documents_put = 0;      ///< Number of rows that became documents (RowTarget).
  std::uint64_t documents_removed = 0;  ///< Number of documents of the RowTarget removed because they have no row.
  std::uint32_t pass_run = 0;           ///< Value of `run` when the pass began.
  std::string application_version;      ///< Version of a plugin's application; the same for all tasks.
  std::uint64_t processor_us = 0;       ///< Processor time of tasks, part of busy_us; 0: the job has no cpu_max.
  /// Application versions of a job with several passes, one for each pass, in place of application_version.
  std::vector<std::string> application_versions;
  std::int64_t results_until_unix_us = 0;  ///< When the results are removed; 0: never, or there are none.
  bool results_removed = false;            ///< The results have been removed, or are being removed.
};

struct SubmitJobReply {
  Status status;
  std::string job_id;
};
struct SubmitJob {
  using Reply = SubmitJobReply;
  static constexpr const char* kName = "submitJob";
  std::string job_id;  ///< Chosen by the client, so that a repeated call does not start a second job.
  JobSpec spec;
};
struct ListJobsReply {
  Status status;
  std::vector<JobStatus> jobs;
  std::vector<Parameter> results;  ///< Results as key and value, by rising key (ListJobs::results_from).
  bool more_results = false;
};
/// Lists the jobs that the receiver runs or ran. With `records` also all other jobs that have a record.
struct ListJobs {
  using Reply = ListJobsReply;
  static constexpr const char* kName = "listJobs";
  std::string job_id;                   ///< Empty: all jobs.
  std::int64_t wait_us = 0;             ///< With a job_id: time to wait for the end of the job before the reply.
  std::uint64_t results_from = 0;       ///< With a job_id: index of the first result to return from memory.
  std::uint32_t results_bytes_max = 0;  ///< Approximate size of the returned results, at least one result; 0: none.
  bool records = false;                 ///< List also jobs that the receiver does not run, from their records.
  bool dead_letters = false;            ///< With a job_id: return JobStatus::dead_letter_list.
};
struct CancelJobReply {
  Status status;
};
struct CancelJob {
  using Reply = CancelJobReply;
  static constexpr const char* kName = "cancelJob";
  std::string job_id;
};
enum class JobAction : std::int32_t {
  Unknown = 0,
  Pause = 1,
  Resume = 2,
  Cancel = 3,
  Set = 4,
  Remove = 5,         ///< Removes an ended job: its record, its results and everything else it has stored.
  RemoveResults = 6,  ///< Removes the results of an ended job.
};
struct ControlJobReply {
  Status status;  ///< NotFound if the receiver does not run the job and ControlJob::records is false.
};
struct ControlJob {
  using Reply = ControlJobReply;
  static constexpr const char* kName = "controlJob";
  std::string job_id;
  JobAction action = JobAction::Unknown;
  std::vector<Parameter> settings;  ///< Set: the settings to change.
  bool records = false;             ///< Change the job's record if the receiver does not run the job.
};

/// Returns true if `a` is a newer status of the same job than `b`.
inline bool is_newer(const JobStatus& a, const JobStatus& b) {
  const auto rank = [](const JobStatus& job) {
    return std::tuple(job.finished_unix_us != 0, job.epoch, job.live, job.revision);
  };
  return rank(a) > rank(b);
}

}  // namespace fjord::rpc
