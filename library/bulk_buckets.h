#pragma once

#include <algorithm>
#include <cstddef>
#include <map>

#include "fjord/document/bucket_id.h"
#include "fjord/visitors/bucket_space.h"

namespace fjord {

/// The buckets of a bulk change that are done: visited to their ends, with every write of their documents applied or
/// skipped. A bucket may be split while it is visited: documents of the parent come first, then the halves, which the
/// visit reads again whole, and the parent never ends under its own name.
///
/// Threading: none of its own.
class BulkBuckets {
 public:
  /// A write of a document of this bucket begins.
  void begin_write(BucketId bucket) { ++open_[bucket].writes; }

  /// A write ends. `is_settled`: it was applied, or need not be. A bucket with another end is not done in this run.
  void end_write(BucketId bucket, bool is_settled) {
    Open& open = open_.at(bucket);
    --open.writes;
    open.is_spoilt = open.is_spoilt || !is_settled;
    settle(bucket);
  }

  /// The visit has given all documents of the bucket.
  void end_visit(BucketId bucket) {
    open_[bucket].is_visited = true;
    settle(bucket);
  }

  /// The part of the bucket space that need not be visited again, with what the run was resumed from.
  const visitors::PositionSet& done() const { return done_; }
  /// Where a resumed run begins. Called before the first write.
  void resume(visitors::PositionSet done) { done_ = std::move(done); }

 private:
  struct Open {
    std::size_t writes = 0;  ///< Writes in flight.
    bool is_visited = false;
    bool is_spoilt = false;  ///< A write has failed or is in doubt.
  };

  void settle(BucketId bucket) {
    const Open& open = open_.at(bucket);
    if (!open.is_visited || open.writes != 0) return;
    // If the bucket was split during the visit, the parent bucket may still have writes in flight or failed writes.
    const bool whole_is_open = std::any_of(open_.begin(), open_.end(), [&](const auto& other) {
      return other.first != bucket && other.first.contains(bucket) &&
             (other.second.writes != 0 || other.second.is_spoilt);
    });
    if (!open.is_spoilt && !whole_is_open) done_.add(visitors::PositionRange::of(bucket));
    open_.erase(bucket);
  }

  visitors::PositionSet done_;
  std::map<BucketId, Open> open_;
};

}  // namespace fjord
