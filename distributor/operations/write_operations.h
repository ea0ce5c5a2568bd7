#pragma once

#include "context.h"
#include "maintenance/bucket_maintainer.h"
#include "node_latencies.h"
#include "operation_settler.h"
#include "replica_messenger.h"

namespace fjord::distributor {

/// Executes writes: gives them timestamps, sends them to all members and then to the replicas that are catching up, and
/// concludes from the answers how they ended. Confined to the executor.
class WriteOperations {
 public:
  struct Parts {
    BucketMaintainer& maintainer;
    Admission& admission;
    NodeLatencies& latencies;
    ReplicaMessenger& messenger;
    OperationSettler& settler;
  };
  WriteOperations(Context& context, Parts parts) : context_(context), parts_(parts) {}

  void dispatch(const OpRef& ref, BucketEntry& entry);
  void on_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result);
  void on_catching_up_result(const OpRef& ref, std::uint16_t node, const Status& status);
  /// Returns NO_SPACE before anything is sent, if a member is full. Otherwise some members would get the put and the
  /// full ones would not.
  Status check_space(const OpRef& ref, const BucketEntry& entry) const;
  /// Returns true if too many operations wait for one of the replicas that would have to take a write.
  bool is_clogged(const BucketEntry& entry) const;
  /// Counts the operation as a write in flight in its bucket.
  static void count(BucketEntry& entry, Op& op);

 private:
  bool is_clogged(std::uint16_t node) const;
  void on_all_answered(const OpRef& ref);
  void send_to_catching_up(const OpRef& ref);
  void finish(const OpRef& ref);

  Context& context_;
  Parts parts_;
};

}  // namespace fjord::distributor
