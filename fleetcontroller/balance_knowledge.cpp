#include "balance_knowledge.h"

#include <algorithm>
#include <map>

#include "fjord/common/hash.h"
#include "fjord/common/log.h"

namespace fjord::fleetcontroller {
namespace {

/// Makes the algorithm forget its moves of `round`, which were not made, or not all: `last` has those that were made.
void forget_moves_of_round(balancer::Memory& memory, std::uint64_t round, const BalanceMoves& last) {
  for (balancer::SliceMemory& slice : memory.slices) {
    if (slice.moved_round != round) continue;
    const BalanceMoves::Last* moved = last.last_of(slice.range.begin);
    slice.moved_round = moved == nullptr ? 0 : moved->round;
    slice.moved_from = moved == nullptr ? std::uint16_t{0} : moved->from;
  }
}

}  // namespace

BalanceMode balance_mode(const SettingValues& config) {
  return static_cast<BalanceMode>(value_or_default(config, "balancer.mode"));
}

LoadMeasure load_measure(const SettingValues& config) {
  return static_cast<LoadMeasure>(value_or_default(config, "balancer.load"));
}

const balancer::BalancingAlgorithm& balance_algorithm(const SettingValues& config) {
  const SettingDeclaration& setting = *find_setting("balancer.algorithm");
  const auto* found = balancer::find_algorithm(setting_text(setting, value_or_default(config, setting.name)));
  return found != nullptr ? *found : *balancer::algorithms().front();
}

Duration balance_round_time(const SettingValues& config) {
  return milliseconds(value_or_default(config, "balancer.round"));
}

BalanceProposal propose(const BalanceKnowledge& known, const balancer::BalanceModel& model,
                        const balancer::BalancingAlgorithm& algorithm, balancer::Memory& memory) {
  BalanceProposal proposal;
  proposal.algorithm = algorithm.name();
  proposal.state_version = known.places.version();
  proposal.before = balancer::imbalance(model, balancer::node_loads(model));
  proposal.after = proposal.before;
  proposal.table = table_of(*known.places.view().state);
  const auto is_usable = [](const balancer::BalanceNode& node) { return node.usable; };
  if (std::none_of(model.nodes.begin(), model.nodes.end(), is_usable)) {
    proposal.left_out.emplace_back("no storage node with a capacity is up");
    return proposal;
  }
  Random random(mix64(known.round.number, known.places.version()));
  const balancer::Plan plan = algorithm.step(model, memory, random);
  forget_moves_of_round(memory, model.round, known.last_moves);
  if (const Status checked = balancer::check(plan, model); !checked) {
    log::error("balancer", "a plan of {} is not valid: {}", proposal.algorithm, checked.to_string());
    proposal.left_out.push_back(checked.to_string());
    return proposal;
  }
  CheckedMoves checked = check_moves(replicas_of(plan, model), model, known.last_moves);
  TableChange change = with_moves(known.places.view(), checked.moves, kBalanceRowsMax);
  proposal.moves = std::move(change.moves);
  proposal.table = std::move(change.table);
  proposal.left_out = std::move(checked.left_out);
  proposal.left_out.insert(proposal.left_out.end(), change.left_out.begin(), change.left_out.end());
  for (const balancer::Move& move : plan.moves) {
    for (std::uint32_t bucket = move.range.begin; bucket < move.range.end; ++bucket) {
      proposal.reasons[{bucket, move.from}] = move.reason;
    }
  }
  proposal.after = imbalance_after(model, proposal.moves);
  // The algorithm may expect that loads change until all moves are done. What it expects is about its whole plan.
  if (proposal.left_out.empty()) {
    proposal.expected_before = plan.imbalance_before;
    proposal.expected_after = plan.imbalance_after;
  }
  return proposal;
}

balancer::BalanceModel model_of_sample(const balancer::BalanceModel& model,
                                       std::span<const rpc::SampledBucket> sample) {
  balancer::BalanceModel sampled = model;
  sampled.step_bytes_max = UINT64_MAX;
  sampled.is_requested = true;
  for (balancer::Slice& slice : sampled.slices) {
    slice.scale_loads(0);
    slice.bytes = 0;
  }
  for (const rpc::SampledBucket& bucket : sample) {
    balancer::Slice& slice = sampled.slices[bucket.bucket % sampled.slices.size()];
    slice.bytes += bucket.bytes;
    slice.writes = static_cast<double>(slice.bytes);
  }
  return sampled;
}

std::uint64_t seconds_for(std::span<const BalancedReplica> moves, const SettingValues& config) {
  std::map<std::uint16_t, std::uint64_t> received;
  std::uint64_t most = 0;
  for (const BalancedReplica& move : moves) most = std::max(most, received[move.to] += move.bytes);
  const std::int64_t rate = std::min(value_or_default(config, "maintenance.moves_bytes_per_s"),
                                     value_or_default(config, "maintenance.bytes_per_s"));
  return moves.empty() ? 0 : most / static_cast<std::uint64_t>(rate) + 1;
}

}  // namespace fjord::fleetcontroller
