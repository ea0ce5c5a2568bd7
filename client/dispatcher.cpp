#include "dispatcher.h"

#include <algorithm>
#include <utility>

#include "backoff.h"
#include "batch_reply.h"
#include "fjord/common/callback_guard.h"
#include "fjord/common/check.h"
#include "fjord/common/retry.h"
#include "fjord/common/run_inline.h"
#include "fjord/rpc/deadline.h"

namespace fjord {

namespace {

/// Minimum time between two checks of the deadlines.
constexpr Duration kSweepPause = milliseconds(2);
/// Time after which a batch in flight no longer delays the next one. A batch ends with its slowest operation, and a
/// slow storage node must not slow down operations on other nodes' documents. Up to kSlowBatchesMax batches can be in
/// flight then.
constexpr Duration kBatchWaitMax = milliseconds(5);
constexpr std::size_t kSlowBatchesMax = 64;
/// Upper limit for the pause that a distributor can ask for.
constexpr std::uint32_t kHintMaxMs = 10'000;

/// Adds what helps the caller to repeat a failed operation: the distributor that answered and, for a write in doubt,
/// its idempotency key.
Status with_what_is_known(Status status, const PendingOperation& operation) {
  const RetryClass retry = retry_class(status.code());
  if (retry == RetryClass::Done || retry == RetryClass::Permanent) return status;
  ErrorDetails details;
  if (operation.distributor) details.node = "distributor." + std::to_string(*operation.distributor);
  if (operation.in_doubt) details.idempotency_key = operation.operation.token;
  return status.with_details(std::move(details));
}

Counter& operations(MetricRegistry& metrics, const char* outcome) {
  return metrics.counter("fjord_client_operations_total", "Operations that ended, by outcome", {{"outcome", outcome}});
}

}  // namespace

ClientMetrics::ClientMetrics(MetricRegistry& metrics)
    : applied(operations(metrics, "applied")),
      not_applied(operations(metrics, "not_applied")),
      in_doubt(operations(metrics, "in_doubt")),
      retries(metrics.counter("fjord_client_retries_total", "Attempts beyond the first one of each operation")),
      retries_denied(metrics.counter("fjord_client_retries_denied_total",
                                     "Operations that ended because the retry budget was used up")),
      busy_pauses(metrics.counter("fjord_client_busy_pauses_total",
                                  "Times that nothing was sent to a distributor because it had asked for a pause")),
      batches(metrics.counter("fjord_client_batches_total", "Batches of operations sent to distributors")),
      operation_seconds(metrics.histogram("fjord_client_operation_seconds",
                                          "From the start of an operation to its end, retries included")),
      registry(metrics) {}

void ClientMetrics::count(Outcome outcome, StatusCode reason) {
  (outcome == Outcome::Applied ? applied : outcome == Outcome::InDoubt ? in_doubt : not_applied).add();
  if (outcome != Outcome::NotApplied) return;
  registry
      .counter("fjord_client_not_applied_total", "Operations that were not applied, by reason",
               {{"reason", std::string(to_string(reason))}})
      .add();
}

Dispatcher::Dispatcher(std::shared_ptr<const ClientOptions> options, const Clock& clock, MetricRegistry& metrics,
                       Random random, std::uint64_t client_id, std::shared_ptr<rpc::GatedTransport> gate,
                       std::shared_ptr<ClusterWatcher> watcher, Executor& executor)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      random_(random),
      client_id_(client_id),
      gate_(std::move(gate)),
      watcher_(std::move(watcher)),
      executor_(executor),
      retry_budget_(*options_),
      inbox_(*options_, clock) {}

// --- New operations --------------------------------------------------------------------------------------------------

void Dispatcher::submit(rpc::Operation operation, Duration timeout, AsyncClient::OperationDone done) {
  if (!inbox_.add(std::move(operation), timeout, std::move(done))) return;
  run_or_post(executor_, while_alive(weak_from_this(), [](Dispatcher& self) {
                self.drain();
                self.pump();
              }));
}

void Dispatcher::drain() {
  FJORD_CHECK(executor_.is_current());
  for (PendingPtr& operation : inbox_.take()) admit(std::move(operation));
}

void Dispatcher::admit(PendingPtr operation) {
  live_.add(operation);
  operation->operation.sequence = operation->is_write() ? next_sequence_++ : 0;
  if (operation->is_write()) settled_.open(operation->operation.sequence);
  if (options_->make_tokens) give_token(operation->operation);
  if (operation->operation.priority == rpc::Priority::Default) operation->operation.priority = options_->priority;
  if (operation->operation.consistency == rpc::Consistency::Default) {
    operation->operation.consistency = options_->consistency;
  }
  if (closed_) return end(operation, client_closed(), {});
  // An invalid operation ends at once: only valid ones enter the order of their document.
  if (!operation->invalid) return end(operation, operation->invalid, {});
  arm_sweep(operation->deadline);
  if (lines_[operation->gid].enter(operation)) route(operation);
}

void Dispatcher::give_token(rpc::Operation& operation) {
  if (!rpc::reads_first(operation) || !operation.token.empty()) return;
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t bits = random_.next();
    operation.token.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
}

// --- Sending batches -------------------------------------------------------------------------------------------------

void Dispatcher::route(const PendingPtr& operation) {
  const auto snapshot = watcher_->snapshot();
  if (snapshot == nullptr) {
    operation->place = Place::Parked;
    parked_.push_back(operation);
    watcher_->need_snapshot(operation->deadline);
    return;
  }
  const auto owner = snapshot->distributor_of(snapshot->bucket_of(operation->gid));
  const auto& addresses = snapshot->info().distributor_addresses;
  if (!owner || *owner >= addresses.size() || addresses[*owner].empty()) {
    operation->last = Status(StatusCode::Unavailable, "no distributor is up in cluster state version " +
                                                          std::to_string(snapshot->state_version()));
    watcher_->refresh();
    retry_or_end(operation, false);
    return;
  }
  operation->distributor = *owner;
  enqueue(channel_of(*snapshot, *owner, *operation), operation);
}

Channel& Dispatcher::channel_of(const rpc::ClusterSnapshot& snapshot, std::uint16_t distributor,
                                const PendingOperation& operation) {
  const rpc::Address& address = snapshot.info().distributor_addresses[distributor];
  const bool is_strict = rpc::is_strict(operation.operation);
  const ChannelKey key{address, operation.operation.priority, operation.is_write(), is_strict};
  const auto [at, is_new] = channels_.try_emplace(key, *options_);
  if (is_new) {
    at->second.address = address;
    at->second.is_strict = is_strict;
  }
  return at->second;
}

void Dispatcher::enqueue(Channel& channel, const PendingPtr& operation) {
  operation->place = Place::Queued;
  channel.queue_bytes += operation->size;
  channel.queue.push_back(operation);
  mark_dirty(channel);
}

void Dispatcher::mark_dirty(Channel& channel) {
  if (!std::exchange(channel.dirty, true)) dirty_.push_back(&channel);
}

void Dispatcher::pump() {
  schedule_pauses();
  for (Channel* channel : std::exchange(dirty_, {})) {
    channel->dirty = false;
    while (may_send(*channel)) send(*channel);
    look_again_later(*channel);
  }
}

bool Dispatcher::may_send(const Channel& channel) const {
  if (closed_ || channel.queue.empty()) return false;
  if (channel.operations_in_flight >= channel.window.size() || clock_.now() < channel.paused_until) return false;
  if (channel.in_flight == 0) return true;
  const bool is_full =
      channel.queue.size() >= options_->batch_operations_max || channel.queue_bytes >= options_->batch_bytes_max;
  if (is_full && channel.in_flight < std::max<std::size_t>(1, options_->batches_in_flight_max)) return true;
  return clock_.now() - channel.last_sent >= kBatchWaitMax && channel.in_flight < kSlowBatchesMax;
}

void Dispatcher::look_again_later(Channel& channel) {
  if (closed_ || channel.queue.empty() || channel.in_flight == 0 || channel.timer_armed) return;
  const Duration left = channel.last_sent + kBatchWaitMax - clock_.now();
  if (left <= Duration(0)) return;  // no timer is needed: an event will call pump()
  channel.timer_armed = true;
  executor_.post_after(left, [weak = weak_from_this(), &channel] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    channel.timer_armed = false;
    self->mark_dirty(channel);
    self->pump();
  });
}

