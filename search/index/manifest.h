#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "segment.h"

namespace fjord::search {

/// The content of an index: its segments, their dead documents, and the buckets that are in it whole. It is one file
/// that is replaced at once, so that all of it is of one moment.
struct Manifest {
  struct OneSegment {
    SegmentPlace place;
    std::array<std::string, 2> dead;  ///< DeadNumbers::bytes() of the two lists.
  };
  std::string label;
  std::uint64_t next_number = 1;
  std::vector<OneSegment> segments;
  std::map<BucketId, std::uint64_t> checksums;

  std::string encode() const;
  /// Errors: Corruption.
  static Result<Manifest> decode(std::string_view bytes);
};

}  // namespace fjord::search
