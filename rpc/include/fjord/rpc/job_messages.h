#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "fjord/common/status.h"

/// What clients and distributors say to each other of jobs: the part of messages.h, which includes this, that is about
/// them.
namespace fjord::rpc {

struct Parameter {
  std::string name;
  std::string value;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// How the tuples of map tasks get to where they are reduced.
enum class Shuffle : std::int32_t {
  Auto = 0,    ///< Chosen by the system.
  Store = 1,   ///< As documents in the store; the results are documents, too.
  Direct = 2,  ///< With the answers of the visitors, to the process that runs the job, which holds the results.
};

/// Where a pass puts its rows as documents that stay: each row under an id made of namespace, type, name and group.
struct RowTarget {
  std::string type;        ///< Document type; empty: nowhere.
  std::string name_space;  ///< Empty: "results".
  std::string name;        ///< Jobs with the same one overwrite each other's documents; empty: the id of the job.
  friend bool operator==(const RowTarget&, const RowTarget&) = default;
};

/// One MapReduce of a job that has several, or that puts documents.
struct JobPass {
  std::string application;
  std::string document_type;  ///< Of the first pass; of others what follows from the pass before, or empty.
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
  std::string output_namespace;         ///< Empty: "results".
  std::uint32_t output_buckets = 0;     ///< 0: chosen by the system.
  std::uint32_t visitors_per_node = 0;  ///< 0: chosen by the system.
  Shuffle shuffle = Shuffle::Auto;      ///< How tuples get from map to reduce.
  /// How it runs, not what it computes: limits and throttle (docs/design/0010-durable-jobs.md). What is not named is at
  /// its default.
  std::vector<Parameter> settings = {};
  /// Only what changed since the last job of the same is read, where that is still known
  /// (docs/design/0011-incremental-refresh.md).
  bool incremental = false;
  /// Each but the first reads what the one before put (docs/design/0012-chained-passes.md). If there are any, the
  /// members from `application` to `parameters` are empty, so that who does not know passes does not run the job.
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
  Put = 8,  ///< After Reduce, if rows become documents.
};

/// A document that the map function of a job failed on, and why.
struct DeadLetter {
  std::string document;
  std::string error;
  friend bool operator==(const DeadLetter&, const DeadLetter&) = default;
};

/// What a pass came to.
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
  std::uint64_t tuples = 0;           ///< Emitted by map.
  std::uint64_t tuple_documents = 0;  ///< Put between map and reduce.
  std::uint64_t results = 0;          ///< Result documents.
  std::uint64_t tasks_repeated = 0;
  std::int64_t submitted_unix_us = 0;
  std::int64_t finished_unix_us = 0;  ///< 0: not finished.
  std::uint32_t output_buckets = 0;
  std::uint64_t output_base = 0;    ///< Location of output bucket 0.
  Shuffle shuffle = Shuffle::Auto;  ///< The one that is used; Auto until the job has begun.
  std::uint64_t spilled_bytes = 0;  ///< Written to disk by tasks whose groups did not fit into memory.
  bool paused = false;
  std::string owner;               ///< Process that runs or ran it, as "distributor.1".
  std::uint64_t epoch = 0;         ///< Rises when another process takes the job over; 0: the job has no record (yet).
  bool live = false;               ///< Said by the process that runs it, and not read from its record.
  std::uint64_t dead_letters = 0;  ///< Documents that the map function failed on; part of documents_read.
  std::vector<DeadLetter> dead_letter_list;  ///< If they were asked for.
  std::vector<Parameter> settings;           ///< In force.
  std::string bound_by;                      ///< What it waits for most.
  std::int64_t left_us = 0;                  ///< Estimate of the time that is left; 0: none.
  std::int64_t left_error_us = 0;            ///< It may be wrong by so much.
  std::uint64_t sent_bytes = 0;              ///< Tuples that tasks put or sent, without repeated tasks.
  std::uint64_t busy_us = 0;                 ///< Time that tasks spent in map and reduce.
  std::uint64_t taken_over = 0;              ///< Times that another process has gone on with it.
  // The rest is for those who may have to go on with the job.
  std::uint64_t revision = 0;            ///< Of the record; rises with every change of it.
  std::uint64_t owner_id = 0;            ///< Of the life of the process that owns it.
  std::uint32_t run = 0;                 ///< Times that map was begun anew.
  std::uint32_t bits = 0;                ///< Distribution bits under which map began.
  JobPhase outcome = JobPhase::Unknown;  ///< In clean-up: how it ends.
  bool cancel_wanted = false;
  std::string resume;                  ///< Text of the visit token of map: buckets that the numbers here include.
  std::string expected;                ///< Tuple documents by destination, with commas.
  std::uint64_t documents_reused = 0;  ///< Of documents_read, those that an earlier job had read and this one did not.
  /// Passes that are done. All numbers above but times, dead letters and busy_us are of the pass after them, the one
  /// that is under way or was the last.
  std::vector<PassStatus> passes_done;
  std::uint64_t documents_put = 0;      ///< Rows that became documents of the type that the pass names.
  std::uint64_t documents_removed = 0;  ///< Documents of that name that are no rows any more.
  std::uint32_t pass_run = 0;           ///< `run` when the pass began.
  std::string application_version;      ///< Of an application of a plugin; all of its tasks have the same.
  std::uint64_t processor_us = 0;       ///< Of busy_us, processors worked for tasks; 0: the job has no cpu_max.
  /// Of a job with several passes, in place of application_version: one for each pass.
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
  std::string job_id;  ///< Chosen by the client, so that sending again is fine.
  JobSpec spec;
};
struct ListJobsReply {
  Status status;
  std::vector<JobStatus> jobs;
  std::vector<Parameter> results;  ///< What was asked for: key and value, by rising key.
  bool more_results = false;
};
/// The jobs that this distributor runs or ran; with `records` all jobs that have a record, too.
struct ListJobs {
  using Reply = ListJobsReply;
  static constexpr const char* kName = "listJobs";
  std::string job_id;                   ///< Empty: all.
  std::int64_t wait_us = 0;             ///< With an id: the answer comes when the job has ended, or after so long.
  std::uint64_t results_from = 0;       ///< With an id: results that the process holds, from this one on ...
  std::uint32_t results_bytes_max = 0;  ///< ... at least one of them, and about so many bytes; 0: none.
  bool records = false;                 ///< Also what the store knows of jobs that this process does not run.
  bool dead_letters = false;            ///< With an id: with the list of them.
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
  Remove = 5,         ///< The job has ended: its record, its results and what else there is of it are removed.
  RemoveResults = 6,  ///< The job has ended: its results are removed.
};
struct ControlJobReply {
  Status status;  ///< NotFound if this process does not run the job and `records` was not asked for.
};
struct ControlJob {
  using Reply = ControlJobReply;
  static constexpr const char* kName = "controlJob";
  std::string job_id;
  JobAction action = JobAction::Unknown;
  std::vector<Parameter> settings;  ///< Set: those that change.
  bool records = false;             ///< Change the record if this process does not run the job.
};

/// Of two answers about one job, whether `a` says more of how it is now.
inline bool is_newer(const JobStatus& a, const JobStatus& b) {
  const auto rank = [](const JobStatus& job) {
    return std::tuple(job.finished_unix_us != 0, job.epoch, job.live, job.revision);
  };
  return rank(a) > rank(b);
}

}  // namespace fjord::rpc
