#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/library/aggregate.h"
#include "fjord/library/next_iterator.h"

namespace fjord {

class ClientCore;
class JobResultReader;

// --- What a job does

/// Where the rows of a pass are stored as documents.
struct JobTarget {
  std::string type = {};  ///< Document type; empty: the rows are not stored.
  std::string name_space = {};
  std::string name = {};  ///< Jobs with the same target and name replace each other's documents.
};

/// One pass of a job: one MapReduce.
struct JobPassRequest {
  std::string application = {};  ///< "citycount", an application of a plugin, or "script" with the parameter `script`.
  std::string type = {};  ///< Document type that the first pass reads; a later pass reads the previous one's rows.
  std::string selection = {};
  std::map<std::string, std::string> parameters = {};
  JobTarget into = {};
  /// An aggregation in place of an application; the other members are empty then. Without `type` in a pass after the
  /// first.
  std::optional<AggregateRequest> aggregation = {};

  /// An application that is built in or that a plugin of the cluster offers (Admin::plugins()).
  static JobPassRequest of_application(std::string application, std::string type = {}, std::string selection = {});
  /// A Lua program with a function map(document); docs/operating/scripts.md.
  static JobPassRequest of_script(std::string lua, std::string type = {}, std::string selection = {});
  /// Returns the pass of a Lua program that is in a file. Errors: NotFound, IoError; TooLarge above 1 MiB.
  static Result<JobPassRequest> of_script_file(const std::string& path, std::string type = {},
                                               std::string selection = {});
  static JobPassRequest of_aggregation(AggregateRequest aggregation);
  /// Parses a JSON object: an aggregation {"group_by": "city", "aggregates": "count()", ...}, or {"application":
  /// "script", "script": "FILE", "parameters": {"name": "value"}, "selection": "CONDITION"}, where only the application
  /// is required. Errors: InvalidArgument that names the member; those of of_script_file().
  static Result<JobPassRequest> from_json(const std::string& json);
};

/// The way of tuples from map to reduce.
enum class JobShuffle : std::uint8_t {
  Auto,    ///< The cluster chooses.
  Store,   ///< As documents in the store.
  Direct,  ///< In messages to the distributor that runs the job.
};
std::string_view to_string(JobShuffle shuffle);
/// The inverse of to_string(); Auto for other texts.
JobShuffle job_shuffle_from_string(std::string_view text);

struct JobRequest {
  /// At least one. Each pass after the first reads the rows of the one before.
  std::vector<JobPassRequest> passes = {};
  std::map<std::string, std::string> settings = {};  ///< Limits: {"cpu_max", "2"}, {"priority", "background"}.
  bool incremental = false;                          ///< Read only what changed since the last run of an equal request.
  JobShuffle shuffle = JobShuffle::Auto;
  std::string output_namespace = {};    ///< Namespace of the result documents; empty: "results".
  std::uint32_t output_buckets = 0;     ///< Buckets of the results; 0: the cluster chooses.
  std::uint32_t visitors_per_node = 0;  ///< Map tasks at a time on a storage node; 0: the cluster chooses.
};

// --- What is known of a job

enum class JobState : std::uint8_t { Queued, Running, Paused, Orphaned, Done, Failed, Cancelled };
std::string_view to_string(JobState state);

/// One pass of a job. The figures of a pass that has not begun are 0.
struct JobPassInfo {
  std::string state;  ///< "waiting", "map", "reduce", "put", ... "done"
  std::string application;
  std::string type;  ///< Empty: the pass reads the rows of the one before.
  std::string selection;
  std::map<std::string, std::string> parameters;
  JobTarget into;
  JobShuffle shuffle = JobShuffle::Auto;  ///< Auto until the pass has begun.
  std::uint64_t map_tasks = 0;            ///< One for each bucket.
  std::uint64_t map_tasks_done = 0;
  std::uint64_t reduce_tasks = 0;
  std::uint64_t reduce_tasks_done = 0;
  std::uint64_t tasks_repeated = 0;
  std::uint64_t documents_read = 0;
  std::uint64_t documents_reused = 0;  ///< Part of documents_read that an earlier run of the job had read.
  std::uint64_t bytes_read = 0;
  std::uint64_t dead_letters = 0;  ///< Documents that the map function failed on.
  std::uint64_t tuples = 0;
  std::uint64_t tuple_documents = 0;
  std::uint64_t sent_bytes = 0;     ///< Bytes of tuples.
  std::uint64_t spilled_bytes = 0;  ///< Bytes on disk of tasks whose groups did not fit into memory.
  std::uint64_t results = 0;
  std::uint64_t documents_put = 0;      ///< Rows stored as documents of JobPassInfo::into.
  std::uint64_t documents_removed = 0;  ///< Documents of an earlier run whose rows no longer exist.
};

struct JobInfo {
  std::string id;
  JobState state = JobState::Queued;
  std::string phase;  ///< "map", "reduce", "put", ...
  Status error;       ///< Error of a failed job.
  std::vector<JobPassInfo> passes;
  std::size_t passes_done = 0;
  bool is_chain = false;                        ///< Submitted as a list of passes.
  double fraction_done = 0;                     ///< 0 to 1.
  Duration left{0};                             ///< Estimated remaining time of the phase; 0: no estimate.
  Duration left_error{0};                       ///< Estimated error of `left`.
  std::string bound_by;                         ///< The resource or limit that the job waits for most.
  std::uint64_t dead_letters = 0;               ///< Documents that the map function failed on, in all passes.
  std::map<std::string, std::string> settings;  ///< Settings in force.
  std::string output_namespace;
  std::string owner;             ///< "distributor.1"
  bool is_live = false;          ///< The owner has answered; else the figures come from the job's record.
  bool has_record = false;       ///< The job survives the end of its owner.
  std::uint64_t taken_over = 0;  ///< Times that another process has taken the job over.
  Duration busy{0};              ///< Time that tasks spent in map and reduce.
  Duration processor{0};         ///< Processor time of the tasks; 0: the job has no cpu_max.
  std::int64_t submitted_unix_us = 0;
  std::int64_t finished_unix_us = 0;       ///< 0: the job has not ended.
  std::int64_t results_until_unix_us = 0;  ///< When the results are removed; 0: never, or there are none.
  bool results_removed = false;

