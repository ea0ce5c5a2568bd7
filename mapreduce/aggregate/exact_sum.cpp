#include "exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "fjord/common/check.h"

namespace fjord::mapreduce {
namespace {

constexpr int kMantissaBits = 52;
constexpr int kMinExponent = -1074;

/// Rounds `bits` * 2^exponent to a double. The top bit of `bits` is set; `sticky`: non-zero bits below were cut off.
double round_to_double(std::uint64_t bits, int exponent, bool sticky) {
  // The number of mantissa bits to keep: 53 in an ordinary double, fewer in a subnormal one.
  int keep = 53;
  if (exponent + 64 - keep < kMinExponent) keep = exponent + 64 - kMinExponent;
  if (keep < 0) return 0.0;
  const int drop = 64 - keep;
  std::uint64_t mantissa = keep == 0 ? 0 : bits >> drop;
  const std::uint64_t rest = keep == 0 ? bits : bits & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  if (rest > half || (rest == half && (sticky || (mantissa & 1) != 0))) ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), exponent + drop);
}

}  // namespace

void ExactSum::add_at(int limb, std::uint64_t low, std::uint64_t high, bool negative) {
  if (!negative) {
    std::uint64_t carry =
        __builtin_add_overflow(limbs_[static_cast<std::size_t>(limb)], low, &limbs_[static_cast<std::size_t>(limb)]);
    for (std::size_t i = static_cast<std::size_t>(limb) + 1; i < kLimbs && (high != 0 || carry != 0); ++i) {
      const std::uint64_t carried = __builtin_add_overflow(limbs_[i], carry, &limbs_[i]);
      carry = carried + __builtin_add_overflow(limbs_[i], high, &limbs_[i]);
      high = 0;
    }
  } else {
    std::uint64_t borrow =
        __builtin_sub_overflow(limbs_[static_cast<std::size_t>(limb)], low, &limbs_[static_cast<std::size_t>(limb)]);
    for (std::size_t i = static_cast<std::size_t>(limb) + 1; i < kLimbs && (high != 0 || borrow != 0); ++i) {
      const std::uint64_t borrowed = __builtin_sub_overflow(limbs_[i], borrow, &limbs_[i]);
      borrow = borrowed + __builtin_sub_overflow(limbs_[i], high, &limbs_[i]);
      high = 0;
    }
  }
}

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const bool negative = (bits >> 63) != 0;
  const int biased = static_cast<int>((bits >> kMantissaBits) & 0x7ff);
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  if (biased == 0x7ff) {
    flags_ |= mantissa != 0 ? kNaN : negative ? kMinusInfinity : kPlusInfinity;
    return;
  }
  if (biased != 0) mantissa |= std::uint64_t{1} << kMantissaBits;
  if (mantissa == 0) return;
  const int shift = biased == 0 ? 0 : biased - 1;  // the lowest bit of `mantissa` is worth 2^(shift - 1074)
  const int offset = shift % 64;
  const std::uint64_t high = offset == 0 ? 0 : mantissa >> (64 - offset);
  add_at(shift / 64, mantissa << offset, high, negative);
}

void ExactSum::add(const ExactSum& other) {
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < kLimbs; ++i) {
    const std::uint64_t carried = __builtin_add_overflow(limbs_[i], carry, &limbs_[i]);
    carry = carried + __builtin_add_overflow(limbs_[i], other.limbs_[i], &limbs_[i]);
  }
  flags_ |= other.flags_;
}

bool ExactSum::subtract(const ExactSum& other) {
  if (flags_ != 0 || other.flags_ != 0) return false;
  std::uint64_t borrow = 0;
  for (std::size_t i = 0; i < kLimbs; ++i) {
    const std::uint64_t borrowed = __builtin_sub_overflow(limbs_[i], borrow, &limbs_[i]);
    borrow = borrowed + __builtin_sub_overflow(limbs_[i], other.limbs_[i], &limbs_[i]);
  }
  return true;
}

