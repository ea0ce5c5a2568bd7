#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/document/bucket_id.h"

namespace fjord::distributor {

enum class BucketPhase {
  Collecting,  ///< Storage nodes are asked what they hold; operations wait.
  Installing,  ///< Its replica set is being written down; operations wait.
  Active,
  Unavailable,  ///< Its documents may be on a node that is down.
};

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
  bool dirty = false;  ///< Members may differ: reads ask all of them.
  /// A replica outside of the set may hold writes that no member has, or members may have them in part, since before
  /// this was known. They become visible with the next merge.
  bool unsettled = false;
  bool merging = false;        ///< Waits for a merge, or is being merged.
  bool merge_started = false;  ///< Is one of the merges under way.
  bool disturbed = false;      ///< A write did not reach every replica since the merge began.
  bool paused = false;         ///< No operation is started: the set is about to be extended.
  std::uint64_t last_timestamp_us = 0;
  std::uint32_t writes_under_way = 0;

  BucketTicket ticket() const { return {bucket, serial}; }
  bool is_damaged(std::uint16_t node) const { return std::find(damaged.begin(), damaged.end(), node) != damaged.end(); }
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
  bool wants_merge() const { return dirty || !filling.empty() || !stale.empty() || repairable(); }
  /// Served by replicas that are equal, with nothing left to be done.
  bool is_settled() const {
    return serves() && !merging && !may_differ() && !wants_merge() && damaged.empty() && joining.empty() &&
           dropped.empty();
  }
};

/// All buckets that this distributor owns and knows of, by rising raw id.
class BucketDatabase {
 public:
  BucketEntry* find(BucketId bucket) {
    auto it = entries_.find(bucket.raw());
    return it == entries_.end() ? nullptr : &it->second;
  }
  /// Null if what was known then has been forgotten since.
  BucketEntry* find(const BucketTicket& ticket) {
    BucketEntry* entry = find(ticket.bucket);
    return entry == nullptr || entry->serial != ticket.serial ? nullptr : entry;
  }
  /// Forgets what was known of the bucket, if anything was; earlier tickets are no longer valid.
  BucketEntry& add(BucketId bucket) {
    BucketEntry& entry = entries_[bucket.raw()];
    entry = {};
    entry.bucket = bucket;
    entry.serial = ++last_serial_;
    return entry;
  }
  void erase(BucketId bucket) { entries_.erase(bucket.raw()); }
  template <typename Predicate>
  void erase_if(Predicate predicate) {
    std::erase_if(entries_, [&](const auto& item) { return predicate(item.second); });
  }
  std::size_t size() const { return entries_.size(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }

 private:
  std::map<std::uint64_t, BucketEntry> entries_;
  std::uint64_t last_serial_ = 0;
};

}  // namespace fjord::distributor
