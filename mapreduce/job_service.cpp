#include "fjord/mapreduce/job_service.h"

#include <deque>
#include <map>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/document/selection.h"
#include "fjord/mapreduce/task_visitors.h"
#include "fjord/visitors/mailbox.h"
#include "job_runner.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint32_t kOutputBucketsMax = 1024;
constexpr std::uint32_t kVisitorsMax = 1024;

bool is_over(rpc::JobPhase phase) {
  return phase == rpc::JobPhase::Done || phase == rpc::JobPhase::Failed || phase == rpc::JobPhase::Cancelled;
}

struct JobMetrics {
  explicit JobMetrics(MetricRegistry& registry)
      : submitted(registry.counter("fjord_job_submitted_total", "Jobs accepted.")),
        done(registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "done"}})),
        failed(registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "failed"}})),
        cancelled(
            registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "cancelled"}})),
        running(registry.gauge("fjord_job_running", "Jobs under way.")) {}
  Counter& submitted;
  Counter& done;
  Counter& failed;
  Counter& cancelled;
  Gauge& running;
};

}  // namespace

Status check_job(const std::string& job_id, const rpc::JobSpec& spec, const ApplicationRegistry& applications,
                 const DocumentTypeRepo& types) {
  if (!is_plain_name(job_id)) {
    return Status(StatusCode::InvalidArgument,
                  "a job id is 1 to 64 letters, digits, dots, minuses and underscores, not \"" + job_id + "\"");
  }
  const DocumentType* type = types.find(spec.document_type);
  if (type == nullptr) {
    std::string known;
    for (const auto& other : types.types()) known += (known.empty() ? "" : ", ") + other->name();
    return Status(StatusCode::UnknownType,
                  "there is no document type \"" + spec.document_type + "\"; there are: " + known);
  }
  FJORD_TRY_ASSIGN(const auto application, applications.create(spec.application, spec.parameters, *type, &types));
  FJORD_TRY_ASSIGN(const Selection selection, Selection::parse(spec.selection, types));
  if (!spec.output_namespace.empty() && !is_plain_name(spec.output_namespace)) {
    return Status(StatusCode::InvalidArgument, "no namespace: \"" + spec.output_namespace + "\"");
  }
  if (spec.output_buckets > kOutputBucketsMax || spec.visitors_per_node > kVisitorsMax) {
    return Status(StatusCode::InvalidArgument, "at most 1024 output buckets and 1024 visitors per node");
  }
  return Status::ok();
}

/// Confined to `executor_`, but for the first lines of handle().
class JobService::Impl {
 public:
  Impl(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport, rpc::SnapshotHolder& snapshot,
       const ApplicationRegistry& applications)
      : options_(options),
        clock_(runtime.clock),
        bulk_(runtime.bulk),
        transport_(transport),
        snapshot_(snapshot),
        applications_(applications),
        random_(runtime.random.fork()),
        metrics_(runtime.metrics),
        task_memory_(task_memory_tunable(runtime.tunables)),
        job_memory_(runtime.tunables.declare(
            {.name = "mapreduce.job_memory_bytes",
             .unit = Unit::Bytes,
             .default_value = std::int64_t{256} << 20,
             .min = std::int64_t{4} << 10,
             .max = std::int64_t{64} << 30,
             .help = "The most that groups and results of one job take in the distributor process that runs it. A job "
                     "that needs more goes through the store."})),
        executor_(runtime.scheduler.make_executor("jobs")),
        mailbox_(*executor_) {}
  ~Impl() {
    mailbox_.close();
    executor_.reset();
    for (auto& [id, job] : jobs_) {
      if (job.runner != nullptr) job.runner->abandon();
    }
  }

  void post(Task task) { mailbox_.post(std::move(task)); }

