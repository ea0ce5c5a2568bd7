#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"

namespace fjord::distributor {

enum class BucketPhase {
  Collecting,  ///< Storage nodes are asked for their reports; operations wait.
  Installing,  ///< Its replica set is being installed; operations wait.
  Active,
  Unavailable,  ///< Its documents may be on a node that is down.
};

/// True if both lists hold the same nodes, in any order.
inline bool same_nodes(std::vector<std::uint16_t> a, std::vector<std::uint16_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

/// A bucket and the serial of its entry. An answer is dropped if the ticket of its request is no longer valid.
struct BucketTicket {
  BucketId bucket;
  std::uint64_t serial = 0;
};

/// The owner's knowledge of one bucket.
struct BucketEntry {
  BucketId bucket;
  std::uint64_t serial = 0;  ///< Changes each time the entry is reset.
  BucketPhase phase = BucketPhase::Installing;
  ReplicaSet set;  ///< Members: they are served, and each has every acknowledged write.
  std::vector<std::uint16_t>
      catching_up;                      ///< Catching up: get every write, are not read, become members after a merge.
  std::vector<std::uint16_t> obsolete;  ///< Obsolete replicas: a merge reads them once more, then they are deleted.
  std::vector<std::uint16_t> joining;  ///< New members of the set being installed; they get it after the older members.
  std::vector<std::uint16_t> removed;  ///< Replicas outside of that set; they receive it before it is served.
  std::string reason;                  ///< Why the bucket is unavailable.
  /// Nodes whose replicas have lost data. They are merged from an intact member, are not read while there is one, and
  /// do not count as complete.
  std::vector<std::uint16_t> damaged;
  bool unsafe_recovery = false;  ///< An operator has given up what all members have lost.
  bool misplaced = false;        ///< A member is not where it should be, or there are too many members.
  bool dirty = false;            ///< Members may differ: reads ask all of them.
  /// Older writes may be on a non-member replica only, or on some members only. They become visible with the next
  /// merge.
  bool unsettled = false;
  bool merging = false;                    ///< Waits for a merge, or is being merged.
  bool merge_started = false;              ///< Its merge is under way.
  bool merge_moves = false;                ///< The merge under way did not begin for safety (is_for_safety()).
  std::uint32_t merge_run = 0;             ///< Number of the merge; answers to earlier ones are dropped.
  std::optional<unsigned> merge_priority;  ///< Priority in the MergeQueue; empty if it does not wait there.
  std::uint16_t merge_primary = 0;         ///< Member that the merge under way completes first.
  bool awaited = false;                    ///< An operation waits until the members are known to be equal.
  std::vector<std::uint16_t> filled;       ///< Replicas of `catching_up` that the merge under way completes.
  bool fill_deferred = false;              ///< `filled` lacks some of `catching_up`.
  std::string merge_problem;               ///< Error of the last merge; empty if it did not fail.
  bool disturbed = false;                  ///< A write missed a replica, or damage was found, since the merge began.
  bool paused = false;                     ///< No operation is started: the set or the bucket is about to change.
  bool forgetting = false;                 ///< Paused by RemoveRetention.
  std::uint64_t reshaping = 0;             ///< Number of the split or join that has paused it; 0: none.
  std::uint64_t last_timestamp_us = 0;
  std::uint32_t writes_under_way = 0;
  std::uint32_t deletes_under_way = 0;  ///< Deletions of surplus replicas in flight.

  BucketTicket ticket() const { return {bucket, serial}; }
  bool is_damaged(std::uint16_t node) const { return std::find(damaged.begin(), damaged.end(), node) != damaged.end(); }
  /// True if the distributor knows of a replica on the node.
  bool lists(std::uint16_t node) const {
    const auto has = [&](const std::vector<std::uint16_t>& nodes) {
      return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    };
    return set.contains(node) || has(catching_up) || has(obsolete) || has(joining) || has(removed);
  }
  /// Members without known damage.
  std::vector<std::uint16_t> intact() const {
    std::vector<std::uint16_t> nodes;
    std::copy_if(set.nodes.begin(), set.nodes.end(), std::back_inserter(nodes), [&](auto n) { return !is_damaged(n); });
    return nodes;
  }
  /// The member that the others are merged from: the first intact one, or the first of all if none is intact.
  std::uint16_t primary() const {
    auto node = std::find_if(set.nodes.begin(), set.nodes.end(), [&](auto n) { return !is_damaged(n); });
    return node == set.nodes.end() ? set.nodes.front() : *node;
  }
  /// True if a replica is damaged and an intact member can repair it.
  bool repairable() const { return !damaged.empty() && !intact().empty(); }

  bool serves() const { return phase == BucketPhase::Active && !paused; }
  /// True if members may differ. A write cannot be based on one member then: a merge may still bring older writes.
  bool may_differ() const { return dirty || unsettled || repairable(); }
  bool wants_merge() const { return dirty || misplaced || !catching_up.empty() || !obsolete.empty() || repairable(); }
  /// True if it is served by equal replicas and nothing is left to be done to it.
  bool is_settled() const {
    return serves() && !merging && !may_differ() && !wants_merge() && damaged.empty() && joining.empty() &&
           removed.empty() && deletes_under_way == 0;
  }
};

/// All buckets that this distributor owns and knows, in the order of BucketId::sort_key(), so that the parts of a split
/// bucket are adjacent. No bucket contains another one.
class BucketDatabase {
 public:
  BucketEntry* find(BucketId bucket) {
    auto it = entries_.find(bucket.sort_key());
    return it == entries_.end() ? nullptr : &it->second;
  }
  /// The first bucket whose sort_key() is at least `key`; null if there is none.
  BucketEntry* find_from(std::uint64_t key) {
    auto it = entries_.lower_bound(key);
    return it == entries_.end() ? nullptr : &it->second;
  }
  /// Null if the entry has been reset or erased since the ticket was made.
  BucketEntry* find(const BucketTicket& ticket) {
    BucketEntry* entry = find(ticket.bucket);
    return entry == nullptr || entry->serial != ticket.serial ? nullptr : entry;
  }
  /// The bucket of a document; null if none is known.
  BucketEntry* find_for(const GlobalId& gid) {
    const BucketId narrowest = bucket_of(gid, BucketId::kUsedBitsMax);
    auto it = entries_.upper_bound(narrowest.sort_key());
    if (it == entries_.begin()) return nullptr;
    --it;
    return it->second.bucket.contains(narrowest) ? &it->second : nullptr;
  }
  /// For a document without a known bucket: the widest bucket of at least `bits` bits that contains no known one.
  BucketId missing_for(const GlobalId& gid, unsigned bits) const {
    BucketId bucket = bucket_of(gid, bits);
    for (; has_part_of(bucket); ++bits) bucket = bucket_of(gid, bits + 1);
    return bucket;
  }
  /// Known buckets that contain `bucket` or are contained in it.
  std::vector<BucketId> overlapping(BucketId bucket) const {
    std::vector<BucketId> found;
    auto it = entries_.lower_bound(bucket.sort_key());
    if (it != entries_.begin() && std::prev(it)->second.bucket.contains(bucket))
      found.push_back(std::prev(it)->second.bucket);
    for (; it != entries_.end() && bucket.contains(it->second.bucket); ++it) found.push_back(it->second.bucket);
    return found;
  }
  /// Adds an empty entry in place of an older one, whose tickets become invalid.
  BucketEntry& add(BucketId bucket) {
    BucketEntry& entry = entries_[bucket.sort_key()];
    entry = {};
    entry.bucket = bucket;
    entry.serial = ++last_serial_;
    return entry;
  }
  void erase(BucketId bucket) { entries_.erase(bucket.sort_key()); }
  template <typename Predicate>
  void erase_if(Predicate predicate) {
    std::erase_if(entries_, [&](const auto& item) { return predicate(item.second); });
  }
  std::size_t size() const { return entries_.size(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }

 private:
  bool has_part_of(BucketId bucket) const {
    auto it = entries_.lower_bound(bucket.sort_key());
    return it != entries_.end() && bucket.contains(it->second.bucket);
  }

  std::map<std::uint64_t, BucketEntry> entries_;
  std::uint64_t last_serial_ = 0;
};

}  // namespace fjord::distributor
