#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "fjord/cluster/distribution.h"

/// The draws of straw2 in integer arithmetic. The constants decide where data lies and never change (golden values in
/// test/cluster/placement_test.cpp).
namespace fjord::straw2 {

using Uint128 = unsigned __int128;

/// Number of binary digits after the point in a cost and in a weight.
inline constexpr unsigned kCostBits = 36;
inline constexpr unsigned kWeightBits = 16;
inline constexpr std::uint64_t kWeightOne = std::uint64_t{1} << kWeightBits;
inline constexpr std::uint64_t kWeightMax = std::uint64_t{1} << 56;

/// Returns log2(1 + i / 256) for i from 0 to 256, rounded down to kCostBits, computed by repeated squaring.
consteval std::array<std::uint64_t, 257> make_log2_table() {
  std::array<std::uint64_t, 257> table{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    Uint128 x = (Uint128{256} + i) << 54;  // fixed point with 62 bits after the point, from 1 to below 2
    std::uint64_t log = 0;
    for (unsigned bit = 0; bit < kCostBits; ++bit) {
      x = (x * x) >> 62;
      const bool is_two = (x >> 63) != 0;
      log = (log << 1) | (is_two ? 1 : 0);
      if (is_two) x >>= 1;
    }
    table[i] = log;
  }
  table[256] = std::uint64_t{1} << kCostBits;
  return table;
}
inline constexpr std::array<std::uint64_t, 257> kLog2Table = make_log2_table();

/// Returns -log2 of the fraction (hash + 1) / 2^64, by interpolation in the table; never 0. Falls as the hash rises.
inline std::uint64_t cost_of_hash(std::uint64_t hash) {
  const std::uint64_t x = hash | 1;
  const unsigned zeros = static_cast<unsigned>(std::countl_zero(x));
  const std::uint64_t mantissa = x << zeros;  // the shift sets the top bit
  const std::size_t i = (mantissa >> 55) & 0xff;
  const std::uint64_t rest = (mantissa >> 23) & 0xffffffff;
  const std::uint64_t log = kLog2Table[i] + (((kLog2Table[i + 1] - kLog2Table[i]) * rest) >> 32);
  return std::max<std::uint64_t>(1, (std::uint64_t{zeros + 1} << kCostBits) - log);
}

/// Maps 64 bits to 64 bits one to one and mixes them well: the finaliser of splitmix64.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Returns the seed of all draws for one bucket.
inline std::uint64_t seed_of_key(std::uint64_t key) { return mix(key + 0x9e3779b97f4a7c15u); }
inline std::uint64_t hash_of_child(std::uint64_t seed, std::uint64_t child_id) {
  return mix(seed ^ (child_id * 0xd6e8feb86659fd93u + 0xa0761d6478bd642fu));
}

/// Returns a capacity as a weight. Exact or rounded once, so equal on all machines; above 0 unless the capacity is 0.
inline std::uint64_t weight_of(double capacity) {
  if (!(capacity > 0.0)) return 0;
  const double scaled = capacity * 65536.0 + 0.5;
  if (scaled >= static_cast<double>(std::uint64_t{1} << 40)) return std::uint64_t{1} << 40;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(scaled));
}

inline std::uint64_t multiply_weights(std::uint64_t a, std::uint64_t b) {
  const Uint128 product = (Uint128{a} * b) >> kWeightBits;
  return product > kWeightMax ? kWeightMax : static_cast<std::uint64_t>(product);
}

/// One child's draw: the child with the smallest cost / weight wins, which is the largest ln(u) / weight.
struct Draw {
  std::uint64_t cost = 0;
  std::uint64_t weight = 1;
  std::uint64_t id = 0;
  std::uint32_t position = 0;  ///< Position of the child in the caller's list.
  std::uint32_t available = 1;

  bool beats(const Draw& other) const {
    if (weight == other.weight) return cost != other.cost ? cost < other.cost : id < other.id;
    const Uint128 mine = Uint128{cost} * other.weight;
    const Uint128 theirs = Uint128{other.cost} * weight;
    return mine != theirs ? mine < theirs : id < other.id;
  }
};

/// Keeps the best draws in order, up to a limit of at most kMaxRedundancy.
class Ranking {
 public:
  explicit Ranking(std::size_t limit) : limit_(std::min<std::size_t>(limit, kMaxRedundancy)) {}

  void add(const Draw& draw) {
    if (size_ == limit_) {
      if (limit_ == 0 || !draw.beats(draws_[size_ - 1])) return;
    } else {
      ++size_;
    }
    std::size_t at = size_ - 1;
    for (; at > 0 && draw.beats(draws_[at - 1]); --at) draws_[at] = draws_[at - 1];
    draws_[at] = draw;
  }
  std::size_t size() const { return size_; }
  const Draw& operator[](std::size_t rank) const { return draws_[rank]; }

 private:
  std::array<Draw, kMaxRedundancy> draws_;
  std::size_t size_ = 0;
  std::size_t limit_;
};

}  // namespace fjord::straw2
