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
  MetricRegistry& registry;  ///< For the reasons, of which each is made when it occurs first.

  void count(Outcome outcome, StatusCode reason);
};

/// Takes operations through their lives: order by document id, route to a distributor, send in batches, judge the
/// answers, repeat or end. The README tells the rules.
///
/// Threading: submit() and pending() from any thread, the rest on the executor.
class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  Dispatcher(std::shared_ptr<const ClientOptions> options, const Clock& clock, MetricRegistry& metrics, Random random,
             std::uint64_t client_id, std::shared_ptr<TransportGate> gate, std::shared_ptr<ClusterWatcher> watcher,
             Executor& executor);

  void submit(rpc::Operation operation, Duration timeout, AsyncClient::OperationDone done);
  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }

  /// The watcher has another snapshot: what is queued may have another way.
  void on_snapshot_changed();
  /// Ends every operation with Cancelled.
  void close();

 private:
  /// Reads do not wait for writes, nor what is urgent for what is not.
  struct ChannelKey {
    rpc::Address address;
    rpc::Priority priority = rpc::Priority::Default;
    bool is_write = false;
    bool is_strict = false;  ///< rpc::Operation::is_strict()
    friend auto operator<=>(const ChannelKey&, const ChannelKey&) = default;
  };
  /// The way to one distributor for operations of one kind.
  struct Channel {
    explicit Channel(const ClientOptions& options)
        : window(options.window_operations_min, options.window_operations_max) {}

    rpc::Address address;
    bool is_strict = false;
    std::deque<PendingPtr> queue;
    std::size_t queue_bytes = 0;
    std::size_t in_flight = 0;             // batches
    std::size_t operations_in_flight = 0;  // in them
    AimdWindow window;                     // for these
    MonotonicTime cut_at;                  // what was sent before that says nothing more about it
    MonotonicTime paused_until;            // the distributor has no room before
    MonotonicTime last_sent;
    bool timer_armed = false;  // for what waits behind a batch that takes long
    bool dirty = false;        // in dirty_
  };
  using Batch = std::vector<PendingPtr>;
  /// Operations that were sent together and whose outcomes are not known.
  struct Sent {
    Channel& channel;
    Batch operations;
    MonotonicTime at;
    MonotonicTime deadline;  ///< Of the attempt.
    std::uint64_t state_version = 0;
    bool is_rest = false;  ///< Other operations of the batch have been answered.
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
  /// Looks again when what is on its way has taken so long that nothing should wait for it.
  void look_again_later(Channel& channel);
  void send(Channel& channel);
  Batch take_batch(Channel& channel);

  void on_reply(Sent sent, Result<rpc::Reply> answer);
  /// What the answer says of each operation that was asked for.
  static rpc::ExecuteReply reply_of(const Sent& sent, Result<rpc::Reply> answer);
  /// Takes the operations out of `sent` that have not ended according to `reply`, and asks for their outcomes.
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
  std::unordered_map<GlobalId, DocumentLine> lines_;  // of each id that has operations
  Batch parked_;
  std::map<ChannelKey, Channel> channels_;  // a channel stays where it is once made
  std::vector<Channel*> dirty_;
  std::map<std::uint32_t, Batch> to_pause_;  // by failures, while a reply is worked on
  std::optional<MonotonicTime> sweep_at_;
};

}  // namespace fjord
