#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bucket_activity.h"
#include "fjord/common/status.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "replica_set_state.h"

namespace fjord::distributor {

/// A bucket and the serial of its entry. An answer is dropped if the ticket of its request is no longer valid.
struct BucketTicket {
  BucketId bucket;
  std::uint64_t serial = 0;
};

/// What the owner knows about one bucket. There may be a million entries.
struct BucketEntry : ReplicaSetState {
  BucketId bucket;
  std::uint64_t serial = 0;  ///< Changes when the entry is reset, so that tickets of earlier answers become invalid.
  BucketActivity activity;   ///< Collecting at first; only apply() changes it.
  /// Priority with which the bucket waits in the MergeQueue; empty if it does not wait.
  std::optional<unsigned> merge_priority;
  bool merge_delayed = false;  ///< A merge was unsuccessful; the next one is queued after a pause.
  bool awaited = false;        ///< An operation waits until the members are known to have equal content.
  /// While Collecting: the bucket was not served before, or none of its members is up now.
  bool unreachable = false;
  std::string merge_problem;  ///< Error of the last merge; empty if that did not fail.
  std::uint64_t last_timestamp_us = 0;
  std::uint32_t writes_under_way = 0;
  std::uint32_t deletes_under_way = 0;  ///< Number of deletions of surplus replicas in flight.

  BucketTicket ticket() const { return {bucket, serial}; }
  void apply(BucketEvent event) { activity = transition(std::move(activity), std::move(event)); }
  template <typename Activity>
  bool is() const {
    return std::holds_alternative<Activity>(activity);
  }
  /// Returns the reason why the bucket is unavailable; null if it is not.
  const std::string* unavailable_because() const {
    const auto* state = std::get_if<activity::Unavailable>(&activity);
    return state == nullptr ? nullptr : &state->reason;
  }
  /// Returns null unless the bucket's replica set is being installed.
  Installation* installation() {
    auto* state = std::get_if<activity::Installing>(&activity);
    return state == nullptr ? nullptr : state->work.get();
  }
  const Installation* installation() const { return const_cast<BucketEntry*>(this)->installation(); }
  /// Returns the merge that is in progress, or whose result is not in force yet; null if there is none.
  Merge* merge() {
    if (auto* state = std::get_if<activity::Merging>(&activity)) return &state->merge;
    if (auto* state = std::get_if<activity::Draining>(&activity)) return &state->merge;
    if (auto* state = std::get_if<activity::Comparing>(&activity)) return &state->merge;
    return nullptr;
  }
  const Merge* merge() const { return const_cast<BucketEntry*>(this)->merge(); }
  /// Notes that a merge in progress will not be enough to make the replicas equal.
  void disturb_merge() {
    if (Merge* under_way = merge()) under_way->disturbed = true;
  }

  /// Returns NOT_READY: members may differ. The text says why they have not been merged yet.
  Status not_in_sync() const {
    std::string why = "the bucket's replicas are being brought in sync";
    if (!merge_problem.empty()) why += "; the last merge failed: " + merge_problem;
    return {StatusCode::NotReady, std::move(why)};
  }

  /// Returns true if operations may start.
  bool serves() const { return is<activity::Idle>() || is<activity::Merging>(); }
  /// Returns true if the bucket's replica set is in force, so that members may be read.
  bool has_set_in_force() const {
    return !is<activity::Collecting>() && !is<activity::Unavailable>() && !is<activity::Installing>();
  }
  /// Returns true if the bucket waits for a merge or is being merged.
  bool merges_or_waits() const { return merge_priority || merge_delayed || merge() != nullptr; }
  /// Returns true if the distributor knows of a replica on the node.
  bool lists(std::uint16_t node) const { return ReplicaSetState::lists(node) || is_being_removed(node); }
  /// Returns true if the node has a replica and is not a member of the replica set that is being installed.
  bool is_being_removed(std::uint16_t node) const {
    const Installation* work = installation();
    return work != nullptr && contains(work->removed, node);
  }
  /// Returns true if equal replicas serve the bucket and no maintenance is left to do for it.
  bool is_settled() const {
    return is<activity::Idle>() && !merges_or_waits() && !may_differ() && !wants_merge() && damaged.empty() &&
           deletes_under_way == 0;
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
  /// Returns the first bucket whose sort_key() is at least `key`; null if there is none.
  BucketEntry* find_from(std::uint64_t key) {
    auto it = entries_.lower_bound(key);
    return it == entries_.end() ? nullptr : &it->second;
  }
  /// Returns null if the entry has been reset or erased since the ticket was made.
  BucketEntry* find(const BucketTicket& ticket) {
    BucketEntry* entry = find(ticket.bucket);
    return entry == nullptr || entry->serial != ticket.serial ? nullptr : entry;
  }
  /// Returns the bucket of a document; null if none is known.
  BucketEntry* find_for(const GlobalId& gid) {
    const BucketId narrowest = bucket_of(gid, BucketId::kUsedBitsMax);
    auto it = entries_.upper_bound(narrowest.sort_key());
    if (it == entries_.begin()) return nullptr;
    --it;
    return it->second.bucket.contains(narrowest) ? &it->second : nullptr;
  }
  /// Returns, for a document without a known bucket, the widest bucket with at least `bits` bits that contains no known
  /// bucket.
  BucketId missing_for(const GlobalId& gid, unsigned bits) const {
    BucketId bucket = bucket_of(gid, bits);
    for (; has_part_of(bucket); ++bits) bucket = bucket_of(gid, bits + 1);
    return bucket;
  }
  /// Returns the known buckets that contain `bucket` or are contained in it.
  std::vector<BucketId> overlapping(BucketId bucket) const {
    std::vector<BucketId> found;
    auto it = entries_.lower_bound(bucket.sort_key());
    if (it != entries_.begin() && std::prev(it)->second.bucket.contains(bucket))
      found.push_back(std::prev(it)->second.bucket);
    for (; it != entries_.end() && bucket.contains(it->second.bucket); ++it) found.push_back(it->second.bucket);
    return found;
  }
  /// Returns true if some part of `bucket` belongs to no known bucket.
  bool has_gap(BucketId bucket) const {
    auto it = entries_.lower_bound(bucket.sort_key());
    if (it != entries_.begin() && std::prev(it)->second.bucket.contains(bucket)) return false;
    std::uint64_t missing = narrowest_in(bucket);
    for (; it != entries_.end() && bucket.contains(it->second.bucket); ++it) missing -= narrowest_in(it->second.bucket);
    return missing != 0;
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
  /// Returns how many buckets with the most bits fit into `bucket`.
  static std::uint64_t narrowest_in(BucketId bucket) {
    return std::uint64_t{1} << (BucketId::kUsedBitsMax - bucket.used_bits());
  }
  bool has_part_of(BucketId bucket) const {
    auto it = entries_.lower_bound(bucket.sort_key());
    return it != entries_.end() && bucket.contains(it->second.bucket);
  }

  std::map<std::uint64_t, BucketEntry> entries_;
  std::uint64_t last_serial_ = 0;
};

}  // namespace fjord::distributor
