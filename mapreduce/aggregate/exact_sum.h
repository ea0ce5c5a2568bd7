#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/coding.h"

namespace fjord::mapreduce {

/// The exact sum of doubles: one integer in units of the smallest double (2^-1074), wide enough for 2^64 times the
/// largest double. So neither the result nor its encoding depends on the order of additions.
///
/// Infinities and NaN are kept as flags and give the result of IEEE arithmetic, which is the same in any order.
class ExactSum {
 public:
  void add(double value);
  void add(const ExactSum& other);
  /// Subtracts a sum that was added before. Returns false and changes nothing if either sum is not finite, because the
  /// number of infinities and NaNs is not known.
  bool subtract(const ExactSum& other);
  /// Adds value * 2^exponent; exponent from -1074 to 0.
  void add_scaled(__int128 value, int exponent);
  /// Returns the double nearest to the sum (ties to even); infinity if the sum is beyond the finite doubles.
  double value() const;

  /// Appends the encoding, which is short for sums of numbers of similar size. A sum has exactly one encoding.
  void append_to(std::string& out) const;
  /// Reads an encoded sum. Returns false if the bytes are malformed.
  bool read(ByteReader& in);

  friend bool operator==(const ExactSum&, const ExactSum&) = default;

 private:
  static constexpr int kLimbs = 35;  // 35 * 64 = 2240 bits: 2098 of a double, 64 for the count, a sign
  static constexpr std::uint8_t kPlusInfinity = 1;
  static constexpr std::uint8_t kMinusInfinity = 2;
  static constexpr std::uint8_t kNaN = 4;

  void add_at(int limb, std::uint64_t low, std::uint64_t high, bool negative);

  std::array<std::uint64_t, kLimbs> limbs_{};  // two's complement, low limb first
  std::uint8_t flags_ = 0;
};

/// Returns numerator / denominator, correctly rounded. `denominator` > 0.
double divide_rounded(__int128 numerator, std::uint64_t denominator);
/// Returns all decimal digits of `value`.
std::string int128_text(__int128 value);

}  // namespace fjord::mapreduce
