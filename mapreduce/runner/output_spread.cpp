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
constexpr std::uint64_t kPlacesBeside = 4096;
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

bool is_refused(const FullNodes& full, const rpc::ClusterSnapshot& snapshot, const OutputPlace& place) {
  for (std::uint32_t i = 0; i < place.buckets; ++i) {
    if (full.refuse(snapshot, place.base + i)) return true;
  }
  return false;
}

/// Looks at groups of `buckets` neighbouring buckets, at most kPlacesBeside of them. A group is suitable if no full
/// node holds one of its buckets. Among the first kPlaces suitable groups, returns the one that is spread most evenly
/// over the nodes.
std::optional<OutputPlace> best_beside(const FullNodes& full, const rpc::ClusterSnapshot& snapshot,
                                       std::uint32_t buckets, std::string_view job) {
  const std::uint64_t width = std::bit_ceil(std::uint64_t{buckets});
  const std::uint64_t all = std::uint64_t{1} << snapshot.distribution_bits();
  const std::uint64_t groups = std::max<std::uint64_t>(1, all / width);
  const std::uint64_t tries = std::min(groups, kPlacesBeside);
  const std::uint64_t hash = hash64(job);
  const std::uint64_t high_bits = hash & kLocations & ~(std::max(all, width) - 1);
  std::optional<OutputPlace> best;
  std::optional<Burden> least;
  std::uint64_t suitable = 0;
  for (std::uint64_t i = 0; i < tries && suitable < kPlaces; ++i) {
    const OutputPlace place{high_bits | ((hash + i * (groups / tries)) % groups * width), buckets};
    if (is_refused(full, snapshot, place)) continue;
    ++suitable;
    const Burden here = burden_of(snapshot, place.base, buckets);
    if (!least || here < *least) {
      least = here;
      best = place;
    }
  }
  return best;
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

std::optional<OutputPlace> place_beside(const FullNodes& full, const rpc::ClusterSnapshot& snapshot,
                                        std::uint32_t buckets, std::string_view job) {
  if (full.is_empty()) return OutputPlace{spread_output(snapshot, buckets, job), buckets};
  for (; buckets > 0; buckets /= 2) {
    if (const auto place = best_beside(full, snapshot, buckets, job)) return place;
  }
  return std::nullopt;
}

}  // namespace fjord::mapreduce
