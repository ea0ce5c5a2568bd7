#pragma once

#include "context.h"
#include "maintenance/bucket_maintainer.h"
#include "operation_settler.h"
#include "replica_messenger.h"

namespace fjord::distributor {

/// Reads documents: chooses the replicas that are asked, and makes one result of their answers. The reads of
/// conditional operations end here, too. Confined to the executor.
class ReadOperations {
 public:
  struct Parts {
    BucketMaintainer& maintainer;
    ReplicaMessenger& messenger;
    OperationSettler& settler;
  };
  ReadOperations(Context& context, Parts parts) : context_(context), parts_(parts) {}

  void dispatch(const OpRef& ref, BucketEntry& entry);
  /// Reads one named replica, whatever the replica set says (replica_read.h). `entry` is null if the bucket does not
  /// exist.
  void dispatch_to_replica(const OpRef& ref, const BucketEntry* entry);
  /// Handles one replica's answer. Returns true if it was the last one: Op::result is then the newest answer.
  bool take_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result);
  /// Notes damage that a read has met on the node. Returns true if the read continues with another replica.
  bool reads_elsewhere(const OpRef& ref, std::uint16_t node);
  /// Returns false if the read has been ended with CORRUPTION, since it is unknown what the damaged replicas had.
  bool is_known(const OpRef& ref);
  /// Ends a get with the result that Op::result has.
  void finish(const OpRef& ref);

 private:
  void on_replica_result(const OpRef& ref, rpc::OperationResult result);

  Context& context_;
  Parts parts_;
};

}  // namespace fjord::distributor
