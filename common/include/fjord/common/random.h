#pragma once

#include <cstdint>
#include <memory>

namespace fjord {

/// The one source of randomness: every draw in the system comes from here, so that a seed decides everything.
/// Threading: confined to its owner; a component makes its own with fork().
class Random {
 public:
  /// splitmix64 seeding of xoshiro256**.
  explicit Random(std::uint64_t seed);
  /// Seeded by the operating system.
  static Random from_system();

  std::uint64_t next();
  /// Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [0, 1).
  double uniform();
  bool chance(double probability) { return uniform() < probability; }
  /// An independent stream.
  Random fork() { return Random(next()); }

 private:
  std::uint64_t state_[4];
};

}  // namespace fjord
