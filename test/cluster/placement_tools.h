#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "fjord/cluster/placement.h"
#include "fjord/cluster/placement_statistics.h"

/// Helpers of the placement tests.
namespace fjord::test {

inline ClusterState state_of(const std::string& text) {
  Result<ClusterState> state = ClusterState::parse(text);
  INFO(text << " " << state.status());
  REQUIRE(state);
  return *state;
}

inline DistributionConfig config_of(const std::string& text) {
  Result<DistributionConfig> config = DistributionConfig::parse(text);
  INFO(text << " " << config.status());
  REQUIRE(config);
  return *config;
}

inline std::string name_of(PlacementKind kind) { return std::string(to_string(kind)); }

inline std::string storage(unsigned count, unsigned bits = 16) {
  return "bits:" + std::to_string(bits) + " storage:" + std::to_string(count);
}

/// Returns "FIRST-LAST".
inline std::string range(unsigned first, unsigned count) {
  return std::to_string(first) + "-" + std::to_string(first + count - 1);
}

/// True if `count` is within six standard deviations of the mean of a binomial distribution.
inline bool is_near(double count, double trials, double p) {
  return std::abs(count - trials * p) < 6 * std::sqrt(trials * p * (1 - p));
}

}  // namespace fjord::test