  Status submit(const rpc::SubmitJob& request) {
    if (const auto it = jobs_.find(request.job_id); it != jobs_.end()) {
      if (it->second.status.spec == request.spec) return Status::ok();
      return Status(StatusCode::AlreadyExists, "there is another job " + request.job_id);
    }
    const auto snapshot = snapshot_.get();
    if (snapshot == nullptr) return Status(StatusCode::NotReady, "this distributor has no cluster state yet");
    FJORD_TRY(check_job(request.job_id, request.spec, applications_, *snapshot->types()));
    Job& job = jobs_[request.job_id];
    job.status.job_id = request.job_id;
    job.status.spec = request.spec;
    job.status.phase = rpc::JobPhase::Queued;
    job.status.submitted_unix_us = clock_.wall_now().us;
    queue_.push_back(request.job_id);
    metrics_.submitted.add();
    start_queued();
    return Status::ok();
  }

  void list(const rpc::ListJobs& request, rpc::Responder respond) {
    const auto it = request.job_id.empty() ? jobs_.end() : jobs_.find(request.job_id);
    if (request.wait_us <= 0 || it == jobs_.end() || is_over(it->second.status.phase)) {
      respond(answer_to(request));
      return;
    }
    const std::uint64_t number = next_waiter_++;
    it->second.waiters.emplace(number, Waiter{request, std::move(respond)});
    executor_->post_after(std::min(Duration(request.wait_us), options_.wait_max), [this, id = request.job_id, number] {
      const auto job = jobs_.find(id);
      if (job == jobs_.end()) return;
      if (auto waiter = job->second.waiters.extract(number))
        waiter.mapped().respond(answer_to(waiter.mapped().request));
    });
  }

  Status cancel(const std::string& job_id) {
    const auto it = jobs_.find(job_id);
    if (it == jobs_.end()) return Status(StatusCode::NotFound, "there is no job " + job_id + " at this distributor");
    Job& job = it->second;
    if (job.runner != nullptr) {
      job.runner->cancel();
    } else if (!is_over(job.status.phase)) {
      std::erase(queue_, job_id);
      job.status.phase = rpc::JobPhase::Cancelled;
      job.status.error = Status(StatusCode::Cancelled, "the job was cancelled before it began");
      over(job_id, job);
    }
    return Status::ok();
  }

 private:
  struct Waiter {
    rpc::ListJobs request;
    rpc::Responder respond;
  };
  struct Job {
    rpc::JobStatus status;  ///< While there is a runner, its status counts.
    std::unique_ptr<JobRunner> runner;
    JobRows rows;
    std::size_t row_bytes = 0;
    bool has_rows = false;
    std::map<std::uint64_t, Waiter> waiters;
  };

  rpc::ListJobsReply answer_to(const rpc::ListJobs& request) const {
    rpc::ListJobsReply reply;
    for (const auto& [id, job] : jobs_) {
      if (request.job_id.empty() || request.job_id == id) reply.jobs.push_back(status_of(job));
    }
    if (request.job_id.empty() || reply.jobs.empty() || request.results_bytes_max == 0) return reply;
    const Job& job = jobs_.at(request.job_id);
    if (job.status.phase != rpc::JobPhase::Done || job.status.shuffle != rpc::Shuffle::Direct) return reply;
    if (!job.has_rows) {
      reply.status = Status(StatusCode::NotFound, "the results of " + request.job_id + " are not held any more");
      return reply;
    }
    std::size_t bytes = 0;
    std::uint64_t at = request.results_from;
    for (; at < job.rows.size(); ++at) {
      const auto& [key, value] = job.rows[static_cast<std::size_t>(at)];
      bytes += key.size() + value.size() + sizeof(rpc::Parameter);  // rows are short, so that counts
      if (bytes > request.results_bytes_max && !reply.results.empty()) break;
      reply.results.push_back({key, value});
    }
    reply.more_results = at < job.rows.size();
    return reply;
  }

  /// The results of `job` are kept; older ones go if there are too many.
  void keep_rows(Job& job) {
    job.rows = job.runner->take_rows();
    job.has_rows = true;
    for (const auto& [key, value] : job.rows) job.row_bytes += key.size() + value.size() + sizeof(job.rows[0]);
    rows_bytes_ += job.row_bytes;
    for (const std::string& id : finished_) {
      if (rows_bytes_ <= options_.results_kept_bytes) break;
      forget_rows(jobs_.at(id));
    }
  }
  void forget_rows(Job& job) {
    rows_bytes_ -= std::exchange(job.row_bytes, 0);
    job.rows = {};
    job.has_rows = false;
  }

