#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "admission.h"
#include "client_window.h"
#include "context.h"
#include "document_turns.h"
#include "fjord/document/field_set.h"
#include "guard_rails.h"
#include "guarded_write.h"
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
  Histogram& foreground_seconds;  ///< Of operations that somebody waits for.
  Counter& duplicates;
  Counter& known_tokens;
  Counter& parts;
  Gauge& pending;
  MetricRegistry& registry;  ///< For the reasons, of which each is made when it occurs first.
};

/// Runs clients' operations: finds the bucket, gives writes their timestamp, sends each to the replicas that must have
/// it, repeats what got no answer, and answers when it is settled. Confined to the executor.
///
/// An operation that depends on what is stored (an update, a condition, a token) is guarded: it has the document for
/// itself, waits until all replicas of its bucket are known to be equal, reads, decides, and is a plain write from then
/// on. Until that has ended, no other write of the document begins. The README says why that is enough.
class OperationEngine {
 public:
  OperationEngine(Context& context, BucketMaintainer& maintainer, NodeLatencies& latencies, TunableRegistry& tunables);

  /// A client's batch. What there is no room for is refused here, before it costs anything. From any thread; the rest
  /// on the executor.
  void arrive(rpc::Execute request, rpc::Responder respond);

  /// There is a new cluster state after `before`; null: it is the first.
  void state_changed(const rpc::ClusterSnapshot* before);
  /// Operations on buckets that are not known any more wait until they are again.
  void buckets_forgotten();
  /// All buckets are known: what waited is tried again.
  void state_ready();
  void bucket_ready(BucketId bucket);

  const Admission& admission() const { return admission_; }
  /// The cluster is up, or it is down and only writes are refused.
  bool reads_go_on() const;
  /// The timestamps of the writes that have not ended, or may be repeated, by BucketId::position() of their documents;
  /// of several writes on one place the lowest.
  std::map<std::uint64_t, std::uint64_t> oldest_under_way();

 private:
  /// What was decided about a batch when it came in.
  struct Arrival {
    MonotonicTime at;
    std::array<std::optional<Admission::Refusal>, Admission::kClasses> refused;  ///< All operations of a class.
    std::size_t bytes = 0;                                                       ///< Of those that were admitted.
  };
  /// The numbers of an operation that was refused at once.
  struct Refused {
    rpc::OperationKind kind = rpc::OperationKind::Unknown;
    std::uint64_t sequence = 0;
    std::uint32_t attempt = 0;
  };

  /// One operation of a client's batch.
  struct Op {
    GlobalId gid;
    BucketId bucket;
    MonotonicTime deadline;  ///< It ends then at the latest, and nothing is begun after it.
    bool admitted = false;   ///< In the budget.
    std::uint64_t timestamp_us = 0;
    std::uint32_t attempt = 0;  ///< Answers to an older attempt are dropped.
    bool settled = false;
    bool told = false;                   ///< Its result is in a part of the answer that was given.
    std::uint32_t at_large = 0;          ///< Writes sent and not refused for lack of space: some node may have it.
    bool counted = false;                ///< In its bucket's writes_under_way.
    bool partial = false;                ///< Some replica refused it for good.
    bool doubtful = false;               ///< Some replica may have taken it without saying so.
    bool outlived = false;               ///< Another distributor may have owned the bucket since it was sent.
    bool corrupt = false;                ///< A read: some damaged replica cannot tell what it had.
    std::uint16_t acknowledged = 0;      ///< Replicas that have it.
    std::vector<std::uint16_t> missing;  ///< Replicas whose answer is missing.
    std::vector<std::uint16_t> refused;  ///< Members that have no space for what comes from clients.
    bool completing = false;             ///< These were asked once more, because another member has it.
    /// Not 0: all members have it, the client has been answered, and `missing` are replicas that are being filled. It
    /// still counts as under way in its bucket, whose entry has this serial.
    std::uint64_t trailing = 0;
    std::optional<std::uint16_t> silent;  ///< The replica that gave no answer to the last read.
    Status last_problem;
    rpc::OperationResult result;
    std::unique_ptr<GuardedWrite> guard;  ///< Of an operation that reads before it writes.
    bool reading = false;                 ///< A guarded one that has not decided yet.
    bool has_turn = false;
    std::unique_ptr<FieldSet> fields;  ///< Get: if not all are wanted.
  };
  struct Batch {
    std::uint64_t number = 0;
    rpc::Execute request;
    rpc::Responder respond;
    std::vector<Op> ops;
    std::size_t left = 0;    ///< Operations that have not ended.
    std::size_t untold = 0;  ///< Operations that have ended and whose results are not in a part of the answer.
    std::size_t bytes = 0;
    MonotonicTime start;
    MonotonicTime part_at;  ///< Its client takes the outcomes that are known then.
    bool takes_parts = false;
    bool is_part_due = false;     ///< Outcomes are told as they become known.
    bool is_part_posted = false;  ///< Somebody is about to tell them.
    std::uint64_t rest = 0;       ///< Under which its client may ask for the rest; it has not done so yet.
    bool wrong_distribution = false;
  };
  struct OpRef {
    std::shared_ptr<Batch> batch;
    std::uint32_t index = 0;
    std::uint32_t attempt = 0;
    bool takes_rest = false;  ///< The storage node was asked for what damage has left.

