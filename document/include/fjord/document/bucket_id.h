#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "fjord/common/hash.h"

namespace fjord {

/// The unit of placement: all documents whose location and id hash agree in the low `used_bits` bits.
///
/// The 64 bits of the raw value: the top 6 are the number of used bits, bits 0 to 31 come from the document's location,
/// bits 32 to 57 from the hash of its id. Unused bits are always zero, so equal buckets have equal raw values. A bucket
/// is split by using one bit more. The default value uses no bits: it is the bucket that contains every document.
class BucketId {
 public:
  static constexpr unsigned kCountBits = 6;
  static constexpr unsigned kUsedBitsMax = 64 - kCountBits;

  constexpr BucketId() = default;
  /// Reads the 64-bit form of files and messages and clears the bits beyond the count. Only malformed input has a count
  /// above kUsedBitsMax: see is_valid().
  constexpr explicit BucketId(std::uint64_t raw) : raw_((raw & kCountMask) | (raw & mask(count(raw)))) {}
  /// The bucket that contains `bits_value`; its bits at and above `used_bits` are ignored. used_bits <= kUsedBitsMax.
  constexpr BucketId(unsigned used_bits, std::uint64_t bits_value)
      : raw_((static_cast<std::uint64_t>(used_bits) << kUsedBitsMax) | (bits_value & mask(used_bits))) {}

  constexpr std::uint64_t raw() const { return raw_; }
  constexpr unsigned used_bits() const { return count(raw_); }
  /// The used bits, without the count.
  constexpr std::uint64_t bits() const { return raw_ & ~kCountMask; }
  /// The n-th lowest bit.
  constexpr bool bit(unsigned n) const { return ((bits() >> n) & 1) != 0; }
  /// False for a raw value whose count is above kUsedBitsMax; check values read from messages and files.
  constexpr bool is_valid() const { return used_bits() <= kUsedBitsMax; }

  /// True if `other` is this bucket or one that it can be split into.
  constexpr bool contains(BucketId other) const {
    return other.used_bits() >= used_bits() && (other.bits() & mask(used_bits())) == bits();
  }
  /// The ancestor that uses `n` bits. If `n` is larger than used_bits(): the first descendant that uses `n` bits.
  constexpr BucketId with_used_bits(unsigned n) const { return BucketId(n, bits()); }

  /// All bits in reverse, with the count in the low six: in this order a bucket's descendants directly follow it.
  std::uint64_t sort_key() const;
  /// Position in the bucket tree of the bucket's first descendant that uses all bits: 0 to 2^kUsedBitsMax - 1, in the
  /// order of sort_key(). The bucket covers span() positions from there, however many bits other buckets use.
  std::uint64_t position() const { return sort_key() >> kCountBits; }
  constexpr std::uint64_t span() const { return std::uint64_t{1} << (kUsedBitsMax - used_bits()); }
  /// For messages, with the number that `fjord bucket show` takes: "bucket 0x4000000000000012".
  std::string to_string() const;

  /// Order of the raw values. For the order of the bucket tree compare sort_key().
  friend constexpr auto operator<=>(BucketId, BucketId) = default;

 private:
  static constexpr std::uint64_t kCountMask = ~std::uint64_t{0} << kUsedBitsMax;
  static constexpr unsigned count(std::uint64_t raw) { return static_cast<unsigned>(raw >> kUsedBitsMax); }
  static constexpr std::uint64_t mask(unsigned used_bits) {
    return used_bits >= kUsedBitsMax ? ~kCountMask : (std::uint64_t{1} << used_bits) - 1;
  }

  std::uint64_t raw_ = 0;
};

/// The two halves of `bucket`, each with one used bit more. `bucket` uses fewer than kUsedBitsMax bits.
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
