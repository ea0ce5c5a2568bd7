#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>

#include "bucket_table.h"
#include "rewrite_scheduler.h"

namespace fjord::slotfile {

/// Splits and joins slots and buckets. Each change is one edit in the journal; no document is copied.
///
/// Threading: confined to the engine's executor.
class StructureEditor {
 public:
  StructureEditor(BucketTable& table, RewriteScheduler& rewrites)
      : table_(table), context_(table.context()), rewrites_(rewrites) {}

  // --- Slots

  /// Notes that a slot of the bucket with this uid may have become too large.
  void note_overfull(std::uint64_t uid) { overfull_.insert(uid); }
  /// Splits a slot that a batch made too large, before it grows further: a split takes longer the larger the slot is.
  bool split_some_slot();
  /// Splits the first slot of the bucket that is too large. Returns false if there is none.
  Result<bool> split_slot_of(Bucket& bucket);
  /// Joins two neighbouring slots that have become small.
  bool join_some_slots();

  // --- Buckets

  /// Splits a bucket into its halves. Errors: NotFound; InvalidArgument; those of BucketTable::commit().
  Status split_bucket(BucketId bucket);
  Status join_buckets(BucketId parent);
  void drop(Bucket& bucket);

 private:
  bool wants_split(const Bucket& bucket, const Slot& slot) const;
  Status split_slot(Bucket& bucket, const Slot& slot);
  Status prepare(Bucket& bucket, unsigned first_cell, unsigned end_cell);
  std::unique_ptr<Slot> combine(std::span<Bucket* const> sources, BucketId id, unsigned first_cell, unsigned depth,
                                const spi::Forgotten& forgotten);
  std::unique_ptr<Bucket> combine_all(std::span<Bucket* const> sources, BucketId id, unsigned depth,
                                      const ReplicaSet& replicas);
  Status replace_slots(Bucket& bucket, unsigned first_cell, unsigned end_cell, unsigned depth);
  Status replace_buckets(std::span<Bucket* const> sources, std::span<const BucketId> targets);

  BucketTable& table_;
  EngineContext& context_;
  RewriteScheduler& rewrites_;
  std::set<std::uint64_t> overfull_;  ///< Uids of buckets in which a slot may be too large.
};

}  // namespace fjord::slotfile
