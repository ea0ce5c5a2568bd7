#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel.h"
#include "cluster_watcher.h"
#include "document_line.h"
#include "fjord/client/client_options.h"
#include "fjord/common/executor.h"
#include "fjord/common/metrics.h"
#include "fjord/common/random.h"
#include "live_operations.h"
#include "operation_inbox.h"
#include "pending_operation.h"
#include "retry_budget.h"
#include "settled_window.h"

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
  MetricRegistry& registry;  ///< Holds a counter for each reason of a failure, created when first used.

  void count(Outcome outcome, StatusCode reason);
};

/// Runs operations from submit to end: orders them by document id, routes them to distributors, sends batches, judges
/// the answers, and retries or ends each one. README.md gives the rules.
///
/// Threading: submit() and pending() from any thread, the rest on the executor.
class Dispatcher : public std::enable_shared_from_this<Dispatcher> {
 public:
  Dispatcher(std::shared_ptr<const ClientOptions> options, const Clock& clock, MetricRegistry& metrics, Random random,
             std::uint64_t client_id, std::shared_ptr<rpc::GatedTransport> gate,
             std::shared_ptr<ClusterWatcher> watcher, Executor& executor);

  void submit(rpc::Operation operation, Duration timeout, AsyncClient::OperationDone done);
  std::size_t pending() const { return inbox_.pending(); }

  /// Routes queued operations again after a change of the watcher's snapshot.
  void on_snapshot_changed();
  /// Ends every operation with Cancelled.
  void close();

 private:
  using Batch = std::vector<PendingPtr>;
  /// A batch of operations that was sent and whose outcomes are unknown.
  struct Sent {
    Channel& channel;
    Batch operations;
    MonotonicTime at;
    MonotonicTime deadline;  ///< Deadline of the attempt.
    std::uint64_t state_version = 0;
    bool is_rest = false;  ///< True after a partial answer: the other operations of the batch have their outcomes.
    std::uint64_t cluster_id = 0;  ///< See ClusterInfo::cluster_id.
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
  /// Arms a timer that sends the queue when the batch in flight has lasted for kBatchWaitMax.
  void look_again_later(Channel& channel);
  void send(Channel& channel);
  Batch take_batch(Channel& channel);

  void on_reply(Sent sent, Result<rpc::Reply> answer);
  /// Moves the operations that have not ended according to `reply` out of `sent`, and asks for their outcomes.
  void ask_rest(Sent& sent, rpc::ExecuteReply& reply);
  void call(rpc::Execute request, Sent sent);
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
  std::shared_ptr<rpc::GatedTransport> gate_;
  std::shared_ptr<ClusterWatcher> watcher_;
  Executor& executor_;
  RetryBudget retry_budget_;
  OperationInbox inbox_;

  bool closed_ = false;
  std::uint64_t next_sequence_ = 1;
  SettledWindow settled_;
  LiveOperations live_;
  std::unordered_map<GlobalId, DocumentLine> lines_;  // one for each document id with pending operations
  Batch parked_;
  std::map<ChannelKey, Channel> channels_;  // elements keep their addresses, which Channel pointers rely on
  std::vector<Channel*> dirty_;
  std::map<std::uint32_t, Batch> to_pause_;  // operations to retry, by number of failures; emptied by schedule_pauses()
};

}  // namespace fjord