void Dispatcher::pause(Channel& channel, Duration hint) {
  const Duration delay = backoff_delay(*options_, 1, hint, random_);
  const MonotonicTime until = clock_.now() + delay;
  if (until <= channel.paused_until) return;
  metrics_.busy_pauses.add();
  channel.paused_until = until;
  executor_.post_after(delay, [weak = weak_from_this(), &channel] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->mark_dirty(channel);
    self->pump();
  });
}

Dispatcher::Batch Dispatcher::take_batch(Channel& channel) {
  Batch batch;
  std::size_t bytes = 0;
  const std::size_t most = std::min(std::max<std::size_t>(1, options_->batch_operations_max),
                                    channel.window.size() - channel.operations_in_flight);
  while (!channel.queue.empty() && batch.size() < most) {
    PendingPtr& front = channel.queue.front();
    const std::size_t size = front->bytes();
    // An operation that has ended while it was queued has no bytes left; it was counted with its first size.
    const std::size_t counted = front->size;
    if (!front->settled) {
      if (!batch.empty() && bytes + size > options_->batch_bytes_max) break;
      bytes += size;
      batch.push_back(std::move(front));
    }
    channel.queue_bytes -= counted;
    channel.queue.pop_front();
  }
  return batch;
}

void Dispatcher::send(Channel& channel) {
  Batch batch = take_batch(channel);
  if (batch.empty()) return;
  const MonotonicTime now = clock_.now();
  const auto snapshot = watcher_->snapshot();
  Duration longest(1);
  rpc::Execute request;
  request.operations.reserve(batch.size());
  for (const PendingPtr& operation : batch) {
    longest = std::max(longest, operation->deadline - now);
    operation->place = Place::InFlight;
    if (operation->attempts++ > 0) {
      metrics_.retries.add();
    } else {
      retry_budget_.operation_sent();
    }
    operation->operation.attempt = operation->attempts;
    request.operations.push_back(operation->operation);  // a copy: a retry needs the original
  }
  const Duration timeout = std::min(longest, options_->attempt_timeout);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Duration left = std::max(batch[i]->deadline - now, Duration(1));
    if (left < timeout) request.operations[i].timeout_us = rpc::time_for_callee(left).count();
  }
  request.state_version = snapshot->state_version();
  request.cluster_id = snapshot->info().cluster_id;
  request.client_id = client_id_;
  request.first_unsettled = settled_.first_unsettled();
  request.timeout_us = rpc::time_for_callee(timeout).count();
  if (batch.size() > 1) request.part_after_us = std::min(options_->partial_answer_after, timeout / 4).count();
  ++channel.in_flight;
  channel.last_sent = now;
  channel.operations_in_flight += batch.size();
  metrics_.batches.add();
  call(std::move(request),
       {channel, std::move(batch), now, now + timeout, snapshot->state_version(), false, snapshot->info().cluster_id});
}