double ExactSum::value() const {
  if ((flags_ & kNaN) != 0 || flags_ == (kPlusInfinity | kMinusInfinity)) return std::nan("");
  if (flags_ == kPlusInfinity) return std::numeric_limits<double>::infinity();
  if (flags_ == kMinusInfinity) return -std::numeric_limits<double>::infinity();
  const bool negative = (limbs_[kLimbs - 1] >> 63) != 0;
  ExactSum magnitude;
  if (negative) {
    std::uint64_t carry = 1;
    for (std::size_t i = 0; i < kLimbs; ++i) {
      carry = __builtin_add_overflow(~limbs_[i], carry, &magnitude.limbs_[i]);
    }
  } else {
    magnitude.limbs_ = limbs_;
  }
  int top = kLimbs - 1;
  while (top >= 0 && magnitude.limbs_[static_cast<std::size_t>(top)] == 0) --top;
  if (top < 0) return 0.0;
  const auto limb = [&](int i) { return i < 0 ? std::uint64_t{0} : magnitude.limbs_[static_cast<std::size_t>(i)]; };
  const int zeros = std::countl_zero(limb(top));
  const std::uint64_t below = zeros == 0 ? 0 : limb(top - 1) >> (64 - zeros);
  const std::uint64_t bits = (limb(top) << zeros) | below;
  bool sticky = zeros == 0 ? limb(top - 1) != 0 : (limb(top - 1) << zeros) != 0;
  for (int i = top - 2; i >= 0 && !sticky; --i) sticky = limb(i) != 0;
  const double rounded = round_to_double(bits, top * 64 - zeros + kMinExponent, sticky);
  return negative ? -rounded : rounded;
}

void ExactSum::append_to(std::string& out) const {
  const bool negative = (limbs_[kLimbs - 1] >> 63) != 0;
  const std::uint64_t filler = negative ? ~std::uint64_t{0} : 0;
  int first = 0;
  while (first < kLimbs && limbs_[static_cast<std::size_t>(first)] == 0) ++first;
  int end = kLimbs;
  while (end > first && limbs_[static_cast<std::size_t>(end - 1)] == filler) --end;
  if (first == kLimbs) first = end = 0;
  out.push_back(static_cast<char>(flags_ | (negative ? 0x80 : 0)));
  out.push_back(static_cast<char>(first));
  out.push_back(static_cast<char>(end - first));
  for (int i = first; i < end; ++i) put_fixed(out, limbs_[static_cast<std::size_t>(i)]);
}

bool ExactSum::read(ByteReader& in) {
  const auto head = in.fixed<std::uint8_t>();
  const auto first = static_cast<std::size_t>(in.fixed<std::uint8_t>());
  const auto count = static_cast<std::size_t>(in.fixed<std::uint8_t>());
  if (!in.ok() || first + count > kLimbs) return false;
  flags_ = head & 7;
  limbs_.fill(0);
  for (std::size_t i = 0; i < count; ++i) limbs_[first + i] = in.fixed<std::uint64_t>();
  if ((head & 0x80) != 0) std::fill(limbs_.begin() + static_cast<std::ptrdiff_t>(first + count), limbs_.end(), ~0ULL);
  return in.ok();
}

void ExactSum::add_scaled(__int128 value, int exponent) {
  FJORD_CHECK(exponent >= kMinExponent && exponent <= 0);
  const bool negative = value < 0;
  const auto magnitude = negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  const int bit = exponent - kMinExponent;
  for (int half = 0; half < 2; ++half) {
    const auto part = static_cast<std::uint64_t>(magnitude >> (64 * half));
    const auto shifted = static_cast<unsigned __int128>(part) << (bit % 64);
    add_at(bit / 64 + half, static_cast<std::uint64_t>(shifted), static_cast<std::uint64_t>(shifted >> 64), negative);
  }
}

double divide_rounded(__int128 numerator, std::uint64_t denominator) {
  FJORD_CHECK(denominator > 0);
  if (numerator == 0) return 0.0;
  const bool negative = numerator < 0;
  auto magnitude = negative ? -static_cast<unsigned __int128>(numerator) : static_cast<unsigned __int128>(numerator);
  // Shifts the numerator up as far as possible, so that the quotient has at least 64 bits, more than the 53 of a
  // double.
  int exponent = 0;
  const auto high = [](unsigned __int128 v) { return static_cast<std::uint64_t>(v >> 64); };
  const int zeros = high(magnitude) != 0 ? std::countl_zero(high(magnitude))
                                         : 64 + std::countl_zero(static_cast<std::uint64_t>(magnitude));
  magnitude <<= zeros;
  exponent -= zeros;
  unsigned __int128 quotient = magnitude / denominator;
  bool sticky = magnitude % denominator != 0;
  while (high(quotient) != 0) {
    sticky = sticky || (static_cast<std::uint64_t>(quotient) & 1) != 0;
    quotient >>= 1;
    ++exponent;
  }
  const double rounded = round_to_double(static_cast<std::uint64_t>(quotient), exponent, sticky);
  return negative ? -rounded : rounded;
}

std::string int128_text(__int128 value) {
  auto magnitude = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string text;
  do {
    text.push_back(static_cast<char>('0' + static_cast<int>(magnitude % 10)));
    magnitude /= 10;
  } while (magnitude != 0);
  if (value < 0) text.push_back('-');
  std::reverse(text.begin(), text.end());
  return text;
}

}  // namespace fjord::mapreduce
