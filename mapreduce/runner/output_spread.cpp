#include "output_spread.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint64_t kPlaces = 64;
constexpr std::uint64_t kLocations = 0x7fff'ffff'ffff'ffff;

/// Load of a node: number of replicas, and of buckets whose first ideal node it is.
using Burden = std::pair<unsigned, unsigned>;

Burden burden_of(const rpc::ClusterSnapshot& snapshot, std::uint64_t base, std::uint32_t buckets) {
  std::map<std::uint16_t, Burden> of_node;
  Burden most;
  for (std::uint32_t i = 0; i < buckets; ++i) {
    const NodeList nodes = snapshot.ideal_nodes(BucketId(snapshot.distribution_bits(), base + i));
    for (const std::uint16_t node : nodes) {
      Burden& here = of_node[node];
      most.first = std::max(most.first, ++here.first);
      if (node == nodes.front()) most.second = std::max(most.second, ++here.second);
    }
  }
  return most;
}

}  // namespace

std::uint64_t spread_output(const rpc::ClusterSnapshot& snapshot, std::uint32_t buckets, std::string_view job) {
  const std::uint64_t low_bits = std::bit_ceil(std::uint64_t{buckets}) - 1;
  std::uint64_t best = 0;
  std::optional<Burden> least;
  for (std::uint64_t place = 0; place < kPlaces; ++place) {
    const std::uint64_t base = hash64(job, place) & ~low_bits & kLocations;
    const Burden here = burden_of(snapshot, base, buckets);
    if (least && here >= *least) continue;
    least = here;
    best = base;
  }
  return best;
}

}  // namespace fjord::mapreduce
