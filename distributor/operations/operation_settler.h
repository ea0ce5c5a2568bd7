#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "admission.h"
#include "batch_answers.h"
#include "context.h"
#include "document_locks.h"
#include "maintenance/bucket_maintainer.h"
#include "operation_metrics.h"
#include "request_records.h"

namespace fjord::distributor {

/// Ends operations: removes them from their bucket's count, releases their locks, records their outcomes for
/// duplicates, counts them, and has their clients answered. Confined to the executor.
class OperationSettler {
 public:
  struct Parts {
    BucketMaintainer& maintainer;
    Admission& admission;
    OperationMetrics& metrics;
    RequestRecords& records;
    BatchAnswers& answers;
  };
  /// `next` continues operations that have got the lock of their document.
  OperationSettler(Context& context, Parts parts, std::function<void(const std::vector<OpRef>&)> next)
      : context_(context), parts_(parts), next_(std::move(next)) {}

  void settle(const OpRef& ref, Status status);
  /// Ends an operation that cannot be served now, with `code`. If it is a write that was sent, it ends in doubt
  /// instead.
  void refuse(const OpRef& ref, StatusCode code, const std::string& why);
  /// Refuses an operation with BUSY before it has begun.
  void refuse_at_once(const OpRef& ref, Admission::Refusal why);
  /// Ends an operation whose deadline has passed.
  void expire(const OpRef& ref);
  /// Removes a write from the count of its bucket.
  void uncount(BucketEntry& entry);

  /// Returns the locks of documents; operations hold them until they end.
  DocumentLocks<OpRef>& locks() { return locks_; }

 private:
  void release_lock(const OpRef& ref);

  Context& context_;
  Parts parts_;
  std::function<void(const std::vector<OpRef>&)> next_;
  DocumentLocks<OpRef> locks_;
};

}  // namespace fjord::distributor