    Op& op() const { return batch->ops[index]; }
    const rpc::Operation& request() const { return batch->request.operations[index]; }
    bool is_write() const { return request().kind != rpc::OperationKind::Get; }
    /// What it sees all members of the replica set have, so that nobody can see less later.
    bool is_session_read() const { return !is_write() && request().consistency == rpc::Consistency::Session; }
    /// Storage nodes are asked and not told.
    bool is_reading() const { return !is_write() || op().reading; }
    bool is_current() const { return !op().settled && op().attempt == attempt; }
  };
  using Windows = ClientWindows<OpRef>;
  /// A write in doubt, which its client may repeat under its timestamp. As long as it may, nobody is told that all
  /// writes up to that timestamp have ended.
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
  bool recognise_copy(const OpRef& ref);
  /// False if a write in doubt cannot be told any more from one that comes late: it stays in doubt.
  bool may_repeat(const OpRef& ref);
  void dispatch(OpRef ref);
  /// False: it has ended, as it is too late for it or this distributor may not do it.
  bool is_in_time_and_place(const OpRef& ref);
  /// False: it has ended, as the cluster is down.
  bool is_open_for(const OpRef& ref);
  /// The operation's bucket, which is made if need be. Null: the operation has ended, or waits.
  BucketEntry* entry_for(const OpRef& ref);
  void dispatch_write(const OpRef& ref, BucketEntry& entry);
  void dispatch_read(const OpRef& ref, BucketEntry& entry);
  /// A read of one named replica, which goes by what that replica answers alone (replica_read.h).
  void dispatch_to_replica(const OpRef& ref);
  void on_replica_result(const OpRef& ref, rpc::OperationResult result);
  /// True once the operation may begin on its document; false: it waits for the bucket or for its turn.
  bool may_begin(const OpRef& ref, BucketEntry& entry);
  void dispatch_guarded(const OpRef& ref, BucketEntry& entry);
  void decide(const OpRef& ref);
  void leave_turn(const OpRef& ref);
  /// NO_SPACE before anything is sent: else some members would have the put, and the full ones not.
  Status check_space(const OpRef& ref, const BucketEntry& entry) const;
  void count(BucketEntry& entry, Op& op);
  /// Too much waits for one of the replicas that would have to take a write.
  bool is_clogged(const BucketEntry& entry) const;
  void send(const OpRef& ref, std::uint16_t node, std::uint64_t epoch);
  void flush();
  static Duration time_for_reads(const std::vector<OpRef>& refs, MonotonicTime now);
  /// One of these replicas, of which each may be asked: one that is not slow if there is one. Slow ones are asked too,
  /// now and then, and nobody waits for that.
  std::uint16_t choose_reader(const OpRef& ref, const BucketEntry& entry, const std::vector<std::uint16_t>& candidates);
  void probe(const OpRef& ref, std::uint16_t node, std::uint64_t epoch);
  void on_reply(std::uint16_t node, const std::vector<OpRef>& refs, Result<rpc::ApplyReply> reply);
  void on_write_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result);
  void on_all_answered(const OpRef& ref);
  void send_to_filling(const OpRef& ref);
  void on_filling_result(const OpRef& ref, std::uint16_t node, const Status& status);
  void on_read_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result);
  /// True if the operation goes on with another replica.
  bool reads_elsewhere(const OpRef& ref, std::uint16_t node);
  void finish_read(const OpRef& ref);
  void retry_later(std::uint16_t node, std::vector<OpRef> refs);
  void finish_write(const OpRef& ref);
  /// Sets the timer of a batch: when a part of its answer is due, and when the first of its operations has to end.
  void watch(const std::shared_ptr<Batch>& batch);
  void on_time(const std::shared_ptr<Batch>& batch);
  void expire(const OpRef& ref);
  void settle(const OpRef& ref, Status status);
  void settle_token(const OpRef& ref, const Status& status);
  /// All operations of the batch have ended.
  void answer(Batch& batch);
  /// Answers with what is known, if anything is and somebody waits for it.
  void answer_part(const std::shared_ptr<Batch>& batch);
  void answer_part_soon(const std::shared_ptr<Batch>& batch);
  void answer_rest(std::uint64_t number, std::uint64_t client, rpc::Responder respond);
  rpc::ExecuteReply take_results(Batch& batch);
  void shape_document(const OpRef& ref);
  /// Ends an operation that cannot be served now; one that was sent already is in doubt instead.
  void refuse(const OpRef& ref, StatusCode code, const std::string& why);
  static bool is_retryable(const Status& status);

  Context& context_;
  BucketMaintainer& maintainer_;
  NodeLatencies& latencies_;
  OperationMetrics metrics_;
  GuardRails guard_rails_;
  Admission admission_;
  const Tunable& reads_when_down_;
  Windows windows_;
  std::map<ClientSequence, Doubt> doubts_;
  DocumentTurns<OpRef> turns_;
  MonotonicTime last_forget_;
  std::vector<OpRef> waiting_for_state_;
  std::map<std::uint64_t, std::vector<OpRef>> waiting_for_bucket_;  // By raw bucket id.
  struct Outgoing {
    std::vector<rpc::StorageOperation> operations;
    std::vector<OpRef> refs;
    std::uint32_t in_background = 0;  ///< Of the operations.
  };
  std::map<std::uint16_t, Outgoing> outbox_;
  std::map<std::uint64_t, std::shared_ptr<Batch>> batches_;  // Those not answered yet, in order of arrival.
  UnclaimedAnswers<Batch> unclaimed_;
  std::uint64_t next_batch_ = 1;
  std::uint64_t next_message_;  ///< To a storage node. From the wall clock on: rises over restarts, too.
};

}  // namespace fjord::distributor
