#include "balance_rules.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "balance_steps.h"

namespace fjord::fleetcontroller {

void BalanceTrigger::note(double imbalance) {
  high_rounds_ = imbalance >= kBalanceBegin ? high_rounds_ + 1 : 0;
  if (high_rounds_ >= kBalanceRounds || imbalance >= kBalanceAtOnce) is_on_ = true;
  if (imbalance <= kBalanceStop) is_on_ = false;
}

void BalanceWatch::begin(std::uint64_t step, double imbalance_before) {
  step_ = step;
  before_ = imbalance_before;
  worse_rounds_ = 0;
}

std::uint64_t BalanceWatch::note(double imbalance) {
  if (step_ == 0) return 0;
  if (imbalance <= before_ * kBalanceWorse) {
    end();
    return 0;
  }
  if (++worse_rounds_ < kBalanceWorseRounds) return 0;
  const std::uint64_t step = step_;
  end();
  return step;
}

void BalanceMoves::update(const std::vector<BalanceStep>& steps, std::uint64_t round) {
  // Recovered records number their steps from 1 again.
  if (!steps.empty() && steps.back().id < newest_step_) newest_step_ = 0;
  for (const BalanceStep& step : steps) {
    if (step.id <= newest_step_) continue;
    newest_step_ = step.id;
    for (const BalancedReplica& move : step.moves) {
      Last& last = last_[move.bucket];
      last.round = round;
      if (move.read_permille == 0) last = {round, move.from, move.to};
    }
  }
  std::erase_if(last_, [&](const auto& entry) { return entry.second.round + kBalanceNotBack <= round; });
}

void BalanceMoves::clear() {
  last_.clear();
  newest_step_ = 0;
}

const BalanceMoves::Last* BalanceMoves::last_of(std::uint64_t bucket) const {
  const auto found = last_.find(bucket);
  return found == last_.end() ? nullptr : &found->second;
}

bool BalanceMoves::rests(std::uint64_t bucket, std::uint64_t round) const {
  const Last* last = last_of(bucket);
  return last != nullptr && round < last->round + kBalanceCoolDown;
}

std::vector<std::string> why_not_balance(const ClusterFacts& facts, bool is_paused) {
  std::vector<std::string> reasons;
  if (is_paused) reasons.emplace_back("the movement of data is paused (fjord resume)");
  if (facts.is_changing) reasons.emplace_back("a new cluster state is on its way");
  for (const NodeFacts& node : facts.nodes) {
    const bool is_placed =
        node.id.type == NodeType::Distributor || facts.active.distribution->contains_node(node.id.index);
    if (!is_placed) continue;
    if (node.state != NodeState::Up) {
      reasons.push_back(fmt::format("{} is {}", node.id.to_string(), to_string(node.state)));
    } else if (node.wanted.state != NodeState::Up) {
      reasons.push_back(fmt::format("{} is to be {}", node.id.to_string(), to_string(node.wanted.state)));
    }
  }
  for (const DistributionGroup::Node& node : facts.active.distribution->flat_nodes()) {
    const NodeId id = NodeId::storage(node.index);
    if (facts.find(id) == nullptr) reasons.push_back(fmt::format("{} is being removed", id.to_string()));
  }
  if (facts.active.bits() > kBalanceBitsMax) {
    reasons.push_back(fmt::format("loads are counted with up to {} distribution bits, not with {}", kBalanceBitsMax,
                                  facts.active.bits()));
  }
  for (std::string& reason : why_not_in_sync(facts)) reasons.push_back(std::move(reason));
  return reasons;
}

CheckedMoves check_moves(std::span<const BalancedReplica> moves, const balancer::BalanceModel& model,
                         const BalanceMoves& last) {
  CheckedMoves checked;
  std::uint64_t left = model.step_bytes_max;
  std::set<std::uint64_t> moved;
  std::set<std::uint64_t> shifted;
  for (const BalancedReplica& move : moves) {
    const auto leave_out = [&](std::string_view why) {
      checked.left_out.push_back(fmt::format("{}: {}", text_of(move), why));
    };
    if (move.bucket >= model.slices.size() || move.from >= model.nodes.size() || move.to >= model.nodes.size()) {
      leave_out("there is no such bucket or node");
      continue;
    }
    const bool is_gone = !model.nodes[move.from].usable;
    const BalanceMoves::Last* before = last.last_of(move.bucket);
    const bool moves_reads = move.read_permille != 0;
    const bool goes_back = !moves_reads && before != nullptr && before->from == move.to && before->to == move.from;
    if (!model.nodes[move.to].usable || (!moves_reads && !model.nodes[move.to].accepts)) {
      leave_out("the target accepts nothing");
    } else if (last.rests(move.bucket, model.round) && !is_gone) {
      leave_out(fmt::format("it was moved less than {} rounds ago", kBalanceCoolDown));
    } else if (goes_back && !is_gone) {
      leave_out("it came from there");
    } else if (moved.contains(move.bucket) || (!moves_reads && shifted.contains(move.bucket))) {
      leave_out("another replica of it moves in this step");
    } else if (move.bytes > left) {
      leave_out("the step would move more bytes than it may (balancer.bytes_part)");
    } else {
      left -= move.bytes;
      (moves_reads ? shifted : moved).insert(move.bucket);
      checked.moves.push_back(move);
    }
  }
  return checked;
}

std::vector<BalancedReplica> replicas_of(const balancer::Plan& plan, const balancer::BalanceModel& model) {
  std::vector<BalancedReplica> replicas;
  for (const balancer::Move& move : plan.moves) {
    const bool moves_reads = move.kind == balancer::MoveKind::ReadShare;
    const std::uint16_t part = moves_reads ? static_cast<std::uint16_t>(permille(move.share)) : std::uint16_t{0};
    if (moves_reads ? part == 0 : move.kind != balancer::MoveKind::Place || move.from == move.to) continue;
    for (std::uint32_t bucket = move.range.begin; bucket < move.range.end; ++bucket) {
      replicas.push_back({bucket, move.from, move.to, moves_reads ? 0 : model.slices[bucket].bytes, part});
    }
  }
  return replicas;
}

double imbalance_after(const balancer::BalanceModel& model, std::span<const BalancedReplica> moves) {
  balancer::BalanceModel after = model;
  for (const BalancedReplica& move : moves) {
    if (move.bucket >= after.slices.size() || move.to >= after.nodes.size()) continue;
    balancer::Holders& holders = after.slices[move.bucket].holders;
    balancer::Holder* source = holders.find(move.from);
    if (source == nullptr) continue;
    if (move.read_permille == 0) {
      source->node = move.to;
    } else if (balancer::Holder* target = holders.find(move.to)) {
      const double part = std::min(source->read_share, move.read_permille / 1000.0);
      source->read_share -= part;
      target->read_share += part;
    }
  }
  return balancer::imbalance(after, balancer::node_loads(after));
}

std::uint32_t permille(double ratio) { return static_cast<std::uint32_t>(std::lround(std::max(0.0, ratio) * 1000)); }

}  // namespace fjord::fleetcontroller
