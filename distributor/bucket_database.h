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
  Collecting,  ///< Storage nodes are asked what they hold; operations wait.
  Installing,  ///< Its replica set is being written down; operations wait.
  Active,
  Unavailable,  ///< Its documents may be on a node that is down.
};

/// The same nodes, in whatever order.
inline bool same_nodes(std::vector<std::uint16_t> a, std::vector<std::uint16_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

/// A bucket and what was known of it at a time: what comes back to a ticket that is no longer valid is dropped.
struct BucketTicket {
  BucketId bucket;
  std::uint64_t serial = 0;
};

/// What the owner knows of one bucket.
struct BucketEntry {
  BucketId bucket;
  std::uint64_t serial = 0;  ///< Another one each time that all below is forgotten.
  BucketPhase phase = BucketPhase::Installing;
  ReplicaSet set;                      ///< Members: served, and every acknowledged write is on all of them.
  std::vector<std::uint16_t> filling;  ///< Get every write, are not read, become members after a merge.
  std::vector<std::uint16_t> stale;    ///< Replicas to be looked through once more and deleted.
  std::vector<std::uint16_t> joining;  ///< New in the set that is being installed: told after its older members.
  std::vector<std::uint16_t> dropped;  ///< Not in it, and to be told so before it is served.
  std::string reason;                  ///< Why it is unavailable.
  /// Nodes whose replicas have lost something. They are merged from an intact member, not read if there is one, and
  /// do not count as complete.
  std::vector<std::uint16_t> damaged;
  bool loss_accepted = false;  ///< Somebody said so of what all members have lost.
  bool misplaced = false;      ///< A member is not where it should be, or there are more than there should be.
  bool dirty = false;          ///< Members may differ: reads ask all of them.
  /// A replica outside of the set may hold writes that no member has, or members may have them in part, since before
  /// this was known. They become visible with the next merge.
  bool unsettled = false;
  bool merging = false;                    ///< Waits for a merge, or is being merged.
  bool merge_started = false;              ///< Is one of the merges under way.
  bool merge_moves = false;                ///< That merge began for a move.
  std::uint32_t merge_run = 0;             ///< Which of the bucket's merges it is: answers to earlier ones are dropped.
  std::optional<unsigned> merge_priority;  ///< With which it waits in the queue of merges.
  std::uint16_t merge_primary = 0;         ///< The member that the merge under way brings up first.
  bool awaited = false;                    ///< An operation waits until the members are known to be equal.
  std::vector<std::uint16_t> filled;       ///< Those of `filling` that the merge under way fills.
  bool fill_deferred = false;              ///< That are not all of them.
  std::string merge_problem;               ///< Why the last merge failed; empty after one that did not.
  bool disturbed = false;                  ///< A write did not reach every replica since the merge began.
  bool paused = false;          ///< No operation is started: the set or the bucket itself is about to change.
  bool forgetting = false;      ///< RemoveRetention has paused it.
  std::uint64_t reshaping = 0;  ///< The number of the split or join that has paused it, else 0.
  std::uint64_t last_timestamp_us = 0;
  std::uint32_t writes_under_way = 0;
  std::uint32_t deletes_under_way = 0;  ///< Of surplus replicas.

  BucketTicket ticket() const { return {bucket, serial}; }
  bool is_damaged(std::uint16_t node) const { return std::find(damaged.begin(), damaged.end(), node) != damaged.end(); }
  /// True if the distributor knows of a replica on that node.
  bool lists(std::uint16_t node) const {
    const auto has = [&](const std::vector<std::uint16_t>& nodes) {
      return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    };
    return set.contains(node) || has(filling) || has(stale) || has(joining) || has(dropped);
  }
  /// Members that have lost nothing, as far as is known.
  std::vector<std::uint16_t> intact() const {
    std::vector<std::uint16_t> nodes;
    std::copy_if(set.nodes.begin(), set.nodes.end(), std::back_inserter(nodes), [&](auto n) { return !is_damaged(n); });
    return nodes;
  }
  /// The member that the others are merged from: the first that is intact.
  std::uint16_t primary() const {
    auto node = std::find_if(set.nodes.begin(), set.nodes.end(), [&](auto n) { return !is_damaged(n); });
    return node == set.nodes.end() ? set.nodes.front() : *node;
  }
  /// A replica is damaged and there is a member to repair it from.
  bool repairable() const { return !damaged.empty() && !intact().empty(); }

  bool serves() const { return phase == BucketPhase::Active && !paused; }
  /// What one member says is not enough to base a write on: a merge may bring writes from before.
  bool may_differ() const { return dirty || unsettled || repairable(); }
  bool wants_merge() const { return dirty || misplaced || !filling.empty() || !stale.empty() || repairable(); }
  /// Served by replicas that are equal, with nothing left to be done.
  bool is_settled() const {
    return serves() && !merging && !may_differ() && !wants_merge() && damaged.empty() && joining.empty() &&
           dropped.empty() && deletes_under_way == 0;
  }
};

/// All buckets that this distributor owns and knows of, in the order of BucketId::sort_key(), so that what a bucket was
/// split into stands together. None of them contains another one.
class BucketDatabase {
 public:
  BucketEntry* find(BucketId bucket) {
    auto it = entries_.find(bucket.sort_key());
    return it == entries_.end() ? nullptr : &it->second;
  }
  /// The first whose sort_key() is not less than `key`; null if there is none.
  BucketEntry* find_from(std::uint64_t key) {
    auto it = entries_.lower_bound(key);
    return it == entries_.end() ? nullptr : &it->second;
  }
  /// Null if what was known then has been forgotten since.
  BucketEntry* find(const BucketTicket& ticket) {
    BucketEntry* entry = find(ticket.bucket);
    return entry == nullptr || entry->serial != ticket.serial ? nullptr : entry;
  }
  /// The bucket that a document belongs to; null if none is known.
  BucketEntry* find_for(const GlobalId& gid) {
    const BucketId narrowest = bucket_of(gid, BucketId::kUsedBitsMax);
    auto it = entries_.upper_bound(narrowest.sort_key());
    if (it == entries_.begin()) return nullptr;
    --it;
    return it->second.bucket.contains(narrowest) ? &it->second : nullptr;
  }
  /// The widest bucket of at least `bits` bits for a document that no bucket is known for.
  BucketId missing_for(const GlobalId& gid, unsigned bits) const {
    BucketId bucket = bucket_of(gid, bits);
    for (; has_part_of(bucket); ++bits) bucket = bucket_of(gid, bits + 1);
    return bucket;
  }
  /// Those known that contain `bucket` or are contained in it.
  std::vector<BucketId> overlapping(BucketId bucket) const {
    std::vector<BucketId> found;
    auto it = entries_.lower_bound(bucket.sort_key());
    if (it != entries_.begin() && std::prev(it)->second.bucket.contains(bucket))
      found.push_back(std::prev(it)->second.bucket);
    for (; it != entries_.end() && bucket.contains(it->second.bucket); ++it) found.push_back(it->second.bucket);
    return found;
  }
  /// Forgets what was known of the bucket, if anything was; earlier tickets are no longer valid.
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
