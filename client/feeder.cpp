#include "fjord/client/feeder.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "aimd_window.h"
#include "fjord/client/own_types.h"
#include "fjord/common/check.h"
#include "fjord/common/thread_annotations.h"
#include "latency_histogram.h"

namespace fjord {

std::uint64_t FeedStats::failed_total() const {
  std::uint64_t total = 0;
  for (const auto& [code, count] : failed) total += count;
  return total;
}

/// The part of a Feeder that the callbacks of pending operations use. They can outlive the Feeder.
struct Feeder::State {
  State(AsyncClient& feed_client, Options feed_options)
      : client(feed_client),
        options(std::move(feed_options)),
        window(options.window_operations_min, options.window_operations) {}

  bool has_room(std::size_t bytes) const FJORD_REQUIRES(mutex) {
    return pending == 0 || (pending < window.size() && pending_bytes + bytes <= options.window_bytes);
  }
  void admit(std::size_t bytes) FJORD_REQUIRES(mutex) {
    ++pending;
    pending_bytes += bytes;
    ++stats.submitted;
    stats.bytes += bytes;
    if (!started) started = client.clock().now();
  }
  void count(const OperationOutcome& outcome, Duration latency, MonotonicTime now) FJORD_REQUIRES(mutex);
  void on_outcome(std::uint64_t tag, std::size_t bytes, MonotonicTime submitted, OperationOutcome outcome);

  AsyncClient& client;
  Options options;

  std::mutex mutex;
  std::condition_variable changed;
  AimdWindow window FJORD_GUARDED_BY(mutex);
  std::size_t pending FJORD_GUARDED_BY(mutex) = 0;
  std::size_t pending_bytes FJORD_GUARDED_BY(mutex) = 0;
  bool refused FJORD_GUARDED_BY(mutex) = false;   // try_submit() returned false and on_room was not called since
  bool detached FJORD_GUARDED_BY(mutex) = false;  // the Feeder is destroyed
  bool in_callback FJORD_GUARDED_BY(mutex) = false;
  std::vector<UniqueFunction<void()>> idle_waiters FJORD_GUARDED_BY(mutex);
  FeedStats stats FJORD_GUARDED_BY(mutex);
  LatencyHistogram latencies FJORD_GUARDED_BY(mutex);
  std::optional<MonotonicTime> started FJORD_GUARDED_BY(mutex);
};

namespace {

std::size_t bytes_of(const rpc::Operation& operation) {
  return operation.id.size() + operation.header.size() + operation.body.size() + operation.json.size() +
         operation.update.size() + operation.condition.size();
}

}  // namespace

void Feeder::State::count(const OperationOutcome& outcome, Duration latency, MonotonicTime now) {
  switch (outcome.outcome) {
    case Outcome::Applied:
      ++stats.ok;
      break;
    case Outcome::NotApplied:
      ++stats.failed[outcome.status.code()];
      break;
    case Outcome::InDoubt:
      ++stats.in_doubt;
      break;
  }
  if (outcome.attempts > 1) stats.retried += outcome.attempts - 1;
  latencies.add(latency);
  window.on_result(outcome.busy_answers > 0);
  stats.seconds = static_cast<double>((now - *started).count()) / 1e6;
}

void Feeder::State::on_outcome(std::uint64_t tag, std::size_t bytes, MonotonicTime submitted,
                               OperationOutcome outcome) {
  {
    std::lock_guard lock(mutex);
    if (detached) return;  // the client may be destroyed as well as the Feeder
    const MonotonicTime now = client.clock().now();
    count(outcome, now - submitted, now);
    in_callback = true;
  }
  if (options.on_result) options.on_result(tag, std::move(outcome));
  // The operation counts as pending until its callback has returned, so that flush() waits for the callback too.
  bool call_on_room = false;
  std::vector<UniqueFunction<void()>> idle;
  {
    std::lock_guard lock(mutex);
    --pending;
    pending_bytes -= bytes;
    if (!detached && refused && has_room(0) && options.on_room) {
      refused = false;
      call_on_room = true;
    }
    if (pending == 0) idle.swap(idle_waiters);
    changed.notify_all();
  }
  if (call_on_room) options.on_room();
  for (auto& done : idle) done();
  std::lock_guard lock(mutex);
  in_callback = false;
  changed.notify_all();
}

Feeder::Feeder(AsyncClient& client) : Feeder(client, Options{}) {}

Feeder::Feeder(AsyncClient& client, Options options) : state_(std::make_shared<State>(client, std::move(options))) {}

Feeder::~Feeder() {
  std::unique_lock lock(state_->mutex);
  state_->detached = true;
  // Waits for a callback of this feeder that runs on another thread. On the executor itself only the callback that
  // destroys the feeder can be running.
  if (!state_->in_callback || state_->client.executor().is_current()) return;
  state_->changed.wait(lock, [this] { return !state_->in_callback; });
}

namespace {

template <typename State>
void start(const std::shared_ptr<State>& state, rpc::Operation operation, std::uint64_t tag, std::size_t bytes) {
  if (Status refused = state->options.writes_own_types ? Status::ok() : check_users_write(operation); !refused) {
    state->client.executor().post([state, tag, bytes, submitted = state->client.clock().now(), refused]() mutable {
      OperationOutcome outcome;
      outcome.outcome = Outcome::NotApplied;
      outcome.status = std::move(refused);
      state->on_outcome(tag, bytes, submitted, std::move(outcome));
    });
    return;
  }
  if (operation.priority == rpc::Priority::Default) operation.priority = state->options.priority;
  state->client.execute(std::move(operation), state->options.timeout,
                        [state, tag, bytes, submitted = state->client.clock().now()](OperationOutcome outcome) {
                          state->on_outcome(tag, bytes, submitted, std::move(outcome));
                        });
}

}  // namespace

bool Feeder::try_submit(rpc::Operation& operation, std::uint64_t tag) {
  const std::size_t bytes = bytes_of(operation);
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->has_room(bytes)) {
      state_->refused = true;
      return false;
    }
    state_->admit(bytes);
  }
  start(state_, std::move(operation), tag, bytes);
  return true;
}

void Feeder::submit(rpc::Operation operation, std::uint64_t tag) {
  FJORD_CHECK_MSG(!state_->client.executor().is_current(), "submit() waits for tasks of the executor it runs on");
  const std::size_t bytes = bytes_of(operation);
  {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->has_room(bytes); });
    state_->admit(bytes);
  }
  start(state_, std::move(operation), tag, bytes);
}

void Feeder::flush() {
  FJORD_CHECK_MSG(!state_->client.executor().is_current(), "flush() waits for tasks of the executor it runs on");
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->pending == 0; });
}

void Feeder::when_idle(UniqueFunction<void()> done) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->pending > 0) {
      state_->idle_waiters.push_back(std::move(done));
      return;
    }
  }
  state_->client.executor().post(std::move(done));
}

std::size_t Feeder::pending() const {
  std::lock_guard lock(state_->mutex);
  return state_->pending;
}

FeedStats Feeder::stats() const {
  std::lock_guard lock(state_->mutex);
  FeedStats stats = state_->stats;
  stats.latency_p50_seconds = state_->latencies.quantile_seconds(0.5);
  stats.latency_p99_seconds = state_->latencies.quantile_seconds(0.99);
  stats.latency_max_seconds = state_->latencies.max_seconds();
  stats.window = state_->window.size();
  return stats;
}

}  // namespace fjord
