#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bucket_database.h"
#include "fjord/common/clock.h"

namespace fjord::distributor {

/// The buckets whose merges fail repeatedly, and why. One or two failures are not reported, because a node may have
/// restarted or a write may have interfered. Has no clock and sends no messages.
class MergeFailures {
 public:
  /// A bucket is failing after this number of consecutive failed merges, if they took at least the following time.
  static constexpr unsigned kInARow = 5;
  static constexpr Duration kForAtLeast = seconds(5);

  /// Notes why a part of the bucket's merge failed; the other parts may continue.
  void note(BucketId bucket, std::string why);
  void failed(BucketId bucket, MonotonicTime now);
  /// Forgets the bucket, because a merge succeeded or its entry is dropped.
  void forget(BucketId bucket) { buckets_.erase(bucket.raw()); }

  struct Summary {
    std::uint64_t buckets = 0;
    std::string newest;  ///< "bucket: why"; empty: no bucket is failing.
  };
  /// Returns a summary of those failing buckets that `database` still has.
  Summary summary(BucketDatabase& database, MonotonicTime now);

 private:
  struct Failure {
    unsigned in_a_row = 0;
    MonotonicTime first{};
    MonotonicTime last{};
    std::string why;
  };
  std::map<std::uint64_t, Failure> buckets_;  // By raw bucket id.
};

}  // namespace fjord::distributor
