#include "operations/read_choice.h"

namespace fjord::distributor {
namespace {

std::uint64_t share_of(std::uint16_t node, std::span<const ReadShare> shares) {
  for (const ReadShare& share : shares) {
    if (share.node == node) return share.permille;
  }
  return 0;
}

}  // namespace

std::span<const ReadShare> read_shares_of(BucketId bucket, const ClusterState& state) {
  if (state.read_shares().empty() || bucket.used_bits() < state.bits()) return {};
  return state.read_shares_of(bucket.bits() & ((std::uint64_t{1} << state.bits()) - 1));
}

std::uint16_t choose_by_share(const std::vector<std::uint16_t>& nodes, std::span<const ReadShare> shares,
                              Random& random) {
  std::uint64_t sum = 0;
  if (!shares.empty()) {
    for (const std::uint16_t node : nodes) sum += share_of(node, shares);
  }
  if (sum == 0) return nodes[random.below(nodes.size())];
  std::uint64_t point = random.below(sum);
  for (const std::uint16_t node : nodes) {
    const std::uint64_t share = share_of(node, shares);
    if (point < share) return node;
    point -= share;
  }
  return nodes.back();
}

}  // namespace fjord::distributor
