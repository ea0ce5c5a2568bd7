#pragma once

#include <deque>
#include <functional>
#include <string>

#include "foreground_guard.h"
#include "job_answers.h"
#include "job_table.h"
#include "long_tasks.h"

namespace fjord::mapreduce {

/// Runs the jobs of this process, queues those beyond the limit, and keeps their records.
///
/// Threading: confined to the service's executor. Lifetime: the arguments of the constructor outlive it.
class RunningJobs {
 public:
  RunningJobs(ServiceContext& context, JobTable& table, JobAnswers& answers, Runtime& runtime)
      : context_(context), table_(table), answers_(answers), long_tasks_(context), guard_(context, table, runtime) {}

  /// Begins to renew records.
  void begin() { renew_later(); }
  /// Ends all jobs without any message, because the executor is gone.
  void abandon();

  /// Adds a job that does not run yet. `revision`: that of its record; 0: it has none.
  LocalJob& add(JobState state, std::uint64_t revision);
  /// Runs the job as soon as fewer than JobServiceOptions::running_max run.
  void enqueue(const std::string& id);
  /// Returns the content that the job's record should have.
  JobState record_of(const LocalJob& job) const;
  /// Applies a request to a job that has not ended. Errors: InvalidArgument.
  Status apply(LocalJob& job, const std::string& id, const rpc::ControlJob& request);
  void save(const std::string& id, std::function<void()> then = {}) { table_.at(id).writer->save(std::move(then)); }

 private:
  void make_writer(const std::string& id, LocalJob& job, std::uint64_t revision);
  void wanted(const std::string& id, const JobState& record);
  void lost(const std::string& id, const JobState& record);
  void cancel(LocalJob& job, const std::string& id);
  void start_queued();
  void start(const std::string& id);
  RunnerCallbacks callbacks_for(const std::string& id, std::uint64_t number);
  bool may_be_lost(const LocalJob& job) const;
  void stand_down(const std::string& id, LocalJob& job);
  void on_finished(const std::string& id);
  void over(const std::string& id, LocalJob& job);
  void record_end(const std::string& id, LocalJob& job);
  void renew_later();

  ServiceContext& context_;
  JobTable& table_;
  JobAnswers& answers_;
  LongTasks long_tasks_;
  ForegroundGuard guard_;
  std::deque<std::string> queue_;
};

}  // namespace fjord::mapreduce
