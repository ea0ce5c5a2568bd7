#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "context.h"
#include "fjord/common/tunable.h"
#include "maintenance/split_check.h"

namespace fjord::distributor {

/// Splits large buckets and joins small siblings, on all replicas of a bucket at once, and only if the replicas are in
/// sync on their ideal nodes. The bucket is paused meanwhile. If a new cluster state interrupts the work, the recovery
/// that follows finds what is left to do (docs/design/0005, "Split and join"). Confined to the executor.
class BucketReshaper {
 public:
  struct Hooks {
    std::function<void(BucketEntry&)> install;   ///< Installs the set of a new entry and puts the bucket in service.
    std::function<void(BucketId)> bucket_ready;  ///< Called when operations that waited for the bucket may continue.
  };
  BucketReshaper(Context& context, TunableRegistry& tunables, Hooks hooks);

  /// Drops all work, because there is a new cluster state.
  void forget();
  std::uint64_t entries_limit() const { return static_cast<std::uint64_t>(entries_.value()); }
  std::uint64_t bytes_limit() const { return static_cast<std::uint64_t>(bytes_.value()); }
  /// Splits the bucket if `info`, the size of its replica at `node`, is above a limit and a split helps.
  void note_size(BucketEntry& entry, std::uint16_t node, const BucketInfo& info);
  /// Splits buckets that use fewer bits than they should.
  void look_for_few_bits();
  /// Asks for the sizes of siblings and joins them if both are small.
  void look_for_joins();
  /// Must be called when the last write in flight to a bucket that is being reshaped has ended.
  void drained(const BucketEntry& entry);

 private:
  enum class Stage {
    Draining,    ///< Waits for the end of the writes in flight.
    Equalising,  ///< Only for a join: gives both halves the same replica set.
    Changing,    ///< The replicas split or join.
  };
  struct Work {
    Stage stage = Stage::Draining;
    BucketId parent;
    std::vector<BucketTicket> buckets;  ///< For a split the parent, for a join its two halves.
    ReplicaSet set;                     ///< The replica set of all these buckets.
    std::set<std::uint16_t> missing;    ///< Members that have not done this stage yet.
    bool is_join() const { return buckets.size() > 1; }
  };

  /// A large bucket that is being examined. The replica is asked for its first group of entries, and then for a group
  /// in the second half, which shows whether a split would divide the entries.
  struct Inspection {
    BucketTicket ticket;
    std::uint16_t node = 0;
    BucketInfo info;
  };
  using OnGroup = std::function<void(std::optional<std::uint64_t> group)>;
  SizeLimits limits() const { return {entries_limit(), bytes_limit()}; }
  void inspect(const Inspection& inspection);
  void inspect_one_side(const Inspection& inspection, std::uint64_t first_group);
  void inspected(const Inspection& inspection, BucketShape shape);
  /// Calls `done` with the first group of entries behind `after` (empty: from the start), or with nothing if there is
  /// none.
  void ask_for_group(const Inspection& inspection, std::optional<std::uint64_t> after, OnGroup done);

  void enqueue(Work work);
  void start_some();
  bool start(Work work);
  void abandon(std::uint64_t number);
  void enter(std::uint64_t number, Stage stage);
  void ask(std::uint64_t number, std::uint16_t node);
  void on_answer(std::uint64_t number, Stage stage, std::uint16_t node, const Status& status);
  void finish(std::uint64_t number);
  void consider_joins(const std::vector<BucketTicket>& lows, const std::vector<rpc::BucketReport>& reports);

  Context& context_;
  Hooks hooks_;
  const Tunable& entries_;
  const Tunable& bytes_;
  Counter& splits_;
  Counter& joins_;
  std::deque<Work> queue_;
  std::unordered_set<std::uint64_t> queued_;  ///< The parents of queue_; each is there once.
  std::map<std::uint64_t, Work> works_;       ///< Splits and joins in progress, by number.
  std::uint64_t last_number_ = 0;
  /// Large buckets that are being examined, or that a split would not help, with their size when they were examined.
  std::map<std::uint64_t, BucketInfo> inspected_;
};

}  // namespace fjord::distributor
