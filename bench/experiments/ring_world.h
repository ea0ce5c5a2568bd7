#pragma once

// A ring of servers that hold keys in one file each, and clients that put and get them: the system of [ADLB], in a
// simulator.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fjord/balancer/algorithm.h"
#include "fjord/common/random.h"

namespace fjord::balancer {

/// How keys are distributed on the ring [ADLB, appendix A].
enum class KeyShape { Equal, Normal, Spiked };

std::string_view to_string(KeyShape shape);

struct RingOptions {
  KeyShape shape = KeyShape::Equal;
  std::uint32_t buckets_per_server = 9;  ///< The paper's N: equal parts of a server's range; each moves as a whole.
  double offloaded_part = 0.25;          ///< The paper's T: at least this part of its keys leaves a server at once.
  bool balances = true;                  ///< False: servers keep their ranges.
  /// Replaces the paper's rule by an algorithm of the module balancer.
  const BalancingAlgorithm* algorithm = nullptr;
  std::uint32_t servers = 4;
  std::uint32_t clients = 3;
  std::uint32_t keys = 3330;
  std::uint64_t operations_min = 500;  ///< The paper's O: operations after which a server looks at its neighbours.
  double cycle_seconds = 30.0;
  /// An operation reads the file of its server: it takes base + per_key * keys there.
  double base_seconds = 0.0;
  double per_key_seconds = 0.0;
  bool one_at_a_time = true;  ///< A server does one operation at a time.
  std::uint64_t seed = 1;
};

struct RingResult {
  double seconds = 0.0;         ///< Time until the last client has put and got all of its keys.
  std::uint64_t offloads = 0;   ///< Number of times that keys went from one server to another.
  std::uint64_t moved = 0;      ///< Number of keys that went.
  double keys_imbalance = 1.0;  ///< Keys of the fullest server at the end over the mean.
};

RingResult run_ring(const RingOptions& options);

}  // namespace fjord::balancer
