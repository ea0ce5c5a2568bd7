#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fjord/mapreduce/job_service.h"
#include "fjord/tuner/controllers.h"
#include "fjord/visitors/mailbox.h"
#include "record/job_record_writer.h"
#include "runner/job_runner.h"

namespace fjord::mapreduce {

struct JobMetrics {
  explicit JobMetrics(MetricRegistry& registry)
      : submitted(registry.counter("fjord_job_submitted_total", "Jobs accepted.")),
        done(registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "done"}})),
        failed(registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "failed"}})),
        cancelled(
            registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "cancelled"}})),
        running(registry.gauge("fjord_job_running", "Jobs under way.")),
        taken_over(registry.counter("fjord_job_taken_over_total", "Jobs of other processes that go on here.")),
        lost(registry.counter("fjord_job_lost_total", "Jobs that another process has taken over.")),
        dead_letters(registry.counter("fjord_job_dead_letters_total", "Documents that map functions failed on.")),
        share(
            registry.gauge("fjord_job_share_percent", "Of their tasks that jobs may run for the foreground's sake.")) {}
  Counter& submitted;
  Counter& done;
  Counter& failed;
  Counter& cancelled;
  Gauge& running;
  Counter& taken_over;
  Counter& lost;
  Counter& dead_letters;
  Gauge& share;
};

/// Threading: confined to `executor_`, except post().
class JobService::Impl {
 public:
  Impl(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport, rpc::SnapshotHolder& snapshot,
       const ApplicationRegistry& applications, JobRecords& records);
  ~Impl() {
    mailbox_.close();
    end_executor(executor_);
    for (auto& [id, job] : jobs_) {
      if (job.runner != nullptr) job.runner->abandon();
    }
    long_executors_.clear();
  }

  void post(Task task) { mailbox_.post(std::move(task)); }
  /// `covered`: number of passes, from the first, whose applications the storage nodes were already asked about.
  void submit(const rpc::SubmitJob& request, rpc::Responder respond, std::size_t covered = 0);
  void list(const rpc::ListJobs& request, rpc::Responder respond);
  void control(const rpc::ControlJob& request, UniqueFunction<void(Status)> done);

 private:
  struct Waiter {
    rpc::ListJobs request;
    rpc::Responder respond;
  };
  struct Job {
    JobState state;         ///< Not current while there is a runner: then the runner's state counts.
    std::string waits_for;  ///< Shown while there is no runner.
    std::unique_ptr<JobRunner> runner;
    std::shared_ptr<JobRecordWriter> writer;  ///< Keeps the job's record, if the job gets one.
    std::uint64_t number = 0;                 ///< Unique in this process, even among jobs with the same id.
    JobRows rows;
    std::size_t row_bytes = 0;
    bool has_rows = false;
    /// Results are being stored beside the record, which says "done" only after that.
    bool are_rows_on_the_way = false;
    std::map<std::uint64_t, Waiter> waiters;
  };
  /// State of another process's job at the last scan.
  struct Seen {
    std::uint64_t epoch = 0;
    std::uint64_t revision = 0;
    MonotonicTime since;
  };
  using Headers = std::vector<JobRecordHeader>;

  // Answers.
  rpc::ListJobsReply answer_to(const rpc::ListJobs& request) const;
  void list_records(const rpc::ListJobs& request, rpc::Responder respond);
  void read_record(const rpc::ListJobs& request, rpc::Responder respond);
  /// True if results of the job, which ended here, can only be stored beside its record.
  static bool has_kept_rows(const Job& job);
  void read_kept_rows(const rpc::ListJobs& request, rpc::Responder respond);
  static void add_rows(const rpc::ListJobs& request, const JobRows& rows, rpc::ListJobsReply& reply);
  JobAnswerOptions answer_options(const rpc::ListJobs& request, const JobOutlook* outlook) const;
  /// Returns the answer about a job of this process.
  rpc::JobStatus status_of(const Job& job, const rpc::ListJobs& request) const;
  void keep_rows(Job& job);
  void forget_rows(Job& job);

  // Jobs.
  Job& add(JobState state, bool is_recorded);
  /// Returns the content that the job's record should have.
  JobState record_of(const Job& job) const;
  void make_writer(const std::string& id, Job& job, std::uint64_t revision);
  /// Returns null if that job is not here any more.
  Job* find(const std::string& id, std::uint64_t number);
  void save(const std::string& id, std::function<void()> then = {});
  void wanted(const std::string& id, const JobState& record);
  void lost(const std::string& id, const JobState& record);
  Status apply(Job& job, const std::string& id, const rpc::ControlJob& request);
  void control_record(const rpc::ControlJob& request, UniqueFunction<void(Status)> done);
  std::size_t running() const;
  void start_queued();
  void start(const std::string& id);
  /// Runs a long task on a thread of its own.
  void run_long(Task task);
  bool may_be_lost(const Job& job) const;
  void stand_down(const std::string& id, Job& job);
  void on_finished(const std::string& id);
  void over(const std::string& id, Job& job);
  void forget_oldest();

  // Jobs of other processes.
  void scan_later(Duration wait);
  void scan();
  void on_scanned(const Headers& records);
  void end_elsewhere(const JobRecordHeader& record, const Job& job);
  bool has_no_owner(const JobRecordHeader& record);
  void take_over(const std::string& id, std::uint64_t revision);
  void taken(JobState record);
  void expire(const Headers& records);

  // Removing ended jobs and their results (job_service_results.cpp).
  void remove(const rpc::ControlJob& request, UniqueFunction<void(Status)> done);
  void mark_removed(JobState record, bool whole);
  void remove_results(const JobState& record, bool whole);
  void remove_rest(const JobState& record, bool whole, const Status& status);
  void removed(const std::string& id, const Status& status);
  bool is_responsible_for(const std::string& id, const std::string& owner) const;
  void remove_expired(const JobRecordHeader& record, rpc::JobAction action);

  void renew_later();
  void guard_later();
  void guard();

  JobServiceOptions options_;
  Clock& clock_;
  Scheduler& scheduler_;
  BulkExecutor& bulk_;
  rpc::Transport& transport_;
  rpc::SnapshotHolder& snapshot_;
  const ApplicationRegistry& applications_;
  JobRecords& records_;
  Random random_;
  JobMetrics metrics_;
  Tunable& task_memory_;
  Tunable& job_memory_;
  Tunable& p99_target_;
  Tunable& results_retention_;
  HistogramPeriod foreground_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::unique_ptr<Executor>> long_executors_;  ///< One per task that run_long() ran at the same time.
  std::vector<Executor*> idle_executors_;                  ///< Members of `long_executors_` without a task.
  visitors::Mailbox mailbox_;
  const std::uint64_t own_id_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, std::vector<std::pair<rpc::JobSpec, rpc::Responder>>> submitting_;
  std::deque<std::string> queue_;
  std::deque<std::string> finished_;
  std::map<std::string, Seen> seen_;
  std::set<std::string> taking_;
  /// An ended job that is being removed, entirely or only its results.
  struct Removal {
    std::vector<UniqueFunction<void(Status)>> waiting;
    std::unique_ptr<visitors::VisitorSession> session;
  };
  std::map<std::string, Removal> removals_;
  std::set<std::string> expired_;  ///< Jobs whose results are known to be removed.
  std::uint64_t next_number_ = 1;
  std::uint64_t next_waiter_ = 1;
  std::size_t rows_bytes_ = 0;
  bool guarding_ = false;
  std::int64_t share_percent_ = 100;
  std::optional<tuner::YieldController> yield_;
  double yield_target_s_ = 0;
};

}  // namespace fjord::mapreduce
