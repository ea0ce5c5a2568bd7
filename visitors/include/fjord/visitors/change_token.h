#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/visitors/bucket_space.h"

namespace fjord::visitors {

/// How far a subscriber is in a part of the bucket tree.
struct ChangePosition {
  std::uint64_t after_us = 0;  ///< Changes up to here were given; 0: none.
  /// Of the replica set when they were, and the checksum over all that was there up to `after_us`. Zero and zero: not
  /// known, so that it cannot be told whether something came in late.
  std::uint64_t epoch = 0;
  std::uint64_t checksum = 0;
  /// The bucket was read up to here, which is above `after_us` if no entry was as new as that. If none was given: what
  /// the subscriber has of this bucket, it has been told after this time.
  std::uint64_t until_us = 0;
  /// Removes before this time were dropped when it was read.
  std::uint64_t horizon_us = 0;
  friend bool operator==(const ChangePosition&, const ChangePosition&) = default;
};

/// How far a subscriber is, bucket by bucket. Valid in another process and after any change of the cluster: where a
/// bucket was split or joined, what was given is not known exactly any more, and is given again if it might have gaps.
class ChangeToken {
 public:
  ChangeToken() = default;
  explicit ChangeToken(std::uint64_t question) : question_(question) {}

  std::uint64_t question() const { return question_; }
  /// For this bucket as it is now; nothing was given yet of what is not known.
  ChangePosition at(BucketId bucket) const;
  /// True if the position is of exactly this bucket.
  bool knows(BucketId bucket) const;
  /// True if the position of any part of this bucket is known.
  bool knows_part_of(BucketId bucket) const;
  void set(BucketId bucket, const ChangePosition& position);
  std::size_t size() const { return parts_.size(); }

  /// "fjord-changes-1:<question>:<first>-<last>@<after>/<epoch>/<checksum>/<until>,...:<checksum>", in hexadecimal.
  std::string to_text() const;
  /// Errors: InvalidArgument that says what is wrong.
  static Result<ChangeToken> parse(std::string_view text);
  friend bool operator==(const ChangeToken&, const ChangeToken&) = default;

 private:
  struct Part {
    std::uint64_t last = 0;
    ChangePosition position;
    friend bool operator==(const Part&, const Part&) = default;
  };
  /// Cuts the part that `position` is inside of, so that one begins there. Nothing is known exactly of the pieces.
  void cut_before(std::uint64_t position);

  std::uint64_t question_ = 0;
  std::map<std::uint64_t, Part> parts_;  ///< By first position; they do not overlap.
};

}  // namespace fjord::visitors
