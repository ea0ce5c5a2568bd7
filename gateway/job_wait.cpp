#include "job_wait.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fjord::gateway {
namespace {

constexpr Duration kCallTimeout = seconds(2);
constexpr Duration kAskMax = milliseconds(500);  ///< Longest time for which one question waits for the end of the job.
constexpr Duration kPause = milliseconds(100);
constexpr Duration kErrorsMax = seconds(10);  ///< Errors are retried for this long after the last answer.

}  // namespace

JobWait::JobWait(Client& client, std::shared_ptr<Inbox> inbox, Clock& clock, std::string job,
                 std::optional<rpc::JobSpec> spec)
    : client_(client), inbox_(std::move(inbox)), clock_(clock), job_(std::move(job)), spec_(std::move(spec)) {}

void JobWait::start(Duration timeout, Done done) {
  done_ = std::move(done);
  answered_ = clock_.now();
  deadline_ = answered_ + timeout;
  inbox_->post_after(timeout, [weak = weak_from_this(), job = job_] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->finish(self->last_ ? Result<rpc::JobStatus>(*self->last_)
                             : Status(StatusCode::Timeout, fmt::format("no distributor has answered about {}", job)));
  });
  ask();
}

void JobWait::ask() {
  if (!done_) return;
  rpc::ListJobs request;
  request.job_id = job_;
  // The first question asks for an answer at once, so that a status is known by the deadline.
  if (last_) request.wait_us = std::clamp<Duration>(deadline_ - clock_.now(), Duration(0), kAskMax).count();
  request.records = with_records_;
  ask_for_job(client_.core().connection(), std::move(request), kCallTimeout,
              [self = shared_from_this()](Result<rpc::ListJobsReply> reply) {
                auto answer = std::make_shared<Result<rpc::ListJobsReply>>(std::move(reply));
                Inbox& inbox = *self->inbox_;
                inbox.post([self, answer] { self->on_answer(std::move(*answer)); });
              });
}

void JobWait::ask_later() {
  inbox_->post_after(kPause, [self = shared_from_this()] { self->ask(); });
}

void JobWait::on_answer(Result<rpc::ListJobsReply> reply) {
  if (!done_) return;
  if (reply) {
    answered_ = clock_.now();
    last_ = std::move(reply->jobs.front());
    if (has_ended(*last_)) return finish(*last_);
    // No process runs the job until a distributor takes it over.
    with_records_ = !last_->live;
    return last_->live ? ask() : ask_later();
  }
  if (!with_records_) {
    with_records_ = true;
    return ask();
  }
  with_records_ = false;
  if (reply.error().code() == StatusCode::NotFound && spec_) return submit_again();
  if (clock_.now() - answered_ > kErrorsMax) return finish(reply.error());
  ask_later();
}

void JobWait::submit_again() {
  client_.core().client().call_any(rpc::SubmitJob{job_, *spec_}, kCallTimeout,
                                   [self = shared_from_this()](const Result<rpc::SubmitJobReply>&) {
                                     self->inbox_->post([self] { self->ask_later(); });
                                   });
}

void JobWait::finish(Result<rpc::JobStatus> result) {
  if (done_) std::exchange(done_, {})(std::move(result));
}

}  // namespace fjord::gateway
