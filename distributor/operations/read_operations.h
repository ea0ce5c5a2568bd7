#pragma once

#include "context.h"
#include "maintenance/bucket_maintainer.h"
#include "operation_settler.h"
#include "replica_messenger.h"

namespace fjord::distributor {

/// Reads of documents: chooses the replicas that are asked, and makes one result of their answers. The reads of
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
  /// Takes one replica's answer. True when it was the last one: Op::result is the newest.
  bool take_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result);
  /// Notes damage that a read has met on the node. True if the read goes on with another replica.
  bool reads_elsewhere(const OpRef& ref, std::uint16_t node);
  /// False: the read has ended with CORRUPTION, since nothing tells what the damaged replicas had.
  bool is_known(const OpRef& ref);
  /// Ends a get with its result.
  void finish(const OpRef& ref);

 private:
  void on_replica_result(const OpRef& ref, rpc::OperationResult result);

  Context& context_;
  Parts parts_;
};

}  // namespace fjord::distributor
