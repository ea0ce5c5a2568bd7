#pragma once

#include "context.h"
#include "guard_rails.h"
#include "operation_metrics.h"
#include "operation_settler.h"
#include "read_operations.h"
#include "replica_messenger.h"
#include "write_operations.h"

namespace fjord::distributor {

/// Operations that depend on stored data (an update, a condition, a token). Such an operation has locked its document
/// exclusively and waited until all replicas of its bucket are known to be equal. It reads, decides, and then becomes a
/// plain write. No other write of the document begins before it has ended. The README says why that is enough. Confined
/// to the executor.
class ConditionalOperations {
 public:
  struct Parts {
    GuardRails& guard_rails;
    OperationMetrics& metrics;
    ReplicaMessenger& messenger;
    OperationSettler& settler;
    ReadOperations& reads;
    WriteOperations& writes;
  };
  ConditionalOperations(Context& context, Parts parts) : context_(context), parts_(parts) {}

  void dispatch(const OpRef& ref, BucketEntry& entry);
  /// Continues the operation when its read has ended.
  void decide(const OpRef& ref);

 private:
  /// Replaces the decision to write by a failure if the content is too large or a member has no space for it.
  void check_content(const OpRef& ref, const BucketEntry& entry, ConditionalWrite::Decision& decision);

  Context& context_;
  Parts parts_;
};

}  // namespace fjord::distributor
