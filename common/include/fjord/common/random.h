#pragma once

#include <cstdint>
#include <memory>

namespace fjord {

/// The only source of randomness in the system, so a seed determines all draws.
/// Threading: confined to its owner; a component creates its own with fork().
class Random {
 public:
  /// Makes a xoshiro256** generator whose state is filled by splitmix64 from `seed`.
  explicit Random(std::uint64_t seed);
  /// Returns a generator seeded by the operating system.
  static Random from_system();

  std::uint64_t next();
  /// Returns a uniform number in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Returns a uniform number in [0, 1).
  double uniform();
  bool chance(double probability) { return uniform() < probability; }
  /// Returns an independent generator.
  Random fork() { return Random(next()); }

 private:
  std::uint64_t state_[4];
};

}  // namespace fjord
