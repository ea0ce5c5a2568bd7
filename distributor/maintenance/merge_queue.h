#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>

#include "bucket_database.h"

namespace fjord::distributor {

/// The buckets that wait for a merge, the most urgent first, and among equals the one that has waited longest. A bucket
/// is in it once; `BucketEntry::merge_priority` says where. Confined to the distributor's executor.
class MergeQueue {
 public:
  /// Puts the bucket in, or moves it forward if it waits with less priority.
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
        // The bucket may have been forgotten, or moved forward.
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
  std::map<unsigned, std::deque<BucketTicket>> queues_;  // By priority.
};

}  // namespace fjord::distributor