void Dispatcher::call(rpc::Execute request, Sent sent) {
  const Duration left = std::max(sent.deadline - clock_.now(), Duration(1));
  gate_->call(
      sent.channel.address, request_for(std::move(request), sent.channel.is_strict), left, executor_,
      while_alive(weak_from_this(), [sent = std::move(sent)](Dispatcher& self, Result<rpc::Reply> answer) mutable {
        self.on_reply(std::move(sent), std::move(answer));
      }));
}

// --- Answers ---------------------------------------------------------------------------------------------------------

void Dispatcher::on_reply(Sent sent, Result<rpc::Reply> answer) {
  FJORD_CHECK(executor_.is_current());
  Channel& channel = sent.channel;
  if (!sent.is_rest) --channel.in_flight;
  mark_dirty(channel);
  bool is_busy = !answer && answer.error().code() == StatusCode::Timeout;
  rpc::ExecuteReply reply = results_of(std::move(answer), sent.operations.size(), sent.is_rest);
  watcher_->take(reply.newer_info);
  const auto snapshot = watcher_->snapshot();
  const bool newer_state =
      snapshot->is_of_another_cluster(sent.cluster_id) || snapshot->state_version() > sent.state_version;
  if (reply.status && reply.rest != 0) ask_rest(sent, reply);
  const Batch& batch = sent.operations;
  channel.operations_in_flight -= batch.size();
  std::uint32_t longest_hint_ms = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    rpc::OperationResult result;
    if (reply.status) {
      result = std::move(reply.results[i]);
    } else {
      result.status = reply.status;
      result.retry_after_ms = reply.retry_after_ms;
    }
    if (result.status.code() == StatusCode::Busy) {
      is_busy = true;
      longest_hint_ms = std::max(longest_hint_ms, std::min(result.retry_after_ms, kHintMaxMs));
    }
    if (batch[i]->settled) continue;  // its own deadline has ended it before
    judge(batch[i], std::move(result), newer_state);
  }
  channel.adjust_window(sent.at, batch.size(), is_busy, clock_.now());
  if (longest_hint_ms > 0) pause(channel, milliseconds(longest_hint_ms));
  drain();  // operations that the callbacks started join the next batch
  pump();
}

