#include "fjord/visitors/bucket_space.h"

#include <algorithm>

#include "fjord/common/check.h"

namespace fjord::visitors {
namespace {

/// First position of slice `index`; if index == count, one past the last position.
std::uint64_t begin_of_slice(std::uint64_t index, std::uint64_t count) {
  // index * 2^58 / count without 128-bit integers: first the quotient, then the remainder bit by bit.
  std::uint64_t quotient = index / count;
  std::uint64_t remainder = index % count;
  for (unsigned bit = 0; bit < BucketId::kUsedBitsMax; ++bit) {
    const bool carries = remainder >= count - remainder;
    quotient = (quotient << 1) | (carries ? 1 : 0);
    remainder = carries ? remainder - (count - remainder) : remainder << 1;
  }
  return quotient;
}

}  // namespace

PositionRange PositionRange::slice(std::uint64_t index, std::uint64_t count) {
  FJORD_CHECK(index < count && count <= kLastPosition);
  return {begin_of_slice(index, count), begin_of_slice(index + 1, count) - 1};
}

void PositionSet::add(const PositionRange& range) {
  std::uint64_t first = range.first;
  std::uint64_t last = range.last;
  auto it = ranges_.upper_bound(first);
  if (it != ranges_.begin()) {
    const auto before = std::prev(it);
    if (before->second >= first || before->second + 1 == first) it = before;
  }
  while (it != ranges_.end() && (it->first <= last || it->first == last + 1)) {
    first = std::min(first, it->first);
    last = std::max(last, it->second);
    it = ranges_.erase(it);
  }
  ranges_[first] = last;
}

void PositionSet::remove(const PositionRange& range) {
  std::map<std::uint64_t, std::uint64_t> left;
  for (const auto& [first, last] : ranges_) {
    if (!range.overlaps({first, last})) {
      left[first] = last;
      continue;
    }
    if (first < range.first) left[first] = range.first - 1;
    if (last > range.last) left[range.last + 1] = last;
  }
  ranges_ = std::move(left);
}

bool PositionSet::contains(std::uint64_t position) const { return contains(PositionRange{position, position}); }

bool PositionSet::contains(const PositionRange& range) const {
  auto it = ranges_.upper_bound(range.first);
  return it != ranges_.begin() && std::prev(it)->second >= range.last;
}

bool PositionSet::overlaps(const PositionRange& range) const {
  auto it = ranges_.upper_bound(range.last);
  return it != ranges_.begin() && std::prev(it)->second >= range.first;
}

std::vector<PositionRange> PositionSet::ranges() const {
  std::vector<PositionRange> list;
  for (const auto& [first, last] : ranges_) list.push_back({first, last});
  return list;
}

}  // namespace fjord::visitors
