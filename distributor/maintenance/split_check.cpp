#include "maintenance/split_check.h"

#include <algorithm>

namespace fjord::distributor {
namespace {

// A bucket with this many times the limits is split even if the splits do not help at first: about two dozen splits
// follow, with as many empty buckets.
constexpr std::uint64_t kHuge = 16;

}  // namespace

bool is_large(const BucketInfo& info, const SizeLimits& limits) {
  return info.entries > limits.entries || info.bytes > limits.bytes;
}

bool is_huge(const BucketInfo& info, const SizeLimits& limits) {
  return info.entries / kHuge > limits.entries || info.bytes / kHuge > limits.bytes;
}

bool should_split(BucketShape shape, const BucketInfo& info, const SizeLimits& limits) {
  switch (shape) {
    case BucketShape::Divisible:
      return is_large(info, limits);
    case BucketShape::OneSided:
      return is_huge(info, limits);
    case BucketShape::OneGroup:
      break;
  }
  return false;
}

bool has_changed(const BucketInfo& before, const BucketInfo& now) {
  const auto differ = [](std::uint64_t a, std::uint64_t b) {
    return std::max(a, b) - std::min(a, b) > std::max(a, b) / 5;
  };
  return differ(before.entries, now.entries) || differ(before.bytes, now.bytes);
}

}  // namespace fjord::distributor
