#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "admission.h"
#include "client_window.h"
#include "conditional_write.h"
#include "context.h"
#include "document_locks.h"
#include "fjord/document/field_set.h"
#include "guard_rails.h"
#include "maintenance/bucket_maintainer.h"
#include "node_latencies.h"
#include "unclaimed_answers.h"

namespace fjord::distributor {

struct OperationMetrics {
  explicit OperationMetrics(MetricRegistry& metrics);
  void count(rpc::OperationKind kind, const Status& status, Duration took);

  struct PerKind {
    Counter& applied;
    Counter& not_applied;
    Counter& in_doubt;
    Histogram& seconds;
  };
  PerKind get;
  PerKind put;
  PerKind remove;
  PerKind update;
  Histogram& foreground_seconds;  ///< Durations of operations that are not in the background.
  Counter& duplicates;
  Counter& known_tokens;
  Counter& parts;
  Gauge& pending;
  MetricRegistry& registry;  ///< For the counters by reason, each created when it first occurs.
};

/// Runs clients' operations: finds the bucket, gives a write its timestamp, sends it to the replicas that must have it,
/// retries if there is no answer, and answers the client when it is settled. Confined to the executor.
///
/// An operation that depends on what is stored (an update, a condition, a token) is conditional. It locks the document
/// exclusively, waits until all replicas of its bucket are known to be equal, reads, decides, and is a plain write from
/// then on. No other write of the document begins before it has ended. The README says why that is enough.
class OperationEngine {
 public:
  OperationEngine(Context& context, BucketMaintainer& maintainer, NodeLatencies& latencies, TunableRegistry& tunables);

  /// Takes a client's batch. Refuses what does not fit into the budget before any work on it. Threading: from any
  /// thread; the rest runs on the executor.
  void arrive(rpc::Execute request, rpc::Responder respond);

  /// Handles a new cluster state that follows `before`; null: it is the first.
  void state_changed(const rpc::ClusterSnapshot* before);
  /// Operations on buckets that are no longer known have to wait until they are.
  void buckets_forgotten();
  /// All buckets are known: operations that waited are tried again.
  void state_ready();
  void bucket_ready(BucketId bucket);

  const Admission& admission() const { return admission_; }
  /// True if the cluster is up, or if only writes are refused while it is down.
  bool reads_go_on() const;
  /// Timestamps of the writes that have not ended or may be repeated, by BucketId::position() of their documents; the
  /// lowest if there are several at one position.
  std::map<std::uint64_t, std::uint64_t> oldest_under_way();

 private:
  /// Decisions about a batch on its arrival.
  struct Arrival {
    MonotonicTime at;
    std::array<std::optional<Admission::Refusal>, Admission::kClasses> refused;  ///< By class, for all its operations.
    std::size_t bytes = 0;                                                       ///< Bytes of the admitted operations.
  };
  /// Numbers of an operation that was refused on arrival.
  struct Refused {
    rpc::OperationKind kind = rpc::OperationKind::Unknown;
    std::uint64_t sequence = 0;
    std::uint32_t attempt = 0;
  };

