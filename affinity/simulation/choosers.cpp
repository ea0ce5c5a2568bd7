#include <algorithm>
#include <numeric>

#include "fjord/affinity/simulator.h"

namespace fjord::affinity {
namespace {

// Number of answers, of all replicas together, over which the utilisation is smoothed.
constexpr double kUtilisationAnswers = 1000.0;

}  // namespace

unsigned FingerprintChooser::choose(std::span<const WordId>, std::uint64_t fingerprint) {
  return choose_replica(votes_, shares_, fingerprint);
}

double UtilisationModel::on_answer(unsigned replica, std::uint64_t pages) {
  for (double& sum : pages_) sum *= 1.0 - 1.0 / kUtilisationAnswers;
  pages_[replica] += static_cast<double>(pages);
  const double mean = std::accumulate(pages_.begin(), pages_.end(), 0.0) / static_cast<double>(pages_.size());
  return mean > 0.0 ? std::min(1.0, 0.5 * pages_[replica] / mean) : 0.0;
}

VotingChooser::VotingChooser(const VotingTable& table, const ListPages& pages, bool with_multipliers)
    : table_(table),
      pages_(pages),
      with_multipliers_(with_multipliers),
      multipliers_(table.replicas()),
      utilisation_(table.replicas()),
      votes_(table.replicas()) {}

unsigned VotingChooser::choose(std::span<const WordId> words, std::uint64_t fingerprint) {
  std::fill(votes_.begin(), votes_.end(), 0.0);
  add_votes(table_, words, pages_, with_multipliers_ ? kFloorPart : 0.0, votes_);
  return choose_replica(votes_, multipliers_.shares(), fingerprint);
}

void VotingChooser::on_answer(const Answer& answer) {
  if (!with_multipliers_) return;
  multipliers_.on_answer(answer.replica, utilisation_.on_answer(answer.replica, answer.accessed_pages));
}

ShadowChooser::ShadowChooser(const VotingTable& table, const ListPages& pages, const std::vector<std::uint64_t>& hashes,
                             Options options)
    : options_(options),
      brokers_(options.brokers, {ShadowCaches(table, pages, hashes), Multipliers(table.replicas()),
                                 std::vector<std::uint64_t>(table.replicas(), 0)}),
      utilisation_(table.replicas()),
      votes_(table.replicas()) {}

unsigned ShadowChooser::choose(std::span<const WordId> words, std::uint64_t fingerprint) {
  turn_ = (turn_ + 1) % brokers_.size();
  const Broker& broker = brokers_[turn_];
  std::fill(votes_.begin(), votes_.end(), 0.0);
  broker.shadow.add_votes(words, options_.with_multipliers ? kFloorPart : 0.0, votes_);
  return choose_replica(votes_, broker.multipliers.shares(), fingerprint);
}

void ShadowChooser::on_answer(const Answer& answer) {
  Broker& broker = brokers_[turn_];
  const bool is_complete = answer.changes->for_each_from(
      broker.heard[answer.replica], [&](CacheChange change) { broker.shadow.apply(answer.replica, change); });
  if (!is_complete) broker.shadow.clear(answer.replica);
  broker.heard[answer.replica] = answer.changes->next();
  const double utilisation = utilisation_.on_answer(answer.replica, answer.accessed_pages);
  if (options_.with_multipliers) broker.multipliers.on_answer(answer.replica, utilisation);
}

}  // namespace fjord::affinity
