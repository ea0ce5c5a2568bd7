#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "record/job_record_writer.h"
#include "runner/job_runner.h"
#include "service_context.h"

namespace fjord::mapreduce {

/// A job of this process.
struct LocalJob {
  struct Waiter {
    rpc::ListJobs request;
    rpc::Responder respond;
  };

  JobState state;         ///< Out of date while there is a runner, which has the current state.
  std::string waits_for;  ///< What the job waits for; shown to users while it has no runner.
  std::unique_ptr<JobRunner> runner;
  std::shared_ptr<JobRecordWriter> writer;  ///< Keeps the job's record, if the job gets one.
  std::uint64_t number = 0;                 ///< Unique in this process, even among jobs with the same id.
  JobRows rows;
  std::size_t row_bytes = 0;
  bool has_rows = false;
  /// Results are being stored beside the record; the record says "done" only after that.
  bool are_rows_on_the_way = false;
  std::map<std::uint64_t, Waiter> waiters;  ///< Calls of listJobs that wait for the end of the job.
  /// Calls of submitJob that wait for the first write of the record.
  std::vector<std::pair<rpc::JobSpec, rpc::Responder>> submitters;
};

/// The jobs of this process: running, queued, and those that ended last, with their results as long as these fit into
/// memory.
///
/// Threading: confined to the service's executor.
class JobTable {
 public:
  using Jobs = std::map<std::string, LocalJob>;

  explicit JobTable(const JobServiceOptions& options) : options_(options) {}

  Jobs& jobs() { return jobs_; }
  const Jobs& jobs() const { return jobs_; }
  bool contains(const std::string& id) const { return jobs_.contains(id); }
  LocalJob& at(const std::string& id) { return jobs_.at(id); }
  const LocalJob& at(const std::string& id) const { return jobs_.at(id); }
  /// Returns null if there is no such job.
  LocalJob* find(const std::string& id);
  /// Returns null if that job is not here any more.
  LocalJob* find(const std::string& id, std::uint64_t number);
  LocalJob& add(JobState state);
  /// Takes a job out of the table.
  Jobs::node_type extract(const std::string& id);

  /// Number of jobs that run and are not paused.
  std::size_t running() const;

  /// Keeps the results of `job` in memory and drops those of the oldest jobs if all together exceed the limit.
  void keep_rows(LocalJob& job, JobRows rows);
  void forget_rows(LocalJob& job);
  /// Notes that a job has ended. forget_oldest() then forgets one if there are too many.
  void note_ended(const std::string& id) { ended_.push_back(id); }
  void forget_oldest();

 private:
  const JobServiceOptions& options_;
  Jobs jobs_;
  std::deque<std::string> ended_;  ///< Ids of ended jobs, in the order in which they ended.
  std::uint64_t next_number_ = 1;
  std::size_t rows_bytes_ = 0;
};

}  // namespace fjord::mapreduce
