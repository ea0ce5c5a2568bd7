#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "context.h"
#include "fjord/common/tunable.h"
#include "maintenance/split_check.h"

namespace fjord::distributor {

/// Splits buckets that have become large and joins siblings that have become small, on all their replicas at once. Only
/// buckets whose replicas are in sync where they belong. The bucket is paused while it is done; what is interrupted by
/// a new cluster state is found by the recovery that follows (docs/design/0005, "Split and join"). Confined to the
/// executor.
class BucketReshaper {
 public:
  struct Hooks {
    std::function<void(BucketId)> install;       ///< Writes the set of a fresh entry down and puts it in service.
    std::function<void(BucketId)> bucket_ready;  ///< Operations that waited for the bucket may go on.
  };
  BucketReshaper(Context& context, TunableRegistry& tunables, Hooks hooks);

  /// There is a new cluster state: nothing is under way any more.
  void forget();
  std::uint64_t entries_limit() const { return static_cast<std::uint64_t>(entries_.value()); }
  std::uint64_t bytes_limit() const { return static_cast<std::uint64_t>(bytes_.value()); }
  /// The replica at `node` holds that much: splits the bucket if it is above a limit and a split helps.
  void note_size(BucketEntry& entry, std::uint16_t node, const BucketInfo& info);
  /// Splits buckets that use fewer bits than they should.
  void look_for_few_bits();
  /// Asks for the sizes of siblings and joins them where both are small.
  void look_for_joins();
  /// The last write under way in a bucket that is being reshaped has ended.
  void drained(const BucketEntry& entry);

 private:
  enum class Stage {
    Draining,    ///< Writes under way end.
    Equalising,  ///< Join: both halves get one replica set.
    Changing,    ///< Replicas split or join.
  };
  struct Work {
    Stage stage = Stage::Draining;
    BucketId parent;
    std::vector<BucketTicket> buckets;  ///< The parent, or its two halves.
    ReplicaSet set;                     ///< Of all of them.
    std::set<std::uint16_t> missing;    ///< Members that have not done this stage yet.
    bool is_join() const { return buckets.size() > 1; }
  };

  /// A bucket that is to be split if its entries lie so that this helps: asks the replica for the first group of
  /// entries, then for one where it would show how they lie.
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
  /// `done` gets the first group behind `after` (empty: from the start), if there is one.
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
  std::map<std::uint64_t, Work> works_;  ///< Under way, by number.
  std::uint64_t last_number_ = 0;
  /// Large buckets that are being inspected, or that a split would not help, with what they held then.
  std::map<std::uint64_t, BucketInfo> inspected_;
};

}  // namespace fjord::distributor
