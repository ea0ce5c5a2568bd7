#pragma once

#include <cstdint>
#include <vector>

#include "fjord/rpc/storage_messages.h"

namespace fjord::fleetcontroller {

/// Sizes of the distribution buckets, computed from the reports of storage nodes. The replicas of a bucket may differ
/// while it is being moved; the largest one counts.
///
/// Threading: not thread-safe.
class BucketSizes {
 public:
  /// `bits` is from 1 to kBitsMax.
  explicit BucketSizes(unsigned bits) : bits_(bits), bytes_(std::size_t{1} << bits) {}
  /// Adds the reports of one storage node on all of its buckets. Each bucket has at least `bits` bits.
  void add(const std::vector<rpc::BucketReport>& reports);
  /// Returns the bytes of one replica of each distribution bucket, indexed by the bucket's bits.
  const std::vector<std::uint64_t>& bytes() const { return bytes_; }

  /// Largest number of distribution bits to count. With more bits there are enough buckets for nodes to be evenly full.
  static constexpr unsigned kBitsMax = 20;

 private:
  unsigned bits_;
  std::vector<std::uint64_t> bytes_;
};

}  // namespace fjord::fleetcontroller
