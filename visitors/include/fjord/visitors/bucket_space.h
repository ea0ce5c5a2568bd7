#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"

namespace fjord::visitors {

/// The largest BucketId::position(); the smallest is 0.
inline constexpr std::uint64_t kLastPosition = (std::uint64_t{1} << BucketId::kUsedBitsMax) - 1;

/// A part of the bucket tree, both ends included. Positions do not depend on the number of bits that buckets use, so a
/// range stays valid when buckets are split, joined or moved.
struct PositionRange {
  std::uint64_t first = 0;
  std::uint64_t last = kLastPosition;

  static PositionRange of(BucketId bucket) {
    const std::uint64_t first = bucket.position();
    return {first, first + (bucket.span() - 1)};
  }
  /// Slice `index` (from 0) of `count` slices. Slices are disjoint and together cover all positions. 0 < count.
  static PositionRange slice(std::uint64_t index, std::uint64_t count);

  bool is_all() const { return first == 0 && last == kLastPosition; }
  bool contains(std::uint64_t position) const { return first <= position && position <= last; }
  bool contains(const PositionRange& other) const { return first <= other.first && other.last <= last; }
  bool overlaps(const PositionRange& other) const { return first <= other.last && other.first <= last; }
  friend bool operator==(const PositionRange&, const PositionRange&) = default;
};

/// Position of a document: that of the bucket with all bits that contains it.
inline std::uint64_t position_of(const GlobalId& gid) { return bucket_of(gid, BucketId::kUsedBitsMax).position(); }

/// A set of positions in the bucket tree, kept as few ranges as possible.
class PositionSet {
 public:
  void add(const PositionRange& range);
  void remove(const PositionRange& range);
  bool contains(std::uint64_t position) const;
  bool contains(const PositionRange& range) const;
  bool overlaps(const PositionRange& range) const;
  bool empty() const { return ranges_.empty(); }
  /// Disjoint ranges in ascending order, with gaps between them.
  std::vector<PositionRange> ranges() const;
  friend bool operator==(const PositionSet&, const PositionSet&) = default;

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  ///< Last position of each range, by its first position.
};

}  // namespace fjord::visitors