/// Asks for the outcomes that a partial answer lacks. These operations stay in the window of the channel, but do not
/// delay its next batch.
void Dispatcher::ask_rest(Sent& sent, rpc::ExecuteReply& reply) {
  Sent rest{sent.channel,   take_unfinished(sent.operations, reply), sent.at, sent.deadline, sent.state_version, true,
            sent.cluster_id};
  const bool is_awaited = std::any_of(rest.operations.begin(), rest.operations.end(),
                                      [](const PendingPtr& operation) { return !operation->settled; });
  if (!is_awaited) {
    sent.channel.operations_in_flight -= rest.operations.size();
    return;
  }
  rpc::Execute request;
  request.state_version = sent.state_version;
  request.client_id = client_id_;
  request.rest = reply.rest;
  call(std::move(request), std::move(rest));
}

void Dispatcher::judge(const PendingPtr& operation, rpc::OperationResult result, bool newer_state) {
  const StatusCode code = result.status.code();
  const RetryClass retry = retry_class(code);
  if (code == StatusCode::Busy) ++operation->busy_answers;
  switch (retry) {
    case RetryClass::Done:
      operation->in_doubt = false;
      [[fallthrough]];
    case RetryClass::Permanent: {
      Status status = std::move(result.status);
      return end(operation, std::move(status), std::move(result));
    }
    case RetryClass::Broken: {
      operation->in_doubt = operation->is_write();
      Status status = std::move(result.status);
      return end(operation, std::move(status), {});
    }
    case RetryClass::InDoubt:
      operation->in_doubt = operation->is_write();
      break;
    case RetryClass::Transient:
      break;
  }
  operation->last = std::move(result.status);
  operation->retry_after = milliseconds(std::min(result.retry_after_ms, kHintMaxMs));
  if (!may_retry(code)) {
    metrics_.retries_denied.add();
    return end(operation, operation->last, {});
  }
  // If the answer of a wrong target brought a newer state, retry without a pause. Versions only rise, so this ends.
  const bool at_once = code == StatusCode::WrongDistribution && newer_state;
  if (!at_once && code != StatusCode::Busy) watcher_->refresh();
  retry_or_end(operation, at_once);
}

/// Returns whether an operation may be retried after this error. Refusals and missing answers can be the result of
/// overload, so their retries are limited (RetryBudget). Other transient errors are not: they cost a distributor
/// little.
bool Dispatcher::may_retry(StatusCode after) {
  const bool is_rationed = after == StatusCode::Busy || after == StatusCode::Timeout || after == StatusCode::Unknown;
  return !is_rationed || retry_budget_.take(clock_.now());
}

void Dispatcher::retry_or_end(const PendingPtr& operation, bool at_once) {
  operation->place = Place::Pausing;
  if (!at_once) ++operation->failures;
  to_pause_[at_once ? 0 : operation->failures].push_back(operation);
}

void Dispatcher::schedule_pauses() {
  // end() and route() can add operations that fail without being sent, hence the loop.
  while (!to_pause_.empty()) {
    const auto node = to_pause_.extract(to_pause_.begin());
    Batch& group = node.mapped();
    if (node.key() == 0) {
      for (const PendingPtr& operation : group) {
        if (!operation->settled) route(operation);
      }
      continue;
    }
    // Operations that failed together are retried together, with one timer.
    Duration hint(0);
    for (const PendingPtr& operation : group) hint = std::max(hint, operation->retry_after);
    const Duration delay = backoff_delay(*options_, node.key(), hint, random_);
    const MonotonicTime latest = clock_.now() + delay + kRetryTimeMin;
    Batch waiting;
    for (PendingPtr& operation : group) {
      if (latest <= operation->deadline) {
        waiting.push_back(std::move(operation));
      } else {
        end(operation, operation->last, {});
      }
    }
    if (waiting.empty()) continue;
    executor_.post_after(delay, while_alive(weak_from_this(), [waiting = std::move(waiting)](Dispatcher& self) {
                           self.resume(waiting);
                         }));
  }
}

