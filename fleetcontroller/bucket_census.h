#pragma once

#include <cstdint>
#include <vector>

#include "fjord/rpc/messages.h"

namespace fjord::fleetcontroller {

/// How large the distribution buckets are, from what storage nodes report. The replicas of a bucket may differ while it
/// is being moved: the largest counts.
///
/// Threading: not thread-safe.
class BucketCensus {
 public:
  /// `bits` is from 1 to kBitsMax.
  explicit BucketCensus(unsigned bits) : bits_(bits), bytes_(std::size_t{1} << bits) {}
  /// Of one storage node: all of its buckets, which have at least `bits` bits.
  void add(const std::vector<rpc::BucketReport>& reports);
  /// Bytes of one replica of each distribution bucket, by its first bits.
  const std::vector<std::uint64_t>& bytes() const { return bytes_; }

  /// With more distribution bits buckets are so many that nodes are evenly full anyway.
  static constexpr unsigned kBitsMax = 20;

 private:
  unsigned bits_;
  std::vector<std::uint64_t> bytes_;
};

}  // namespace fjord::fleetcontroller