  /// A job whose runner has ended is not over before its results can be asked for.
  static rpc::JobStatus status_of(const Job& job) {
    if (job.runner == nullptr) return job.status;
    rpc::JobStatus status = job.runner->status();
    if (is_over(status.phase)) status.phase = rpc::JobPhase::CleanUp;
    return status;
  }

  void start_queued() {
    while (!queue_.empty() && running_ < options_.running_max) {
      const std::string id = queue_.front();
      queue_.pop_front();
      Job& job = jobs_.at(id);
      ++running_;
      const RunnerEnvironment environment{options_,
                                          clock_,
                                          transport_,
                                          snapshot_,
                                          *executor_,
                                          bulk_,
                                          static_cast<std::uint64_t>(task_memory_.value()),
                                          static_cast<std::uint64_t>(job_memory_.value()),
                                          applications_};
      job.runner = std::make_unique<JobRunner>(job.status, environment, random_.fork(), [this, id] {
        // Not inside the runner that is about to be destroyed.
        mailbox_.post([this, id] { on_finished(id); });
      });
      job.runner->start();
    }
    metrics_.running.set(running_);
  }

  void on_finished(const std::string& id) {
    Job& job = jobs_.at(id);
    job.status = job.runner->status();
    if (job.status.phase == rpc::JobPhase::Done && job.status.shuffle == rpc::Shuffle::Direct) keep_rows(job);
    job.runner.reset();
    --running_;
    over(id, job);
    start_queued();
  }

  void over(const std::string& id, Job& job) {
    job.status.finished_unix_us = clock_.wall_now().us;
    (job.status.phase == rpc::JobPhase::Done     ? metrics_.done
     : job.status.phase == rpc::JobPhase::Failed ? metrics_.failed
                                                 : metrics_.cancelled)
        .add();
    if (!job.status.error) log::info("job", "{} ended: {}", id, job.status.error.to_string());
    for (auto& [number, waiter] : std::exchange(job.waiters, {})) waiter.respond(answer_to(waiter.request));
    finished_.push_back(id);
    if (finished_.size() > options_.finished_kept) {
      forget_rows(jobs_.at(finished_.front()));
      jobs_.erase(finished_.front());
      finished_.pop_front();
    }
  }

  JobServiceOptions options_;
  Clock& clock_;
  BulkExecutor& bulk_;
  rpc::Transport& transport_;
  rpc::SnapshotHolder& snapshot_;
  const ApplicationRegistry& applications_;
  Random random_;
  JobMetrics metrics_;
  Tunable& task_memory_;
  Tunable& job_memory_;
  std::unique_ptr<Executor> executor_;
  visitors::Mailbox mailbox_;
  std::map<std::string, Job> jobs_;
  std::deque<std::string> queue_;
  std::deque<std::string> finished_;
  unsigned running_ = 0;
  std::uint64_t next_waiter_ = 1;
  std::size_t rows_bytes_ = 0;
};

JobService::JobService(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport,
                       rpc::SnapshotHolder& snapshot, const ApplicationRegistry& applications)
    : impl_(std::make_unique<Impl>(options, runtime, transport, snapshot, applications)) {}

JobService::~JobService() = default;

bool JobService::handle(rpc::Request& request, rpc::Responder& respond) {
  Impl* impl = impl_.get();
  if (auto* submit = std::get_if<rpc::SubmitJob>(&request)) {
    impl->post([impl, taken = std::move(*submit), answer = std::move(respond)] {
      answer(rpc::SubmitJobReply{impl->submit(taken), taken.job_id});
    });
  } else if (auto* list = std::get_if<rpc::ListJobs>(&request)) {
    impl->post([impl, taken = *list, answer = std::move(respond)]() mutable { impl->list(taken, std::move(answer)); });
  } else if (auto* cancel = std::get_if<rpc::CancelJob>(&request)) {
    impl->post(
        [impl, id = cancel->job_id, answer = std::move(respond)] { answer(rpc::CancelJobReply{impl->cancel(id)}); });
  } else {
    return false;
  }
  return true;
}

}  // namespace fjord::mapreduce
