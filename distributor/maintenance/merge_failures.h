#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "bucket_database.h"
#include "fjord/common/clock.h"

namespace fjord::distributor {

/// Buckets whose merges fail again and again, and why. One or two failures are not reported: a node restarts, or a
/// write interferes. A value without clocks or messages.
class MergeFailures {
 public:
  /// A bucket is failing after this number of failed merges in a row, over at least this time.
  static constexpr unsigned kInARow = 5;
  static constexpr Duration kForAtLeast = seconds(5);

  /// Notes why a part of the bucket's merge failed; the rest of the merge may go on.
  void note(BucketId bucket, std::string why);
  void failed(BucketId bucket, MonotonicTime now);
  /// Forgets the bucket, because a merge succeeded or its entry is dropped.
  void forget(BucketId bucket) { buckets_.erase(bucket.raw()); }

  struct Summary {
    std::uint64_t buckets = 0;
    std::string newest;  ///< "bucket: why"; empty: no bucket is failing.
  };
  /// Counts only buckets that `database` still has.
  Summary summary(BucketDatabase& database, MonotonicTime now);

 private:
  struct Failure {
    unsigned in_a_row = 0;
    MonotonicTime first{};
    MonotonicTime last{};
    std::string why;
  };
  std::map<std::uint64_t, Failure> buckets_;  // By raw id.
};

}  // namespace fjord::distributor
