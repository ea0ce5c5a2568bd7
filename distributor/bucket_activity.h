#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "replica_set_state.h"

namespace fjord::distributor {

/// A merge of a bucket's replicas, from its first message until the replica set with its result is in force.
struct Merge {
  std::uint32_t run = 0;      ///< Number of the merge; answers to earlier merges are dropped.
  std::uint16_t primary = 0;  ///< The member that the merge first brings up to date, from all other replicas.
  bool moves = false;         ///< The merge was not begun for safety (is_for_safety()), but to move a replica.
  /// Since the merge began, a write missed a replica or damage was found, so that another merge is needed.
  bool disturbed = false;
  bool fill_deferred = false;  ///< `filled` lacks some of ReplicaSetState::catching_up; a later merge fills them.
  NodeIndexes filled;          ///< Replicas that were catching up and get complete by this merge.
};

/// Times up to which the replicas of a bucket drop remove entries and tokens (docs/design/0013).
struct ForgetTimes {
  std::uint64_t removes_us = 0;
  std::uint64_t tokens_us = 0;
};

/// The work that is left until a replica set is in force on all its nodes.
struct Installation {
  NodeIndexes joining;  ///< New or damaged members: they receive the set after the other members.
  NodeIndexes removed;  ///< Nodes with replicas outside of the set. They receive the set last, but before it is served.
  NodeIndexes surplus;  ///< Replicas that are deleted as soon as the set is in force.
  NodeIndexes repaired;               ///< Damaged replicas that the set marks as repaired.
  BucketInfo intact;                  ///< Content of an intact replica; the repaired replicas have it too.
  std::optional<ForgetTimes> forget;  ///< If set, the replicas drop old entries when they receive the set.
  std::set<std::uint16_t> missing;    ///< Nodes that have not confirmed the set yet.
  std::optional<BucketInfo> content;  ///< Content that the first member to confirm the set has reported.
};

/// What a distributor does with a bucket at present. Operations start only while it is Idle or Merging.
namespace activity {
/// Storage nodes are asked for their reports; operations wait.
struct Collecting {};
/// The bucket's documents may be on a node that is down; operations are refused.
struct Unavailable {
  std::string reason;
};
/// The bucket's replica set is being installed on its nodes.
struct Installing {
  std::unique_ptr<Installation> work;
};
struct Idle {};
/// A merge of the bucket's replicas is in progress.
struct Merging {
  Merge merge;
};
/// The merge is done. The next replica set is installed when the writes in flight have ended.
struct Draining {
  Merge merge;
};
/// The merge is done and no write is in flight. The replicas are being compared, because one of them was damaged.
struct Comparing {
  Merge merge;
};
/// The bucket's replicas will drop old entries as soon as its writes in flight have ended.
struct Forgetting {
  /// Timestamp of the newest token that exceeds the permitted number of tokens; 0: none does.
  std::uint64_t surplus_tokens_us = 0;
};
/// A split or join waits for the end of the bucket's writes, or is in progress.
struct Reshaping {
  std::uint64_t number = 0;  ///< Number of the split or join.
};
}  // namespace activity

using BucketActivity =
    std::variant<activity::Collecting, activity::Unavailable, activity::Installing, activity::Idle, activity::Merging,
                 activity::Draining, activity::Comparing, activity::Forgetting, activity::Reshaping>;

/// An event that changes the activity of a bucket.
namespace event {
/// None of the replicas that may be served is on a node that is up.
struct NotAvailable {
  std::string reason;
};
/// The replica set that the nodes have recorded is still in force.
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
/// The merge failed, was disturbed, or was stopped for a more urgent one.
struct MergeStopped {};
/// All replicas have equal content, unless a write in flight changes one of them.
struct MergeSucceeded {};
/// Replicas have to be compared before the merge counts as successful.
struct CompareStarted {};
struct ForgetStarted {
  std::uint64_t surplus_tokens_us = 0;
};
struct ReshapeStarted {
  std::uint64_t number = 0;
};
/// The work for which the bucket was paused is given up.
struct Resumed {};
}  // namespace event

using BucketEvent = std::variant<event::NotAvailable, event::SetConfirmed, event::Install, event::Installed,
                                 event::MergeStarted, event::MergeStopped, event::MergeSucceeded, event::CompareStarted,
                                 event::ForgetStarted, event::ReshapeStarted, event::Resumed>;

/// Returns true if the event may happen in this activity; the table is in bucket_activity.cpp. Pure.
bool is_allowed(const BucketActivity& activity, const BucketEvent& event);

/// Returns the activity after the event. Ends the process if the event is not allowed, since only a bug can cause that.
/// Pure.
BucketActivity transition(BucketActivity activity, BucketEvent event);

/// Returns the name of an activity, for error messages and tests.
const char* name_of(const BucketActivity& activity);
const char* name_of(const BucketEvent& event);

}  // namespace fjord::distributor
