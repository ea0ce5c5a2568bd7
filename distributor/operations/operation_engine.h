#pragma once

#include <map>
#include <memory>
#include <vector>

#include "admission.h"
#include "batch_answers.h"
#include "conditional_operations.h"
#include "context.h"
#include "guard_rails.h"
#include "maintenance/bucket_maintainer.h"
#include "node_latencies.h"
#include "operation_intake.h"
#include "operation_metrics.h"
#include "operation_settler.h"
#include "read_operations.h"
#include "replica_messenger.h"
#include "request_records.h"
#include "write_operations.h"

namespace fjord::distributor {

/// Runs clients' operations: connects the parts that execute them, finds the bucket of an operation, decides when it
/// may begin, and keeps those that wait for a bucket or for a cluster state. Confined to the executor.
class OperationEngine {
 public:
  OperationEngine(Context& context, BucketMaintainer& maintainer, NodeLatencies& latencies, TunableRegistry& tunables);

  /// Accepts a client's batch. Threading: any thread; the rest runs on the executor.
  void arrive(rpc::Execute request, rpc::Responder respond) { intake_.arrive(std::move(request), std::move(respond)); }

  /// Handles a new cluster state that follows `before`; null: it is the first.
  void state_changed(const rpc::ClusterSnapshot* before);
  /// Must be called when buckets are no longer known: operations on them wait until they are known again.
  void buckets_forgotten();
  /// Must be called when all buckets are known: operations that waited are tried again.
  void state_ready();
  void bucket_ready(BucketId bucket);

  /// Returns true if the cluster is up, or if only writes are refused while it is down.
  bool reads_go_on() const;
  /// Returns the timestamps of the writes that have not ended or may be repeated, by BucketId::position() of their
  /// documents; the lowest if there are several at one position.
  std::map<std::uint64_t, std::uint64_t> oldest_under_way();

 private:
  void begin(const std::shared_ptr<Batch>& batch, const OperationIntake::Arrival& arrival);
  void admit(const OpRef& ref);
  void dispatch(OpRef ref);
  /// Returns false if the operation has been ended, because its deadline has passed or this distributor may not execute
  /// it.
  bool is_in_time_and_place(const OpRef& ref);
  /// Returns false if the operation has been ended, because the cluster is down.
  bool is_open_for(const OpRef& ref);
  /// Finds the operation's bucket and notes it in `op`. Returns null if the bucket is not known or does not exist.
  BucketEntry* find_entry(Op& op);
  /// Returns true if the bucket is not known yet; the operation then waits for it.
  bool waits_for_state(const OpRef& ref, const BucketEntry* entry);
  /// Creates the operation's bucket, which does not exist. Returns null if the operation has been ended instead.
  BucketEntry* create_entry(const OpRef& ref);
  /// Returns true if the operation may begin. Otherwise it waits for its bucket or for the lock of its document.
  bool may_begin(const OpRef& ref, BucketEntry& entry);
  bool is_known(BucketId bucket) const;
  void dispatch_all(const std::vector<OpRef>& refs);
  void on_answer(std::uint16_t node, const std::vector<OpRef>& refs, Result<rpc::ApplyReply> reply);
  /// Handles one replica's result. Returns true if the operation has to be tried again.
  bool on_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result);

  Context& context_;
  BucketMaintainer& maintainer_;
  OperationMetrics metrics_;
  GuardRails guard_rails_;
  Admission admission_;
  const Tunable& reads_when_down_;
  RequestRecords records_;
  BatchAnswers answers_;
  OperationSettler settler_;
  ReplicaMessenger messenger_;
  OperationIntake intake_;
  ReadOperations reads_;
  WriteOperations writes_;
  ConditionalOperations conditionals_;
  std::vector<OpRef> waiting_for_state_;
  std::map<std::uint64_t, std::vector<OpRef>> waiting_for_bucket_;  // By raw bucket id.
};

}  // namespace fjord::distributor
