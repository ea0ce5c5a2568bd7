#pragma once

#include "bucket_table.h"
#include "rewrite_scheduler.h"

namespace fjord::slotfile {

/// The end of a bucket's damage: its suspect slots are rewritten, what was lost is forgotten, and the catalog is told.
/// The contract of these calls is that of spi::PersistenceProvider.
///
/// Threading: confined to the engine's executor.
class BucketRepair {
 public:
  BucketRepair(BucketTable& table, RewriteScheduler& rewrites)
      : table_(table), context_(table.context()), rewrites_(rewrites) {}

  Result<bool> renew(BucketId bucket);
  /// Like renew(), but renews the whole bucket in this call. Does nothing if the bucket is not damaged.
  Status renew_now(BucketId bucket);
  Status forget_lost(BucketId bucket);
  Status mark_repaired(BucketId bucket);
  /// Makes newly found damage durable. After an error it is tried again a second later; other work does not wait for
  /// it, as that may give the space back that is missing.
  void save_damage(MonotonicTime now);

 private:
  BucketTable& table_;
  EngineContext& context_;
  RewriteScheduler& rewrites_;
  MonotonicTime save_at_;  ///< No earlier than this, newly found damage is made durable.
};

}  // namespace fjord::slotfile
