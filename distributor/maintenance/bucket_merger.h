#pragma once

#include <functional>

#include "context.h"
#include "maintenance/merge_failures.h"

namespace fjord::distributor {

/// Returns the replicas that are catching up and may be filled now: their nodes have the space. While moves are paused,
/// there are at most as many as members are missing.
NodeIndexes fillable(const BucketEntry& entry, const Context& context, bool moves_paused);

/// Merges the replicas of a bucket: first one member from all other replicas, then the other members from that one,
/// then the replicas that are catching up. The bucket's entry says what is done (`Merge`). Confined to the executor.
class BucketMerger {
 public:
  struct Hooks {
    std::function<void(BucketEntry&, bool ok)> done;
    /// Called when the members are equal, while replicas are still catching up: operations that waited for this may
    /// continue.
    std::function<void(BucketEntry&)> members_equal;
    std::function<void(BucketEntry&, std::uint16_t)> damaged;  ///< Called when the node's replica has lost data.
    std::function<bool()> moves_paused;  ///< Returns true if no replica may be moved now: MergeScheduler::is_paused().
  };
  /// The merger notes errors in `failures`, which outlives it.
  BucketMerger(Context& context, MergeFailures& failures, Hooks hooks)
      : context_(context), failures_(failures), hooks_(std::move(hooks)) {}

  /// Begins the merge of an entry in activity::Merging. The hook `done` is called at the end, unless the entry is reset
  /// or its merge stopped.
  void merge(BucketEntry& entry);

 private:
  using Then = UniqueFunction<void(BucketEntry&, bool ok)>;
  void merge_members(BucketEntry& entry);
  void merge_catching_up(BucketEntry& entry);
  std::uint16_t source_of(const BucketEntry& entry) const;
  void merge_from_primary(BucketEntry& entry, const NodeIndexes& targets, Then then);
  void send(const BucketEntry& entry, std::uint16_t target, NodeIndexes sources, NodeIndexes non_members, Then then);
  void on_answer(BucketEntry& entry, std::uint16_t target, const Status& status);

  Context& context_;
  MergeFailures& failures_;
  Hooks hooks_;
};

}  // namespace fjord::distributor
