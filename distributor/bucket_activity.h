#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "replica_set_state.h"

namespace fjord::distributor {

/// A merge of a bucket's replicas, from its first message until its result is in force.
struct Merge {
  std::uint32_t run = 0;       ///< Number of the merge; answers to earlier ones are dropped.
  std::uint16_t primary = 0;   ///< Member that the merge completes first.
  bool moves = false;          ///< It did not begin for safety (is_for_safety()).
  bool disturbed = false;      ///< A write missed a replica, or damage was found, since it began.
  bool fill_deferred = false;  ///< `filled` lacks some of ReplicaSetState::catching_up.
  NodeIndexes filled;          ///< Replicas that were catching up and that it completes.
};

/// Times up to which the replicas of a bucket drop remove entries and tokens (docs/design/0013).
struct ForgetTimes {
  std::uint64_t removes_us = 0;
  std::uint64_t tokens_us = 0;
};

/// What there is to do until a replica set is in force on all its nodes.
struct Installation {
  NodeIndexes joining;                ///< New or damaged members: they receive the set after the other members.
  NodeIndexes removed;                ///< Replicas outside of the set: they receive it last, before it is served.
  NodeIndexes surplus;                ///< Replicas that are deleted as soon as the set is in force.
  NodeIndexes repaired;               ///< Damaged replicas that the set marks as repaired.
  BucketInfo intact;                  ///< Content of an intact replica, which the repaired ones have too.
  std::optional<ForgetTimes> forget;  ///< The replicas drop entries with the set.
  std::set<std::uint16_t> missing;    ///< Nodes that have not confirmed it yet.
  std::optional<BucketInfo> content;  ///< Content that the first member has reported.
};

/// What a distributor does with a bucket. Operations start only while it is Idle or Merging.
namespace activity {
/// Storage nodes are asked for their reports; operations wait.
struct Collecting {};
/// Its documents may be on a node that is down; operations are refused.
struct Unavailable {
  std::string reason;
};
/// Its replica set is being installed.
struct Installing {
  std::unique_ptr<Installation> work;
};
struct Idle {};
/// A merge is under way.
struct Merging {
  Merge merge;
};
/// The merge is done. The replica set that follows waits for the end of the writes in flight.
struct Draining {
  Merge merge;
};
/// The merge is done, no write is in flight, and the replicas are compared, since one of them was damaged.
struct Comparing {
  Merge merge;
};
/// Its replicas are to drop old entries, as soon as its writes have ended.
struct Forgetting {
  std::uint64_t surplus_tokens_us = 0;  ///< Time of the newest token that is one too many.
};
/// A split or join waits for the end of its writes, or is under way.
struct Reshaping {
  std::uint64_t number = 0;  ///< Number of the split or join.
};
}  // namespace activity

using BucketActivity =
    std::variant<activity::Collecting, activity::Unavailable, activity::Installing, activity::Idle, activity::Merging,
                 activity::Draining, activity::Comparing, activity::Forgetting, activity::Reshaping>;

/// What happens to a bucket's activity.
namespace event {
/// No replica that may be served is left on the nodes that are up.
struct NotAvailable {
  std::string reason;
};
/// The replica set that the nodes hold is still in force.
struct SetConfirmed {};
/// A replica set has to be installed.
struct Install {
  std::unique_ptr<Installation> work;
};
/// All nodes have confirmed the set.
struct Installed {};
struct MergeStarted {
  std::uint32_t run = 0;
  bool moves = false;
};
/// The merge failed, was disturbed, or gave way to a more urgent one.
struct MergeStopped {};
/// All replicas hold the same, unless a write in flight changes that.
struct MergeSucceeded {};
/// Replicas have to be compared before the merge counts.
struct CompareStarted {};
struct ForgetStarted {
  std::uint64_t surplus_tokens_us = 0;
};
struct ReshapeStarted {
  std::uint64_t number = 0;
};
/// What the bucket was paused for is given up.
struct Resumed {};
}  // namespace event

using BucketEvent = std::variant<event::NotAvailable, event::SetConfirmed, event::Install, event::Installed,
                                 event::MergeStarted, event::MergeStopped, event::MergeSucceeded, event::CompareStarted,
                                 event::ForgetStarted, event::ReshapeStarted, event::Resumed>;

/// True if the event may happen in this activity; the table is in bucket_activity.cpp. Pure.
bool is_allowed(const BucketActivity& activity, const BucketEvent& event);

/// The activity that follows. Ends the process if the event is not allowed, since only a bug can cause that. Pure.
BucketActivity transition(BucketActivity activity, BucketEvent event);

/// Names for error messages and tests.
const char* name_of(const BucketActivity& activity);
const char* name_of(const BucketEvent& event);

}  // namespace fjord::distributor
