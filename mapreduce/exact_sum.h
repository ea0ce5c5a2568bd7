#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/coding.h"

namespace fjord::mapreduce {

/// The exact sum of any number of doubles: one integer in units of the smallest double (2^-1074), wide enough for the
/// largest one 2^64 times. So the result does not depend on the order of additions, and neither does its encoding.
///
/// Infinities and NaN are kept as flags, as IEEE arithmetic would have them in any order.
class ExactSum {
 public:
  void add(double value);
  void add(const ExactSum& other);
  /// Takes out what was added before. False, and nothing done, if either is not finite: how often is not known.
  bool subtract(const ExactSum& other);
  /// value * 2^exponent; exponent from -1074 to 0.
  void add_scaled(__int128 value, int exponent);
  /// The double nearest to the sum (ties to even); infinity if it is beyond the range of finite doubles.
  double value() const;

  /// Few bytes for sums of numbers of similar size. One sum has one encoding.
  void append_to(std::string& out) const;
  /// False if the bytes are malformed.
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

/// numerator / denominator, correctly rounded. `denominator` > 0.
double divide_rounded(__int128 numerator, std::uint64_t denominator);
/// All digits.
std::string int128_text(__int128 value);

}  // namespace fjord::mapreduce
