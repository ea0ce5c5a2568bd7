#include "fjord/cluster/ownership.h"

#include "fjord/cluster/placement.h"
#include "straw2.h"

namespace fjord {

std::optional<std::uint16_t> distributor_of(BucketId bucket, const ClusterState& state) {
  const std::uint64_t seed = straw2::seed_of_key(placement_key(bucket, state.bits()));
  straw2::Ranking ranking(1);
  const std::uint16_t count = state.node_count(NodeType::Distributor);
  for (std::uint16_t index = 0; index < count; ++index) {
    if (!state.is_up(NodeId::distributor(index))) continue;
    ranking.add({straw2::cost_of_hash(straw2::hash_of_child(seed, index)), straw2::kWeightOne, index, index, 1});
  }
  if (ranking.size() == 0) return std::nullopt;
  return static_cast<std::uint16_t>(ranking[0].id);
}

}  // namespace fjord
