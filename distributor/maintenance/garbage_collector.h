#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "context.h"
#include "maintenance/bucket_maintainer.h"

namespace fjord::distributor {

/// Removes documents that their types do not want to keep any more (DocumentType::keep_while). It goes through the
/// buckets one after the other, once each `maintenance.gc_interval`: a storage node names what it takes for garbage,
/// and each of these is removed by an ordinary operation with the condition that the document *is* garbage. So what
/// decides is the newest version of the document when it is removed, by the clock of the owner, and a write that comes
/// meanwhile is never lost.
///
/// It has the lowest priority: one bucket at a time, only while no merge waits, never while maintenance is paused, and
/// with a pause after each batch of removals that is as long as the batch took. Buckets that are not in order are left
/// for the next time. Confined to the executor.
class GarbageCollector {
 public:
  /// Executes operations as those of a client.
  using Execute = std::function<void(rpc::Execute, rpc::Responder)>;

  GarbageCollector(Context& context, const BucketMaintainer& maintainer, TunableRegistry& tunables, Execute execute);

 private:
  struct Found {
    BucketTicket bucket;
    std::vector<rpc::Operation> removals;
    std::size_t begun = 0;      ///< Of `removals`.
    std::size_t collected = 0;  ///< So many of them removed something.
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
  bool working_ = false;        ///< On a bucket.
  bool passing_ = false;        ///< Through the buckets.
  std::uint64_t next_key_ = 0;  ///< BucketId::sort_key() from which the pass goes on.
  MonotonicTime pass_began_{0};
  Counter& searched_;
  Counter& scanned_;
  Counter& collected_;
  Counter& failures_;
};

}  // namespace fjord::distributor
