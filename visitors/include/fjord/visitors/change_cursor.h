#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/visitors/bucket_space.h"

namespace fjord::visitors {

/// How far a subscriber has read a part of the bucket tree.
struct ChangePosition {
  std::uint64_t after_us = 0;  ///< Timestamp up to which changes were given; 0: none.
  /// Epoch of the replica set at that time, and checksum over all entries up to `after_us`. Both zero: unknown, so late
  /// entries cannot be detected.
  std::uint64_t epoch = 0;
  std::uint64_t checksum = 0;
  /// Timestamp up to which the bucket was read; larger than `after_us` if its newest entry is older. If `after_us` is
  /// 0, a lower bound: all changes of this bucket reach the subscriber after this time.
  std::uint64_t until_us = 0;
  /// Removes before this timestamp had been dropped when the bucket was read.
  std::uint64_t horizon_us = 0;
  friend bool operator==(const ChangePosition&, const ChangePosition&) = default;
};

/// How far a subscriber is, bucket by bucket. Valid in another process and after any change of the cluster. The exact
/// position is lost when a bucket is split or joined; the bucket is then given again if changes may be missing.
class ChangeCursor {
 public:
  ChangeCursor() = default;
  explicit ChangeCursor(std::uint64_t question) : question_(question) {}

  std::uint64_t question() const { return question_; }
  /// Returns the position of this bucket. If it was joined, this is the lowest position of its parts; a part without a
  /// position counts as not read at all.
  ChangePosition at(BucketId bucket) const;
  /// True if the cursor has a position of exactly this bucket.
  bool knows(BucketId bucket) const;
  /// True if the cursor has a position of any part of this bucket.
  bool knows_part_of(BucketId bucket) const;
  void set(BucketId bucket, const ChangePosition& position);
  std::size_t size() const { return parts_.size(); }

  /// Returns "fjord-changes-1:<question>:<first>-<last>@<after>/<epoch>/<checksum>/<until>[/<horizon>],...:<checksum>"
  /// with hexadecimal numbers. The horizon is left out if it is 0.
  std::string to_text() const;
  /// Errors: InvalidArgument that says why the text is not a valid cursor.
  static Result<ChangeCursor> parse(std::string_view text);
  friend bool operator==(const ChangeCursor&, const ChangeCursor&) = default;

 private:
  struct Part {
    std::uint64_t last = 0;
    ChangePosition position;
    friend bool operator==(const Part&, const Part&) = default;
  };
  /// Cuts the part that contains `position` in two, so that one part begins at `position`. Both parts lose their epoch
  /// and checksum, which are valid only for the whole part.
  void cut_before(std::uint64_t position);

  std::uint64_t question_ = 0;
  std::map<std::uint64_t, Part> parts_;  ///< Disjoint parts by their first position.
};

}  // namespace fjord::visitors
