#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "context.h"
#include "maintenance/bucket_maintainer.h"

namespace fjord::distributor {

/// Removes documents that their types no longer keep (DocumentType::keep_while). It goes through the buckets one after
/// the other, once each `maintenance.gc_interval`. A storage node names documents that may be garbage, and each is
/// removed by an ordinary operation with the condition that the document *is* garbage. So the newest version of the
/// document and the clock of the owner decide at the time of the removal, and a concurrent write is never lost.
///
/// Garbage collection has the lowest priority: one bucket at a time, only while no merge waits, never while maintenance
/// is paused. After each batch of removals it pauses for as long as the batch took. It skips buckets that are not in
/// order until the next pass. Confined to the executor.
class GarbageCollector {
 public:
  /// Executes operations like operations of a client.
  using Execute = std::function<void(rpc::Execute, rpc::Responder)>;

  GarbageCollector(Context& context, const BucketMaintainer& maintainer, TunableRegistry& tunables, Execute execute);

 private:
  struct Found {
    BucketTicket bucket;
    std::vector<rpc::Operation> removals;
    std::size_t begun = 0;      ///< Number of elements of `removals` that were sent.
    std::size_t collected = 0;  ///< Number of removals that removed a document.
    bool more = false;
  };

  void tick();
  bool may_work() const;
  void next_bucket();
  void search(const BucketEntry& entry);
  void on_found(const BucketTicket& bucket, rpc::FindGarbageReply reply);
  void remove_some(const std::shared_ptr<Found>& found);
  void on_removed(const std::shared_ptr<Found>& found, const rpc::ExecuteReply& reply, Duration took);

  Context& context_;
  const BucketMaintainer& maintainer_;
  const Tunable& interval_ms_;
  Execute execute_;
  bool working_ = false;        ///< A bucket is being searched.
  bool passing_ = false;        ///< A pass through all buckets is in progress.
  std::uint64_t next_key_ = 0;  ///< BucketId::sort_key() at which the pass continues.
  MonotonicTime pass_began_{0};
  Counter& searched_;
  Counter& scanned_;
  Counter& collected_;
  Counter& failures_;
};

}  // namespace fjord::distributor
