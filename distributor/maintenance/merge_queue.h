#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>

#include "bucket_database.h"

namespace fjord::distributor {

/// The buckets that wait for a merge: the most urgent first, and among equally urgent ones the one that has waited
/// longest. A bucket is in the queue at most once, with the priority `BucketEntry::merge_priority`. Confined to the
/// distributor's executor.
class MergeQueue {
 public:
  /// Adds the bucket, or moves it forward if it waits with less priority.
  void push(BucketEntry& entry, unsigned priority) {
    if (entry.merge_priority && *entry.merge_priority <= priority) return;
    entry.merge_priority = priority;
    queues_[priority].push_back(entry.ticket());
  }
  /// Removes and returns the most urgent bucket whose priority number is at most `last`; null if there is none.
  BucketEntry* pop(BucketDatabase& buckets, unsigned last) {
    for (auto queue = queues_.begin(); queue != queues_.end() && queue->first <= last;) {
      while (!queue->second.empty()) {
        BucketEntry* entry = buckets.find(queue->second.front());
        queue->second.pop_front();
        // The bucket's entry may be gone, or the bucket was moved to the queue of another priority.
        if (entry == nullptr || entry->merge_priority != queue->first) continue;
        entry->merge_priority.reset();
        return entry;
      }
      queue = queues_.erase(queue);
    }
    return nullptr;
  }
  bool is_empty() const {
    return std::all_of(queues_.begin(), queues_.end(), [](const auto& queue) { return queue.second.empty(); });
  }

 private:
  std::map<unsigned, std::deque<BucketTicket>> queues_;  // Waiting buckets, by priority number.
};

}  // namespace fjord::distributor
