#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "aimd_window.h"
#include "cluster_watcher.h"
#include "document_line.h"
#include "fjord/client/client_options.h"
#include "fjord/common/executor.h"
#include "fjord/common/metrics.h"
#include "fjord/common/random.h"
#include "fjord/common/thread_annotations.h"
#include "pending_operation.h"
#include "retry_budget.h"
#include "settled_window.h"
#include "transport_gate.h"

namespace fjord {

struct ClientMetrics {
  explicit ClientMetrics(MetricRegistry& metrics);

  Counter& applied;
  Counter& not_applied;
  Counter& in_doubt;
  Counter& retries;
  Counter& retries_denied;
  Counter& busy_pauses;
  Counter& batches;
  Histogram& operation_seconds;
  MetricRegistry& registry;  ///< For the counters by reason; each is created at its first use.

  void count(Outcome outcome, StatusCode reason);
};

/// Runs operations from submit to end: orders them by document id, routes them to distributors, sends batches, judges
/// the answers, and retries or ends each one. README.md gives the rules.
///
/// Threading: submit() and pending() from any thread, the rest on the executor.
class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  Dispatcher(std::shared_ptr<const ClientOptions> options, const Clock& clock, MetricRegistry& metrics, Random random,
             std::uint64_t client_id, std::shared_ptr<TransportGate> gate, std::shared_ptr<ClusterWatcher> watcher,
             Executor& executor);

  void submit(rpc::Operation operation, Duration timeout, AsyncClient::OperationDone done);
  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }

  /// Routes queued operations again after a change of the watcher's snapshot.
  void on_snapshot_changed();
  /// Ends every operation with Cancelled.
  void close();

 private:
  /// A channel for each kind of operation: reads do not wait for writes, nor urgent operations for less urgent ones.
  struct ChannelKey {
    rpc::Address address;
    rpc::Priority priority = rpc::Priority::Default;
    bool is_write = false;
    bool is_strict = false;  ///< rpc::is_strict()
    friend auto operator<=>(const ChannelKey&, const ChannelKey&) = default;
  };
  /// Queue, window and state of one distributor for operations of one kind.
  struct Channel {
    explicit Channel(const ClientOptions& options)
        : window(options.window_operations_min, options.window_operations_max) {}

    rpc::Address address;
    bool is_strict = false;
    std::deque<PendingPtr> queue;
    std::size_t queue_bytes = 0;
    std::size_t in_flight = 0;             // batches in flight
    std::size_t operations_in_flight = 0;  // operations in these batches
    AimdWindow window;                     // limits operations_in_flight
    // time of the last cut of the window; results of earlier batches cause no further cut
    MonotonicTime cut_at;
    MonotonicTime paused_until;  // end of the pause that the distributor asked for
    MonotonicTime last_sent;
    bool timer_armed = false;  // a timer will send the queue despite a slow batch
    bool dirty = false;        // the channel is in dirty_
  };
  using Batch = std::vector<PendingPtr>;
  /// Operations of one batch whose outcomes are unknown.
  struct Sent {
    Channel& channel;
    Batch operations;
    MonotonicTime at;
    MonotonicTime deadline;  ///< Deadline of the attempt.
    std::uint64_t state_version = 0;
    bool is_rest = false;  ///< The other operations of the batch have their answers.
  };

  void drain();
  void admit(PendingPtr operation);
  void give_token(rpc::Operation& operation);
  void route(const PendingPtr& operation);
  void enqueue(Channel& channel, const PendingPtr& operation);
  Channel& channel_of(const rpc::ClusterSnapshot& snapshot, std::uint16_t distributor,
                      const PendingOperation& operation);
  void mark_dirty(Channel& channel);
  void pump();
  bool may_send(const Channel& channel) const;
  void pause(Channel& channel, Duration hint);
  /// Arms a timer that sends the queue when the batch in flight has taken kBatchWaitMax.
  void look_again_later(Channel& channel);
  void send(Channel& channel);
  Batch take_batch(Channel& channel);

  void on_reply(Sent sent, Result<rpc::Reply> answer);
  /// Returns the result of each operation of `sent`; `status` is an error if there are none.
  static rpc::ExecuteReply reply_of(const Sent& sent, Result<rpc::Reply> answer);
  /// Moves the operations that have not ended according to `reply` out of `sent`, and asks for their outcomes.
  void ask_rest(Sent& sent, rpc::ExecuteReply& reply);
  void call(rpc::Execute request, Sent sent);
  void adjust_window(Channel& channel, MonotonicTime sent, std::size_t operations, bool was_busy);
  void judge(const PendingPtr& operation, rpc::OperationResult result, bool newer_state);
  void retry_or_end(const PendingPtr& operation, bool at_once);
  bool may_retry(StatusCode after);
  void schedule_pauses();
  void resume(const Batch& operations);

  void end(const PendingPtr& operation, Status status, rpc::OperationResult result);
  void arm_sweep(MonotonicTime deadline);
  void sweep(MonotonicTime armed_for);
  void expire(const PendingPtr& operation);

  std::shared_ptr<const ClientOptions> options_;
  const Clock& clock_;
  ClientMetrics metrics_;
  Random random_;
  const std::uint64_t client_id_;
  std::shared_ptr<TransportGate> gate_;
  std::shared_ptr<ClusterWatcher> watcher_;
  Executor& executor_;
  RetryBudget retry_budget_;
  std::atomic<std::size_t> pending_{0};
  std::atomic<std::size_t> pending_bytes_{0};

  std::mutex mutex_;
  std::vector<PendingPtr> incoming_ FJORD_GUARDED_BY(mutex_);
  bool drain_posted_ FJORD_GUARDED_BY(mutex_) = false;

  bool closed_ = false;
  std::uint64_t next_sequence_ = 1;
  SettledWindow settled_;
  std::vector<PendingPtr> live_;
  std::unordered_map<GlobalId, DocumentLine> lines_;  // for each id with pending operations
  Batch parked_;
  std::map<ChannelKey, Channel> channels_;  // elements keep their addresses, which Channel pointers rely on
  std::vector<Channel*> dirty_;
  std::map<std::uint32_t, Batch> to_pause_;  // operations to retry, by number of failures; emptied by schedule_pauses()
  std::optional<MonotonicTime> sweep_at_;
};

}  // namespace fjord
