#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "fjord/common/hash.h"

namespace fjord {

/// The unit of placement: all documents whose location and hash agree in the low `used_bits` bits.
///
/// 64 bits: the top 6 are the number of used bits, bits 0 to 31 come from the document's location, bits 32 to 57 from
/// the hash of its id. Bits that are not used are always zero, so equal buckets have equal raw values, and a bucket is
/// split by using one bit more. The default value uses no bits: it is the bucket of every document.
class BucketId {
 public:
  static constexpr unsigned kCountBits = 6;
  static constexpr unsigned kUsedBitsMax = 64 - kCountBits;

  constexpr BucketId() = default;
  /// From the 64-bit form of files and messages; bits beyond the count are cleared. A count above kUsedBitsMax does
  /// not come from this class: see is_valid().
  constexpr explicit BucketId(std::uint64_t raw) : raw_((raw & kCountMask) | (raw & mask(count(raw)))) {}
  /// The bucket that `bits_value` falls in; its bits at and above `used_bits` do not matter. used_bits <= kUsedBitsMax.
  constexpr BucketId(unsigned used_bits, std::uint64_t bits_value)
      : raw_((static_cast<std::uint64_t>(used_bits) << kUsedBitsMax) | (bits_value & mask(used_bits))) {}

  constexpr std::uint64_t raw() const { return raw_; }
  constexpr unsigned used_bits() const { return count(raw_); }
  /// The bits without the count.
  constexpr std::uint64_t bits() const { return raw_ & ~kCountMask; }
  /// The n-th lowest bit.
  constexpr bool bit(unsigned n) const { return ((bits() >> n) & 1) != 0; }
  /// False for a raw value whose count is above kUsedBitsMax; check values that came from outside.
  constexpr bool is_valid() const { return used_bits() <= kUsedBitsMax; }

  /// True if `other` is this bucket or one that it can be split into.
  constexpr bool contains(BucketId other) const {
    return other.used_bits() >= used_bits() && (other.bits() & mask(used_bits())) == bits();
  }
  /// The ancestor that uses `n` bits, or, if `n` is larger than used_bits(), the first of its descendants.
  constexpr BucketId with_used_bits(unsigned n) const { return BucketId(n, bits()); }

  /// All bits in reverse, with the count in the low six: in this order a bucket's descendants directly follow it.
  std::uint64_t sort_key() const;
  /// Where its first descendant with all bits is in the tree: 0 to 2^kUsedBitsMax - 1, in the order of sort_key(). The
  /// bucket reaches from here over span() positions, whatever number of bits others are cut into.
  std::uint64_t position() const { return sort_key() >> kCountBits; }
  constexpr std::uint64_t span() const { return std::uint64_t{1} << (kUsedBitsMax - used_bits()); }
  /// "BucketId(0x4000000000000012)".
  std::string to_string() const;

  /// Order of the raw values; for the order of the bucket tree compare sort_key().
  friend constexpr auto operator<=>(BucketId, BucketId) = default;

 private:
  static constexpr std::uint64_t kCountMask = ~std::uint64_t{0} << kUsedBitsMax;
  static constexpr unsigned count(std::uint64_t raw) { return static_cast<unsigned>(raw >> kUsedBitsMax); }
  static constexpr std::uint64_t mask(unsigned used_bits) {
    return used_bits >= kUsedBitsMax ? ~kCountMask : (std::uint64_t{1} << used_bits) - 1;
  }

  std::uint64_t raw_ = 0;
};

/// The two buckets with one used bit more that share the content of `bucket`, which has a bit left.
constexpr std::array<BucketId, 2> halves_of(BucketId bucket) {
  const unsigned bits = bucket.used_bits();
  return {BucketId(bits + 1, bucket.bits()), BucketId(bits + 1, bucket.bits() | (std::uint64_t{1} << bits))};
}

inline std::ostream& operator<<(std::ostream& out, BucketId bucket) { return out << bucket.to_string(); }

}  // namespace fjord

template <>
struct std::hash<fjord::BucketId> {
  std::size_t operator()(fjord::BucketId bucket) const noexcept { return fjord::mix64(bucket.raw(), 0); }
};
