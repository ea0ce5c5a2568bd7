#pragma once

#include <functional>
#include <map>

#include "context.h"
#include "maintenance/merge_scheduler.h"
#include "maintenance/replica_set_installer.h"

namespace fjord::distributor {

/// Repairs replicas that have lost data. It has them merged from an intact member, compares them with that member while
/// nothing is written, and marks them as repaired in the next replica set (docs/design/0004). Confined to the executor.
class ReplicaRepair {
 public:
  ReplicaRepair(Context& context, MergeScheduler& merges, ReplicaSetInstaller& installer);

  /// Notes that a replica has lost data, and has it merged from an intact one.
  void note_damaged(BucketEntry& entry, std::uint16_t node);
  /// Counts damaged replicas that storage nodes have reported.
  void count_damaged(std::size_t replicas) { damaged_.add(replicas); }
  /// Begins the unsafe recovery of a bucket without an intact replica: what is left becomes its content, once its
  /// replicas are equal. Errors: NotReady; NotFound if there is no such bucket here; InvalidArgument if a replica is
  /// intact.
  Status recover_unsafely(BucketId bucket);
  /// Ends the entry's merge, with no write in flight. Installs the next replica set; if a replica was damaged, compares
  /// the replicas first.
  void finish_merge(BucketEntry& entry);

 private:
  using Reports = std::map<std::uint16_t, rpc::BucketReport>;
  void compare(BucketEntry& entry);
  void on_compared(BucketEntry& entry, const Reports& reports, std::size_t asked);
  void keep_set(BucketEntry& entry);
  void extend(BucketEntry& entry, Installation work = {});

  Context& context_;
  MergeScheduler& merges_;
  ReplicaSetInstaller& installer_;
  Counter& damaged_;
  Counter& repaired_;
  Counter& unsafely_recovered_;
};

}  // namespace fjord::distributor
