#include "maintenance/merge_queue.h"

#include <catch2/catch.hpp>

namespace fjord::distributor {
namespace {

struct Queue {
  BucketEntry& add(std::uint64_t n) { return buckets.add(BucketId(8, n)); }
  /// Returns the next bucket with a priority up to `last`.
  std::optional<BucketId> pop(unsigned last = 99) {
    BucketEntry* entry = merges.pop(buckets, last);
    return entry == nullptr ? std::nullopt : std::optional(entry->bucket);
  }
  BucketDatabase buckets;
  MergeQueue merges;
};

}  // namespace

TEST_CASE("merge queue: the most urgent comes first, then the one that has waited longest") {
  Queue queue;
  queue.merges.push(queue.add(1), 8);
  queue.merges.push(queue.add(2), 5);
  queue.merges.push(queue.add(3), 8);
  CHECK(queue.pop() == BucketId(8, 2));
  CHECK(queue.pop() == BucketId(8, 1));
  CHECK_FALSE(queue.merges.is_empty());
  CHECK(queue.pop() == BucketId(8, 3));
  CHECK_FALSE(queue.pop());
  CHECK(queue.merges.is_empty());
}

TEST_CASE("merge queue: a bucket moves forward when more is to be done to it, and never back") {
  Queue queue;
  queue.merges.push(queue.add(1), 8);
  BucketEntry& raised = queue.add(2);
  queue.merges.push(raised, 8);
  queue.merges.push(raised, 6);
  queue.merges.push(raised, 7);
  CHECK(raised.merge_priority == 6U);
  CHECK(queue.pop() == BucketId(8, 2));
  CHECK_FALSE(raised.merge_priority);
  CHECK(queue.pop() == BucketId(8, 1));
  CHECK_FALSE(queue.pop());  // The place that the bucket had in the queue before is ignored.
}

TEST_CASE("merge queue: what is held back stays, and comes when it is raised") {
  Queue queue;
  BucketEntry& move = queue.add(1);
  queue.merges.push(move, 9);
  CHECK_FALSE(queue.pop(8));
  queue.merges.push(move, 8);
  CHECK(queue.pop(8) == BucketId(8, 1));
}

TEST_CASE("merge queue: a bucket that was forgotten is passed over") {
  Queue queue;
  queue.merges.push(queue.add(1), 3);
  queue.merges.push(queue.add(2), 3);
  queue.add(1);  // The bucket gets a later entry in the queue.
  CHECK(queue.pop() == BucketId(8, 2));
  CHECK_FALSE(queue.pop());
}

TEST_CASE("merge queue: a bucket can wait again after it was taken out") {
  Queue queue;
  BucketEntry& entry = queue.add(1);
  queue.merges.push(entry, 3);
  CHECK(queue.pop() == BucketId(8, 1));
  queue.merges.push(entry, 5);
  CHECK(queue.pop() == BucketId(8, 1));
}

}  // namespace fjord::distributor
