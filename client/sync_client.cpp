#include "fjord/client/sync_client.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/common/idle_polling.h"
#include "fjord/common/run_inline.h"
#include "fjord/common/thread_annotations.h"

namespace fjord {

namespace {

/// Time for which a caller works for the client before it waits.
constexpr Duration kBeginBudget = milliseconds(1);

/// Holds the answer of one call for the thread that waits for it.
template <typename T>
class Slot {
 public:
  void set(T value) {
    std::lock_guard lock(mutex_);
    value_.emplace(std::move(value));
    ended_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
  void set_dropped() {
    std::lock_guard lock(mutex_);
    ended_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
  std::optional<T> wait() {
    thread_local IdlePolling idle;
    const auto ended = [this] { return ended_.load(std::memory_order_acquire); };
    idle.wait(ended, [&] {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, ended);
    });
    std::lock_guard lock(mutex_);
    return std::move(value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<T> value_ FJORD_GUARDED_BY(mutex_);
  std::atomic<bool> ended_{false};  ///< Written under the mutex: there is a value, or there will be none.
};

/// Callback that fills the slot. If it is destroyed without having run, it notifies the slot too, which ends the wait.
template <typename T>
class SlotWriter {
 public:
  explicit SlotWriter(std::shared_ptr<Slot<T>> slot) : slot_(std::move(slot)) {}
  SlotWriter(SlotWriter&&) noexcept = default;
  SlotWriter& operator=(SlotWriter&&) = delete;
  ~SlotWriter() {
    if (slot_) slot_->set_dropped();
  }
  void operator()(T value) { slot_->set(std::move(value)); }

 private:
  std::shared_ptr<Slot<T>> slot_;
};

/// Calls `start(callback)` and waits until the callback was called; empty if it was destroyed instead.
template <typename T, typename Start>
std::optional<T> blocking_call(const AsyncClient& client, Start start) {
  FJORD_CHECK_MSG(!client.executor().is_current(), "a blocking call on the executor that would end it");
  auto slot = std::make_shared<Slot<T>>();
  {
    // The caller is about to wait. A callback of another call that takes a lock of this caller would have to wait for
    // this call anyway.
    const InlineScope begins_here(kBeginBudget);
    start(SlotWriter<T>(slot));
  }
  return slot->wait();
}

Status dropped() { return Status(StatusCode::Cancelled, "the client was closed"); }

}  // namespace

OperationOutcome SyncClient::execute(rpc::Operation operation) {
  const bool is_write = operation.kind != rpc::OperationKind::Get;
  auto outcome = blocking_call<OperationOutcome>(
      client_, [&](auto done) { client_.execute(std::move(operation), timeout_, std::move(done)); });
  if (outcome) return std::move(*outcome);
  OperationOutcome unknown;
  unknown.status = dropped();
  unknown.outcome = is_write ? Outcome::InDoubt : Outcome::NotApplied;
  return unknown;
}

OperationOutcome SyncClient::get(std::string id) { return execute(get_operation(std::move(id))); }
OperationOutcome SyncClient::get_json(std::string id) { return execute(get_json_operation(std::move(id))); }
OperationOutcome SyncClient::put(std::string id, EncodedDocument document) {
  return execute(put_operation(std::move(id), std::move(document)));
}
OperationOutcome SyncClient::put_json(std::string id, std::string fields) {
  return execute(put_json_operation(std::move(id), std::move(fields)));
}
OperationOutcome SyncClient::update(const DocumentUpdate& update) { return execute(update_operation(update)); }
OperationOutcome SyncClient::update_json(std::string id, std::string changes) {
  return execute(update_json_operation(std::move(id), std::move(changes)));
}
OperationOutcome SyncClient::remove(std::string id) { return execute(remove_operation(std::move(id))); }

Status SyncClient::wait_ready() {
  return blocking_call<Status>(client_, [&](auto done) { client_.wait_ready(timeout_, std::move(done)); })
      .value_or(dropped());
}

Status SyncClient::refresh_schemas() {
  return blocking_call<Status>(client_, [&](auto done) { client_.refresh_schemas(timeout_, std::move(done)); })
      .value_or(dropped());
}

Result<rpc::DeploySchemasReply> SyncClient::deploy_schemas(std::vector<std::string> schemas,
                                                           std::vector<std::string> may_drop) {
  FJORD_TRY_ASSIGN(rpc::DeploySchemasReply reply,
                   call_any(rpc::DeploySchemas{std::move(schemas), std::move(may_drop)}));
  FJORD_TRY(reply.status);
  FJORD_TRY(blocking_call<Status>(client_, [&](auto done) {
              client_.wait_schema_version(reply.schema_version, timeout_, std::move(done));
            }).value_or(dropped()));
  return reply;
}

Result<rpc::GetStatusReply> SyncClient::status() {
  FJORD_TRY_ASSIGN(rpc::GetStatusReply reply, call_any(rpc::GetStatus{}));
  FJORD_TRY(reply.status);
  return reply;
}

Result<std::string> SyncClient::submit_job(rpc::JobSpec spec, std::string job_id) {
  if (job_id.empty()) job_id = client_.new_job_id();
  FJORD_TRY_ASSIGN(rpc::SubmitJobReply reply, call_any(rpc::SubmitJob{job_id, std::move(spec)}));
  FJORD_TRY(reply.status);
  return reply.job_id.empty() ? job_id : reply.job_id;
}

Result<std::vector<rpc::JobStatus>> SyncClient::list_jobs(std::string job_id) {
  FJORD_TRY_ASSIGN(std::vector<AsyncClient::Answer> answers,
                   call_all_request(rpc::ListJobs{.job_id = job_id, .records = true}));
  std::map<std::string, rpc::JobStatus> found;
  Status error;
  for (AsyncClient::Answer& answer : answers) {
    auto* reply = answer.reply ? std::get_if<rpc::ListJobsReply>(&*answer.reply) : nullptr;
    if (reply != nullptr && reply->status) {
      for (rpc::JobStatus& job : reply->jobs) {
        const auto [at, is_new] = found.try_emplace(job.job_id, job);
        if (!is_new && rpc::is_newer(job, at->second)) at->second = std::move(job);
      }
    } else if (reply == nullptr || reply->status.code() != StatusCode::NotFound) {
      error = (reply != nullptr ? reply->status : answer.reply.status()).with_context(answer.address);
    }
  }
  std::vector<rpc::JobStatus> jobs;
  for (auto& [id, job] : found) jobs.push_back(std::move(job));
  const bool is_found = !job_id.empty() && !jobs.empty();
  if (!error && !is_found) return error;
  std::sort(jobs.begin(), jobs.end(), [](const rpc::JobStatus& a, const rpc::JobStatus& b) {
    return std::tie(a.submitted_unix_us, a.job_id) < std::tie(b.submitted_unix_us, b.job_id);
  });
  return jobs;
}

Status SyncClient::cancel_job(std::string job_id) {
  rpc::ControlJob request;
  request.job_id = std::move(job_id);
  request.action = rpc::JobAction::Cancel;
  return control_job(std::move(request));
}

Status SyncClient::control_job(rpc::ControlJob request) {
  request.records = false;
  FJORD_TRY_ASSIGN(std::vector<AsyncClient::Answer> answers, call_all_request(request));
  for (const AsyncClient::Answer& answer : answers) {
    const Status& status = answer.reply ? rpc::status_of(*answer.reply) : answer.reply.error();
    if (status || status.code() == StatusCode::InvalidArgument) return status;
  }
  // No distributor that answered runs the job. Write the request into the job's record, where its next owner finds it.
  request.records = true;
  FJORD_TRY_ASSIGN(const rpc::ControlJobReply reply, call_any(std::move(request)));
  return reply.status;
}

Result<rpc::Reply> SyncClient::call_any_request(rpc::Request request) {
  auto reply = blocking_call<Result<rpc::Reply>>(
      client_, [&](auto done) { client_.call_any_request(std::move(request), timeout_, std::move(done)); });
  if (!reply) return dropped();
  return std::move(*reply);
}

Result<std::vector<AsyncClient::Answer>> SyncClient::call_all_request(rpc::Request request) {
  auto answers = blocking_call<Result<std::vector<AsyncClient::Answer>>>(
      client_, [&](auto done) { client_.call_all_request(std::move(request), timeout_, std::move(done)); });
  if (!answers) return dropped();
  return std::move(*answers);
}

}  // namespace fjord
