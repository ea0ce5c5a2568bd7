#include "operations/read_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fjord/common/hash.h"

namespace fjord::distributor {
namespace {

std::uint64_t share_of(std::uint16_t node, std::span<const ReadShare> shares) {
  for (const ReadShare& share : shares) {
    if (share.node == node) return share.permille;
  }
  return 0;
}

/// Returns the relative share of reads that each node should get. At least one is above 0.
std::vector<double> weights_of(const std::vector<std::uint16_t>& nodes, std::span<const ReadShare> shares,
                               const affinity::NodeShares& by_load) {
  const bool has_share =
      std::any_of(nodes.begin(), nodes.end(), [&](std::uint16_t node) { return share_of(node, shares) > 0; });
  std::vector<double> weights;
  weights.reserve(nodes.size());
  for (const std::uint16_t node : nodes) {
    const double permille = has_share ? static_cast<double>(share_of(node, shares)) : 1.0;
    weights.push_back(permille * by_load.share(node));
  }
  return weights;
}

std::size_t draw(const std::vector<double>& weights, Random& random) {
  double point = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0.0) continue;
    chosen = i;
    if (point < weights[i]) break;
    point -= weights[i];
  }
  return chosen;
}

/// Weighted rendezvous hashing: a node wins as many documents as its weight says. If a weight changes, only the
/// documents that the node wins or loses by that go elsewhere.
std::size_t rendezvous(const std::vector<std::uint16_t>& nodes, const std::vector<double>& weights,
                       const GlobalId& document) {
  std::size_t chosen = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (weights[i] <= 0.0) continue;
    // 53 bits of the hash: a number in (0, 1).
    const double point = (static_cast<double>(mix64(document.hash_bits(), nodes[i]) >> 11) + 0.5) * 0x1p-53;
    const double cost = -std::log(point) / weights[i];
    if (cost >= least) continue;
    least = cost;
    chosen = i;
  }
  return chosen;
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

void ReadChoice::on_answer(std::uint16_t node, std::uint32_t utilisation_permille, MonotonicTime now) {
  // 0: a node of an earlier version does not say, which does not mean that it is idle.
  if (static_cast<By>(by_.value()) == By::Random || utilisation_permille == 0) return;
  MonotonicTime& next = next_step_[node];
  if (now < next) return;
  next = now + kStepPause;
  by_load_.on_answer(node, std::min(1.0, utilisation_permille / 1000.0));
}

std::uint16_t ReadChoice::choose(const std::vector<std::uint16_t>& nodes, const GlobalId& document,
                                 std::span<const ReadShare> shares, Random& random) const {
  const By by = static_cast<By>(by_.value());
  if (by == By::Random) return choose_by_share(nodes, shares, random);
  const std::vector<double> weights = weights_of(nodes, shares, by_load_);
  return nodes[by == By::Affinity ? rendezvous(nodes, weights, document) : draw(weights, random)];
}

void ReadChoice::follow(const rpc::ClusterSnapshot& state) {
  if (state_version_ == state.state_version()) return;
  state_version_ = state.state_version();
  std::vector<std::uint16_t> nodes;
  for (const DistributionGroup::Node& node : state.distribution().flat_nodes()) nodes.push_back(node.index);
  by_load_.follow(nodes);
}

}  // namespace fjord::distributor