  /// One operation of a client's batch.
  struct Op {
    GlobalId gid;
    BucketId bucket;
    MonotonicTime deadline;  ///< The operation ends then at the latest; nothing begins after it.
    bool admitted = false;   ///< Counted in the budget.
    std::uint64_t timestamp_us = 0;
    std::uint32_t attempt = 0;  ///< Answers to an older attempt are dropped.
    bool settled = false;
    bool delivered = false;  ///< Its result was sent in a part of the answer.
    /// Times that it was sent and possibly applied: all but those refused for lack of space.
    std::uint32_t possibly_applied = 0;
    bool counted = false;                ///< Counted in its bucket's writes_under_way.
    bool partial = false;                ///< A replica refused it for good.
    bool doubtful = false;               ///< A replica may have it without an acknowledgement.
    bool ownership_uncertain = false;    ///< Another distributor may have owned the bucket since it was sent.
    bool corrupt = false;                ///< A read: a damaged replica cannot tell what it had.
    std::uint16_t acknowledged = 0;      ///< Replicas that have answered that they have it.
    std::vector<std::uint16_t> missing;  ///< Replicas that have not answered.
    std::vector<std::uint16_t> refused;  ///< Members without space for writes of clients.
    bool completing = false;             ///< `missing` refused it and were asked again: another member has it.
    /// Not 0: all members have the write, the client has been answered, and `missing` are replicas that are catching
    /// up. It still counts as in flight in its bucket, whose entry has this serial.
    std::uint64_t trailing = 0;
    std::optional<std::uint16_t> silent;  ///< Replica that did not answer the last read.
    Status last_problem;
    rpc::OperationResult result;
    std::unique_ptr<ConditionalWrite> conditional;  ///< Set if it reads before it writes.
    bool reading = false;                           ///< Conditional, and not decided yet.
    bool has_lock = false;
    std::unique_ptr<FieldSet> fields;  ///< Get: the wanted fields; null: all.
  };
  struct Batch {
    std::uint64_t number = 0;
    rpc::Execute request;
    rpc::Responder respond;
    std::vector<Op> ops;
    std::size_t left = 0;         ///< Operations that have not ended.
    std::size_t undelivered = 0;  ///< Operations that have ended and whose results have not been sent.
    std::size_t bytes = 0;
    MonotonicTime start;
    MonotonicTime part_at;  ///< Time of the first part of the answer.
    bool takes_parts = false;
    bool is_part_due = false;     ///< Results are sent as they become known.
    bool is_part_posted = false;  ///< A task that sends them is posted.
    std::uint64_t rest = 0;       ///< Number by which the client may ask for the rest; 0 once it has asked.
    bool wrong_distribution = false;
  };
  struct OpRef {
    std::shared_ptr<Batch> batch;
    std::uint32_t index = 0;
    std::uint32_t attempt = 0;
    bool takes_rest = false;  ///< The storage node was asked to return what damage has left.

    Op& op() const { return batch->ops[index]; }
    const rpc::Operation& request() const { return batch->request.operations[index]; }
    bool is_write() const { return request().kind != rpc::OperationKind::Get; }
    /// A read whose result all members have, so that no later read sees less.
    bool is_session_read() const { return !is_write() && request().consistency == rpc::Consistency::Session; }
    /// True if storage nodes are asked to read, not to write.
    bool is_reading() const { return !is_write() || op().reading; }
    bool is_current() const { return !op().settled && op().attempt == attempt; }
  };
  using Windows = ClientWindows<OpRef>;
  /// A write in doubt, which its client may repeat under its timestamp. As long as it may, oldest_under_way() includes
  /// the write.
  struct Doubt {
    GlobalId gid;
    std::uint64_t timestamp_us = 0;
    MonotonicTime until;
  };
  using ClientSequence = std::pair<std::uint64_t, std::uint64_t>;

