#include "admin_caller.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>
#include <variant>

#include "backoff.h"
#include "fjord/common/callback_guard.h"

namespace fjord {

namespace {

/// Returns whether the call was not executed and another distributor can execute it.
bool is_not_ready(const Result<rpc::Reply>& reply) {
  return (reply ? rpc::status_of(*reply).code() : reply.error().code()) == StatusCode::NotReady;
}

}  // namespace

AdminCaller::AdminCaller(std::shared_ptr<const ClientOptions> options, const Clock& clock, Random random,
                         std::shared_ptr<rpc::GatedTransport> gate, std::shared_ptr<ClusterWatcher> watcher,
                         Executor& executor)
    : options_(std::move(options)),
      clock_(clock),
      random_(random),
      gate_(std::move(gate)),
      watcher_(std::move(watcher)),
      executor_(executor) {}

// --- Calls to one distributor ----------------------------------------------------------------------------------------

void AdminCaller::call_any(rpc::Request request, MonotonicTime deadline, AnyDone done) {
  if (closed_) return done(client_closed());
  const std::uint64_t id = next_id_++;
  AnyCall& call = any_[id];
  call.request = std::move(request);
  call.deadline = deadline;
  call.done = std::move(done);
  call.targets = watcher_->candidates();
  attempt(id);
}

void AdminCaller::attempt(std::uint64_t id) {
  const auto at = any_.find(id);
  if (at == any_.end()) return;
  AnyCall& call = at->second;
  const Duration left = call.deadline - clock_.now();
  if (left <= Duration(0)) return finish_any(id, failure(call));
  if (call.target == call.targets.size()) return pause(id);
  gate_->call(call.targets[call.target], call.request, std::min(left, options_->attempt_timeout), executor_,
              while_alive(weak_from_this(), [id](AdminCaller& self, Result<rpc::Reply> reply) {
                self.on_any_reply(id, std::move(reply));
              }));
}

void AdminCaller::on_any_reply(std::uint64_t id, Result<rpc::Reply> reply) {
  const auto at = any_.find(id);
  if (at == any_.end()) return;
  AnyCall& call = at->second;
  const bool timed_out = !reply && reply.error().code() == StatusCode::Timeout;
  if (!timed_out && !is_not_ready(reply)) return finish_any(id, std::move(reply));
  const Status& why = reply ? rpc::status_of(*reply) : reply.error();
  call.reasons[call.targets[call.target]] = why.to_string();
  call.maybe_done |= timed_out;
  // A job that possibly runs at this distributor must not be started at a second one.
  call.sticks |= timed_out && std::holds_alternative<rpc::SubmitJob>(call.request);
  if (call.sticks) return pause(id);
  ++call.target;
  attempt(id);
}

void AdminCaller::pause(std::uint64_t id) {
  AnyCall& call = any_.at(id);
  const Duration delay = backoff_delay(*options_, ++call.failures, random_);
  if (clock_.now() + delay + kRetryTimeMin > call.deadline) return finish_any(id, failure(call));
  watcher_->refresh();
  executor_.post_after(delay, [weak = weak_from_this(), id] {
    auto self = weak.lock();
    if (!self) return;
    const auto at = self->any_.find(id);
    if (at == self->any_.end()) return;
    if (!at->second.sticks) {
      at->second.targets = self->watcher_->candidates();
      at->second.target = 0;
    }
    self->attempt(id);
  });
}

void AdminCaller::finish_any(std::uint64_t id, Result<rpc::Reply> result) {
  const auto node = any_.extract(id);
  node.mapped().done(std::move(result));
}

Status AdminCaller::failure(const AnyCall& call) {
  std::string list;
  for (const auto& [address, reason] : call.reasons) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", address, reason);
  }
  return Status(call.maybe_done ? StatusCode::Timeout : StatusCode::NotReady,
                fmt::format("{}: no distributor answered in time: {}", rpc::name_of(call.request), list));
}

// --- Calls to all distributors ---------------------------------------------------------------------------------------

void AdminCaller::call_all(rpc::Request request, MonotonicTime deadline, AllDone done) {
  if (closed_) return done(client_closed());
  const std::uint64_t id = next_id_++;
  all_[id].done = std::move(done);
  auto go_on = [weak = weak_from_this(), id, deadline, request = std::move(request)](Status ready) mutable {
    auto self = weak.lock();
    if (!self || !self->all_.contains(id)) return;
    if (!ready) return self->finish_all(id, std::move(ready));
    self->send_to_all(std::move(request), deadline, id);
  };
  watcher_->wait({}, deadline, std::move(go_on));
}

void AdminCaller::send_to_all(rpc::Request request, MonotonicTime deadline, std::uint64_t id) {
  AllCall& call = all_.at(id);
  const auto snapshot = watcher_->snapshot();
  const auto& addresses = snapshot->info().distributor_addresses;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i].empty()) continue;
    if (!snapshot->state().is_up({NodeType::Distributor, static_cast<std::uint16_t>(i)})) continue;
    call.answers.push_back({addresses[i], Status(StatusCode::NotReady, "not asked")});
  }
  if (call.answers.empty()) {
    watcher_->refresh();  // the next call then finds distributors that have returned
    return finish_all(
        id, Status(StatusCode::Unavailable,
                   fmt::format("no distributor is up in cluster state version {}", snapshot->state_version())));
  }
  call.missing = call.answers.size();
  const Duration left = std::max(deadline - clock_.now(), Duration(1));
  for (std::size_t i = 0; i < call.answers.size(); ++i) {
    gate_->call(call.answers[i].address, request, left, executor_,
                while_alive(weak_from_this(), [id, i](AdminCaller& self, Result<rpc::Reply> reply) {
                  self.on_all_reply(id, i, std::move(reply));
                }));
  }
}

void AdminCaller::on_all_reply(std::uint64_t id, std::size_t index, Result<rpc::Reply> reply) {
  const auto at = all_.find(id);
  if (at == all_.end()) return;
  if (!reply) watcher_->refresh();
  at->second.answers[index].reply = std::move(reply);
  if (--at->second.missing == 0) finish_all(id, Status::ok());
}

void AdminCaller::finish_all(std::uint64_t id, Status error) {
  const auto node = all_.extract(id);
  AllCall& call = node.mapped();
  if (error) {
    call.done(std::move(call.answers));
  } else {
    call.done(std::move(error));
  }
}

void AdminCaller::close() {
  closed_ = true;
  while (!any_.empty()) finish_any(any_.begin()->first, client_closed());
  while (!all_.empty()) finish_all(all_.begin()->first, client_closed());
}

}  // namespace fjord
