#include "fjord/affinity/vote.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fjord/common/check.h"

namespace fjord::affinity {
namespace {

/// With many nodes shares are small, and change in smaller steps: in all not more than this.
constexpr double kStepOfAll = 0.05;

}  // namespace

Multipliers::Multipliers(unsigned replicas, Options options)
    : options_(options), shares_(replicas, 1.0 / static_cast<double>(replicas)), utilisation_(replicas, 0.0) {
  FJORD_CHECK(replicas > 0 && options.floor > 0.0 && options.floor < 1.0);
  FJORD_CHECK(options.fade < replicas && options.relax < replicas);
}

void Multipliers::on_answer(unsigned replica, double utilisation) {
  const auto count = static_cast<double>(shares_.size());
  for (double& reported : utilisation_) reported *= 1.0 - options_.fade / count;
  for (double& share : shares_) share += options_.relax / count * (1.0 / count - share);
  utilisation_[replica] = utilisation;
  const double mean = std::accumulate(utilisation_.begin(), utilisation_.end(), 0.0) / count;
  shares_[replica] += options_.step * (mean - utilisation);
  normalise();
}

void Multipliers::normalise() {
  const double least = options_.floor / static_cast<double>(shares_.size());
  double above = 0.0;  // Sum of what each share has above the floor.
  for (double& share : shares_) {
    share = std::max(share, least);
    above += share - least;
  }
  // All shares are at the floor, so they become equal.
  if (above <= 0.0) {
    std::fill(shares_.begin(), shares_.end(), 1.0 / static_cast<double>(shares_.size()));
    return;
  }
  const double factor = (1.0 - options_.floor) / above;
  for (double& share : shares_) share = least + (share - least) * factor;
}

void NodeShares::follow(const std::vector<std::uint16_t>& nodes) {
  std::map<std::uint16_t, unsigned> places;
  for (const std::uint16_t node : nodes) places.emplace(node, static_cast<unsigned>(places.size()));
  if (places == places_ || places.empty()) return;
  places_ = std::move(places);
  const auto count = static_cast<unsigned>(places_.size());
  Multipliers::Options options;
  options.step = std::min(options.step, kStepOfAll / count);
  multipliers_.emplace(count, options);
}

void NodeShares::on_answer(std::uint16_t node, double utilisation) {
  const auto at = places_.find(node);
  if (at != places_.end()) multipliers_->on_answer(at->second, utilisation);
}

double NodeShares::share(std::uint16_t node) const {
  const auto at = places_.find(node);
  return at == places_.end() ? any_share() : multipliers_->share(at->second);
}

unsigned choose_replica(std::span<const double> votes, std::span<const double> shares, std::uint64_t fingerprint) {
  FJORD_CHECK(!votes.empty() && votes.size() == shares.size());
  double least = votes[0] / shares[0];
  for (std::size_t r = 1; r < votes.size(); ++r) least = std::min(least, votes[r] / shares[r]);
  double width = 0.0;
  for (std::size_t r = 0; r < votes.size(); ++r) width += votes[r] / shares[r] <= least ? shares[r] : 0.0;
  // 53 bits of the fingerprint give a number in [0, 1).
  double at = static_cast<double>(fingerprint >> 11) * 0x1p-53 * width;
  unsigned chosen = 0;
  for (std::size_t r = 0; r < votes.size(); ++r) {
    if (votes[r] / shares[r] > least) continue;
    chosen = static_cast<unsigned>(r);
    if (at < shares[r]) break;
    at -= shares[r];
  }
  return chosen;
}

void add_votes(const VotingTable& table, std::span<const WordId> words, const ListPages& pages, double floor_part,
               std::span<double> votes) {
  for (const WordId word : words) {
    const std::span<const float> weights = table.weights(word);
    if (weights.empty()) continue;
    const double floor = floor_part * pages[word];
    for (std::size_t r = 0; r < weights.size(); ++r) votes[r] += static_cast<double>(weights[r]) + floor;
  }
}

}  // namespace fjord::affinity