void Dispatcher::resume(const Batch& operations) {
  for (const PendingPtr& operation : operations) {
    if (!operation->settled) route(operation);
  }
  pump();
}

void Dispatcher::on_snapshot_changed() {
  Batch moved = std::exchange(parked_, {});
  for (auto& [key, channel] : channels_) {
    moved.insert(moved.end(), std::make_move_iterator(channel.queue.begin()),
                 std::make_move_iterator(channel.queue.end()));
    channel.queue.clear();
    channel.queue_bytes = 0;
  }
  if (moved.empty()) return;
  for (const PendingPtr& operation : moved) {
    if (!operation->settled) route(operation);
  }
  // Posts pump() instead of calling it, because a reply may be in progress, which calls pump() itself at its end.
  executor_.post(while_alive(weak_from_this(), [](Dispatcher& self) { self.pump(); }));
}

// --- The end of operations -------------------------------------------------------------------------------------------

void Dispatcher::end(const PendingPtr& ended, Status status, rpc::OperationResult result) {
  const PendingPtr operation = ended;  // copied, because `ended` can be a reference to an element of live_.all()
  FJORD_CHECK(!operation->settled);
  operation->settled = true;
  if (operation->is_write()) settled_.settle(operation->operation.sequence);
  live_.remove(*operation);

  OperationOutcome outcome;
  outcome.outcome = status.is_ok() ? Outcome::Applied : operation->in_doubt ? Outcome::InDoubt : Outcome::NotApplied;
  outcome.status = with_what_is_known(std::move(status), *operation);
  outcome.timestamp_us = result.timestamp_us;
  outcome.existed = result.existed;
  outcome.version_us = result.version_us;
  outcome.token = std::move(operation->operation.token);
  outcome.header = std::move(result.header);
  outcome.body = std::move(result.body);
  outcome.json = std::move(result.json);
  outcome.attempts = operation->attempts;
  outcome.busy_answers = operation->busy_answers;
  metrics_.count(outcome.outcome, outcome.status.code());
  metrics_.operation_seconds.observe(clock_.now() - operation->started);

  if (operation->invalid && operation->place != Place::Behind) {
    const auto line = lines_.find(operation->gid);
    line->second.leave([this](PendingPtr next) {
      next->place = Place::Pausing;  // it is released, even if its own deadline ends it before it is routed
      to_pause_[0].push_back(std::move(next));
    });
    if (line->second.is_empty()) lines_.erase(line);
  }
  inbox_.ended(operation->size);
  AsyncClient::OperationDone done = std::move(operation->done);
  operation->operation = {};
  done(std::move(outcome));
}

void Dispatcher::arm_sweep(MonotonicTime deadline) {
  if (!live_.needs_timer(deadline)) return;
  executor_.post_after(std::max(deadline - clock_.now(), Duration(0)),
                       while_alive(weak_from_this(), [deadline](Dispatcher& self) { self.sweep(deadline); }));
}

void Dispatcher::sweep(MonotonicTime armed_for) {
  if (!live_.timer_fired(armed_for)) return;
  const MonotonicTime now = clock_.now();
  std::optional<MonotonicTime> next;
  const Batch expired = live_.expired(now, next);
  if (next) arm_sweep(std::max(*next, now + kSweepPause));
  for (const PendingPtr& operation : expired) {
    if (!operation->settled) expire(operation);
  }
  pump();
}

void Dispatcher::expire(const PendingPtr& operation) {
  Status status = operation->last;
  if (operation->place == Place::InFlight) {
    operation->in_doubt = operation->is_write();
    status =
        Status(StatusCode::Timeout, "no answer before the deadline of the operation on " + operation->operation.id);
  } else if (status.is_ok() && operation->place == Place::Parked) {
    status = watcher_->why_not_ready();
  } else if (status.is_ok()) {
    status = Status(StatusCode::NotReady,
                    operation->place == Place::Behind
                        ? "not sent before its deadline: an earlier operation on the same id had not ended"
                        : "not sent before its deadline: too much was waiting for the same distributor");
  }
  end(operation, std::move(status), {});
}

void Dispatcher::close() {
  closed_ = true;
  drain();
  const Batch all = live_.all();
  for (const PendingPtr& operation : all) {
    if (operation->place == Place::InFlight) operation->in_doubt = operation->is_write();
    end(operation, client_closed(), {});
  }
  to_pause_.clear();
  drain();
}

}  // namespace fjord
