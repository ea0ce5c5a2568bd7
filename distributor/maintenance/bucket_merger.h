#pragma once

#include <functional>

#include "context.h"
#include "maintenance/merge_failures.h"

namespace fjord::distributor {

/// The replicas that are catching up and may be filled now: their nodes have the space, and while moves are paused no
/// more of them than members are missing.
NodeIndexes fillable(const BucketEntry& entry, const Context& context, bool moves_paused);

/// Merges the replicas of a bucket: first one member from all other replicas, then the other members from that one,
/// then the replicas that are catching up. What it has done is in the entry (`Merge`). Confined to the executor.
class BucketMerger {
 public:
  struct Hooks {
    std::function<void(BucketEntry&, bool ok)> done;
    /// The members are equal, while replicas are still catching up: operations that waited for it may go on.
    std::function<void(BucketEntry&)> members_equal;
    std::function<void(BucketEntry&, std::uint16_t)> damaged;  ///< The node's replica has lost data.
    std::function<bool()> moves_paused;                        ///< Nothing is moved now: MergeScheduler::is_paused().
  };
  /// Errors are noted in `failures`, which outlives this.
  BucketMerger(Context& context, MergeFailures& failures, Hooks hooks)
      : context_(context), failures_(failures), hooks_(std::move(hooks)) {}

  /// Begins the merge of an entry in activity::Merging. `done` follows, unless the entry is reset or its merge stopped.
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
