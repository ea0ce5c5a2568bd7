#include "fjord/mapreduce/job_service.h"

#include <utility>

#include "job_control.h"
#include "job_submission.h"
#include "other_jobs.h"

namespace fjord::mapreduce {

/// Makes the parts of the service and connects them. Threading: confined to `executor_`, except post().
class JobService::Impl {
 public:
  Impl(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport, rpc::SnapshotHolder& snapshot,
       const ApplicationRegistry& applications, JobRecords& records)
      : executor_(runtime.scheduler.make_interactive_executor("jobs")),
        context_(options, runtime, transport, snapshot, applications, records, *executor_),
        table_(context_.options),
        answers_(context_, table_),
        running_(context_, table_, answers_, runtime),
        removals_(context_, table_),
        submission_(context_, table_, running_),
        control_(context_, table_, running_, removals_),
        others_(context_, table_, running_, removals_) {
    others_.begin();
    running_.begin();
  }
  ~Impl() {
    context_.mailbox.close();
    end_executor(executor_);
    submission_.end();
    running_.abandon();
  }

  /// Calls `call(parts)` on the executor.
  template <typename F>
  void post(F call) {
    context_.mailbox.post([this, c = std::move(call)]() mutable { c(*this); });
  }
  JobAnswers& answers() { return answers_; }
  JobSubmission& submission() { return submission_; }
  JobControl& control() { return control_; }

 private:
  std::unique_ptr<Executor> executor_;
  ServiceContext context_;
  JobTable table_;
  JobAnswers answers_;
  RunningJobs running_;
  JobRemovals removals_;
  JobSubmission submission_;
  JobControl control_;
  OtherJobs others_;
};

JobService::JobService(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport,
                       rpc::SnapshotHolder& snapshot, const ApplicationRegistry& applications, JobRecords& records)
    : impl_(std::make_unique<Impl>(options, runtime, transport, snapshot, applications, records)) {}

JobService::~JobService() = default;

bool JobService::handle(rpc::Request& request, rpc::Responder& respond) {
  if (auto* submit = std::get_if<rpc::SubmitJob>(&request)) {
    impl_->post([taken = std::move(*submit), answer = std::move(respond)](Impl& impl) mutable {
      impl.submission().submit(taken, std::move(answer));
    });
  } else if (auto* list = std::get_if<rpc::ListJobs>(&request)) {
    impl_->post([taken = *list, answer = std::move(respond)](Impl& impl) mutable {
      impl.answers().list(taken, std::move(answer));
    });
  } else if (auto* cancel = std::get_if<rpc::CancelJob>(&request)) {
    rpc::ControlJob control;
    control.job_id = cancel->job_id;
    control.action = rpc::JobAction::Cancel;
    impl_->post([control, answer = std::make_shared<rpc::Responder>(std::move(respond))](Impl& impl) {
      impl.control().control(control, [answer](Status status) { (*answer)(rpc::CancelJobReply{std::move(status)}); });
    });
  } else if (auto* control = std::get_if<rpc::ControlJob>(&request)) {
    impl_->post([taken = *control, answer = std::make_shared<rpc::Responder>(std::move(respond))](Impl& impl) {
      impl.control().control(taken, [answer](Status status) { (*answer)(rpc::ControlJobReply{std::move(status)}); });
    });
  } else {
    return false;
  }
  return true;
}

}  // namespace fjord::mapreduce