  void execute(rpc::Execute request, rpc::Responder respond, const Arrival& arrival);
  void refuse_batch(rpc::Execute request, rpc::Responder respond, const Arrival& arrival);
  void remember_refusal(std::uint64_t client, std::uint64_t sequence, std::uint32_t attempt);
  void refuse_at_once(const OpRef& ref, Admission::Refusal why);
  bool is_known(BucketId bucket) const;
  void admit(const OpRef& ref);
  Status prepare(const OpRef& ref);
  Status prepare_document(rpc::Operation& operation, const DocumentId& id);
  bool recognise_duplicate(const OpRef& ref);
  /// False if a repetition would come too late to be the same write; the operation stays in doubt.
  bool may_repeat(const OpRef& ref);
  void dispatch(OpRef ref);
  /// False: it has ended, because its deadline has passed or this distributor may not do it.
  bool is_in_time_and_place(const OpRef& ref);
  /// False: it has ended, because the cluster is down.
  bool is_open_for(const OpRef& ref);
  /// The operation's bucket, created if it does not exist. Null: the operation has ended, or waits.
  BucketEntry* entry_for(const OpRef& ref);
  void dispatch_write(const OpRef& ref, BucketEntry& entry);
  void dispatch_read(const OpRef& ref, BucketEntry& entry);
  /// Reads one named replica, whatever the replica set says (replica_read.h).
  void dispatch_to_replica(const OpRef& ref);
  void on_replica_result(const OpRef& ref, rpc::OperationResult result);
  /// True if the operation may begin; false: it waits for its bucket or for the lock of its document.
  bool may_begin(const OpRef& ref, BucketEntry& entry);
  void dispatch_conditional(const OpRef& ref, BucketEntry& entry);
  void decide(const OpRef& ref);
  void release_lock(const OpRef& ref);
  /// NO_SPACE before anything is sent, if a member is full. Else some members would have the put, and the full ones
  /// not.
  Status check_space(const OpRef& ref, const BucketEntry& entry) const;
  void count(BucketEntry& entry, Op& op);
  /// True if too much waits for one of the replicas that would have to take a write.
  bool is_clogged(const BucketEntry& entry) const;
  void send(const OpRef& ref, std::uint16_t node, std::uint64_t epoch);
  void flush();
  static Duration time_for_reads(const std::vector<OpRef>& refs, MonotonicTime now);
  /// Chooses one of these replicas to read, at random among those that are not slow, if there are any. Sends a probe to
  /// slow ones now and then, for which no client waits.
  std::uint16_t choose_reader(const OpRef& ref, const BucketEntry& entry, const std::vector<std::uint16_t>& candidates);
  void probe(const OpRef& ref, std::uint16_t node, std::uint64_t epoch);
  void on_reply(std::uint16_t node, const std::vector<OpRef>& refs, Result<rpc::ApplyReply> reply);
  void on_write_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result);
  void on_all_answered(const OpRef& ref);
  void send_to_catching_up(const OpRef& ref);
  void on_catching_up_result(const OpRef& ref, std::uint16_t node, const Status& status);
  void on_read_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result);
  /// Notes damage that a read has met on the node. True if the read goes on with another replica.
  bool reads_elsewhere(const OpRef& ref, std::uint16_t node);
  void finish_read(const OpRef& ref);
  void retry_later(std::uint16_t node, std::vector<OpRef> refs);
  void finish_write(const OpRef& ref);
  /// Sets the timer of a batch to the next part of its answer, or the next deadline of its operations.
  void watch(const std::shared_ptr<Batch>& batch);
  void on_time(const std::shared_ptr<Batch>& batch);
  void expire(const OpRef& ref);
  void settle(const OpRef& ref, Status status);
  void settle_record(const OpRef& ref, const Status& status);
  /// Answers the batch, all of whose operations have ended.
  void answer(Batch& batch);
  /// Answers with the results that are known and not sent, if there are any and the client waits.
  void answer_part(const std::shared_ptr<Batch>& batch);
  void answer_part_soon(const std::shared_ptr<Batch>& batch);
  void answer_rest(std::uint64_t number, std::uint64_t client, rpc::Responder respond);
  rpc::ExecuteReply take_results(Batch& batch);
  void shape_document(const OpRef& ref);
  /// Ends an operation that cannot be served now with `code`. A write that was sent is in doubt instead.
  void refuse(const OpRef& ref, StatusCode code, const std::string& why);

  Context& context_;
  BucketMaintainer& maintainer_;
  NodeLatencies& latencies_;
  OperationMetrics metrics_;
  GuardRails guard_rails_;
  Admission admission_;
  const Tunable& reads_when_down_;
  Windows windows_;
  std::map<ClientSequence, Doubt> doubts_;
  DocumentLocks<OpRef> locks_;
  MonotonicTime last_forget_;
  std::vector<OpRef> waiting_for_state_;
  std::map<std::uint64_t, std::vector<OpRef>> waiting_for_bucket_;  // By raw bucket id.
  struct Outgoing {
    std::vector<rpc::StorageOperation> operations;
    std::vector<OpRef> refs;
    std::uint32_t in_background = 0;  ///< Number of operations in the background.
  };
  std::map<std::uint16_t, Outgoing> outbox_;
  std::map<std::uint64_t, std::shared_ptr<Batch>> batches_;  // Those not answered yet, in order of arrival.
  UnclaimedAnswers<Batch> unclaimed_;
  std::uint64_t next_batch_ = 1;
  /// Number of the next message to a storage node. Begins at the wall clock, so that it rises over restarts, too.
  std::uint64_t next_message_;
};

}  // namespace fjord::distributor