  bool has_ended() const { return state >= JobState::Done; }
  /// The pass that runs, or the last one of a job that has ended.
  const JobPassInfo& current() const { return passes[passes_done < passes.size() ? passes_done : passes.size() - 1]; }
  std::uint64_t documents_read() const;  ///< Returns the documents read in all passes.
};

/// A document that the map function of a job failed on.
struct JobDeadLetter {
  std::string document;  ///< Id of the document.
  std::string error;
};

/// A result of a job.
struct JobRow {
  std::string key;
  std::string value;  ///< A JSON text.
  friend bool operator==(const JobRow&, const JobRow&) = default;
};

/// The results of a job that is Done, by rising key:
///
///     fjord::JobRows rows = client.jobs().results(id);
///     for (const fjord::JobRow& row : rows) use(row.key, row.value);
///     if (!rows.status()) complain(rows.status());
///
/// next() blocks now and then to read some 16 MiB of them. Results in the store are not in order there, so all of them
/// are read for each such part.
///
/// Threading: one thread at a time. Lifetime: the client must outlive it.
class JobRows {
 public:
  JobRows(ClientCore& core, std::string id) : core_(&core), id_(std::move(id)) {}

  /// Returns the next result; null at the end and after an error. Valid until the next call.
  const JobRow* next();
  /// Returns OK, or the error of the reading. Errors: InvalidArgument if the job is not Done; NotFound if there is no
  /// such job, or its results were removed.
  const Status& status() const { return status_; }

  using Iterator = NextIterator<JobRows, JobRow>;
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

 private:
  void read();

  ClientCore* core_;
  std::string id_;
  Status status_;
  std::shared_ptr<JobResultReader> reader_;  ///< Null until the first call of next().
  std::vector<JobRow> rows_;                 ///< Results that were read.
  std::size_t next_ = 0;
  bool is_over_ = false;
};

// --- Calls

/// Callbacks of Jobs::run(), on the calling thread.
struct JobCallbacks {
  std::function<void(const std::string& id)> on_submitted = {};
  std::function<void(const JobInfo&)> on_progress = {};  ///< About twice a second, and at the end.
  std::stop_token stop = {};                             ///< A stop request cancels the job.
};

/// MapReduce jobs of a cluster.
///
/// Threading: any thread. Every member blocks until the cluster answers. Lifetime: the client must outlive it.
class Jobs {
 public:
  explicit Jobs(ClientCore& core) : core_(&core) {}

  /// Starts a job and returns its id. The job does not depend on the calling program.
  /// Errors: InvalidArgument, UnknownType, InvalidSelection, which name the faulty part of the request.
  Result<std::string> submit(const JobRequest& request);
  /// Starts a job and waits until it has ended. If its distributor ends before it has recorded the job, the job is
  /// submitted again under the same id. A failed job is a value with JobInfo::error set. Errors: those of submit() and
  /// wait(); Cancelled after a stop request.
  Result<JobInfo> run(const JobRequest& request, const JobCallbacks& callbacks = {});
  /// Waits until the job has ended and calls `on_progress` about twice a second. A failed job is a value with
  /// JobInfo::error set. A stop request ends the wait, and the job goes on. Errors: NotFound; Cancelled after a stop
  /// request; those of the calls that ask for the job.
  Result<JobInfo> wait(const std::string& id, const std::function<void(const JobInfo&)>& on_progress = {},
                       const std::stop_token& stop = {});

  /// Returns all jobs, oldest first. Errors: that of a distributor that does not answer, because an incomplete list
  /// would look complete.
  Result<std::vector<JobInfo>> list();
  /// Errors: NotFound.
  Result<JobInfo> status(const std::string& id);
  JobRows results(const std::string& id) { return JobRows(*core_, id); }
  /// Errors: NotFound.
  Result<std::vector<JobDeadLetter>> dead_letters(const std::string& id);

  // Errors of the following members: NotFound; InvalidArgument if the job's state does not permit the call.

  Status pause(const std::string& id);
  Status resume(const std::string& id);
  Status cancel(const std::string& id);
  /// Changes settings of a job, also while it runs. Errors: InvalidArgument with Status::setting().
  Status set(const std::string& id, const std::map<std::string, std::string>& settings);
  /// Removes an ended job with its record and its results.
  Status remove(const std::string& id);
  /// Removes the results of an ended job; the job stays in the list.
  Status remove_results(const std::string& id);

 private:
  ClientCore* core_;
};

}  // namespace fjord
