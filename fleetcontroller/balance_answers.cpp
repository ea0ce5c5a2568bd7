// Answers of the balancer: status, plans, history.

#include "balance_answers.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "live_config.h"

namespace fjord::fleetcontroller {
namespace {

std::uint64_t whole(double value) { return static_cast<std::uint64_t>(std::max(0.0, value) + 0.5); }

std::vector<rpc::BalanceRow> rows_of(const std::vector<PlacementException>& table) {
  std::vector<rpc::BalanceRow> rows;
  for (const PlacementException& row : table) rows.push_back({row.bucket, row.from, row.to});
  return rows;
}

std::vector<rpc::BalanceReads> rows_of(const std::vector<ReadShare>& shares) {
  std::vector<rpc::BalanceReads> rows;
  for (const ReadShare& row : shares) rows.push_back({row.bucket, row.node, row.permille});
  return rows;
}

rpc::BalanceMove move_of(const BalancedReplica& replica) {
  rpc::BalanceMove move;
  move.bucket = replica.bucket;
  move.source = replica.from;
  move.target = replica.to;
  move.bytes = replica.bytes;
  move.read_permille = replica.read_permille;
  return move;
}

rpc::BalanceStep step_of(const BalanceStep& step, unsigned bits) {
  rpc::BalanceStep said;
  said.step = step.id;
  said.kind = step.kind;
  said.unix_us = step.unix_us;
  said.state_version = step.state_version;
  said.round = step.round;
  said.bits = bits;
  said.removed = rows_of(step.removed);
  said.added = rows_of(step.added);
  said.reads_removed = rows_of(step.reads_removed);
  said.reads_added = rows_of(step.reads_added);
  for (const BalancedReplica& replica : step.moves) said.moves.push_back(move_of(replica));
  said.bytes = step.bytes();
  said.bytes_total = step.bytes_total;
  said.imbalance_before = static_cast<std::uint32_t>(step.imbalance_before);
  said.imbalance_after = static_cast<std::uint32_t>(step.imbalance_after);
  said.who = step.who;
  said.why = step.why;
  said.reverts = step.reverts;
  return said;
}

std::uint16_t hottest(const balancer::BalanceModel& model, const std::vector<double>& loads) {
  std::uint16_t node = 0;
  for (std::uint16_t i = 1; i < loads.size(); ++i) {
    if (model.nodes[i].usable && loads[i] > loads[node]) node = i;
  }
  return node;
}

struct NodeInput {
  const BalanceRound& round;
  const BalanceLoads& loads;
  const ClusterState& state;
};

/// Adds a line for each storage node: its load and how far that is over the mean, relative to its capacity.
void add_nodes(rpc::BalanceReply& reply, const NodeInput& input) {
  const auto& model = input.round.model;
  const std::vector<double> model_loads = model ? balancer::node_loads(*model) : std::vector<double>{};
  double sum = 0;
  double capacity = 0;
  for (std::size_t i = 0; i < model_loads.size(); ++i) {
    if (!model->nodes[i].usable) continue;
    sum += model_loads[i] * model->nodes[i].capacity;
    capacity += model->nodes[i].capacity;
  }
  for (std::uint16_t i = 0; i < input.state.node_count(NodeType::Storage); ++i) {
    rpc::BalanceNode said;
    said.node = i;
    if (const NodeLoads* node = input.loads.of(i); node != nullptr) {
      said.load = whole(measured(node->total, input.round.measure).sum());
      said.reads = whole(node->total.reads);
      said.writes = whole(node->total.writes);
      said.bytes = std::accumulate(node->stored_bytes.begin(), node->stored_bytes.end(), std::uint64_t{0});
      said.counted = node->counted;
      said.incarnation = node->incarnation;
      said.counted_before = node->counted_before;
    } else {
      said.note = "its loads are not known";
    }
    if (i < model_loads.size()) {
      said.capacity_permille = permille(model->nodes[i].capacity);
      if (sum > 0 && model->nodes[i].usable) said.over_mean = permille(model_loads[i] * capacity / sum);
      if (!model->nodes[i].usable) said.note = "takes no replicas";
      if (!model->nodes[i].accepts) said.note = "its disk is nearly full: nothing is moved onto it";
    }
    reply.nodes.push_back(std::move(said));
  }
}

/// Returns the algorithm's reason for a move, as people read it.
std::string reason_of(const BalanceProposal& proposal, const BalancedReplica& replica) {
  const auto found = proposal.reasons.find({replica.bucket, replica.from});
  const balancer::MoveReason reason = found == proposal.reasons.end() ? balancer::MoveReason::Rule : found->second;
  switch (reason) {
    case balancer::MoveReason::Hot:
      if (proposal.is_initial) {
        return fmt::format("storage.{} would be fuller than storage.{}", replica.from, replica.to);
      }
      return fmt::format("storage.{} is hotter than storage.{}", replica.from, replica.to);
    case balancer::MoveReason::Rule:
      return fmt::format("{}: {}", proposal.algorithm, balancer::to_string(reason));
    default:
      return std::string(balancer::to_string(reason));
  }
}

struct SliceInput {
  const balancer::BalanceModel& model;
  const std::vector<double>& node_loads;
  const BalanceMoves& last;
  const std::optional<BalanceProposal>& proposal;
  const BalanceLoads& loads;
  bool waits = false;  ///< Nothing may be moved, whatever the loads: no bucket has a reason of its own.
};

/// Returns why the bucket is not moved now; empty: it is about to be moved.
std::string why_not_moved(const SliceInput& input, std::uint32_t bucket) {
  if (input.waits) return "the balancer waits";
  const balancer::Slice& slice = input.model.slices[bucket];
  if (input.proposal) {
    const auto& moves = input.proposal->moves;
    const bool is_planned = std::any_of(moves.begin(), moves.end(), [&](const auto& m) { return m.bucket == bucket; });
    if (is_planned) return {};
  }
  if (input.last.rests(bucket, input.model.round)) {
    return fmt::format("it was moved {} rounds ago and rests for {}",
                       input.model.round - input.last.last_of(bucket)->round, kBalanceCoolDown);
  }
  if (slice.bytes > input.model.step_bytes_max) return "it is larger than a step may move (balancer.bytes_part)";
  const std::uint16_t hot = hottest(input.model, input.node_loads);
  if (slice.holders.find(hot) == nullptr) return fmt::format("it is not on storage.{}, the hottest node", hot);
  double coolest = input.node_loads[hot];
  for (std::size_t i = 0; i < input.node_loads.size(); ++i) {
    if (input.model.nodes[i].usable) coolest = std::min(coolest, input.node_loads[i]);
  }
  const double load = slice.load_at(*slice.holders.find(hot)) / input.model.nodes[hot].capacity;
  if (coolest + load >= input.node_loads[hot]) return "it would make another node as hot";
  return "other moves lower the imbalance more for their bytes";
}

void add_slices(rpc::BalanceReply& reply, const SliceInput& input, std::size_t max) {
  std::vector<std::uint32_t> order(input.model.slices.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto load = [&](std::uint32_t bucket) {
    const balancer::Slice& slice = input.model.slices[bucket];
    return slice.load() + slice.writes * static_cast<double>(std::max<std::size_t>(slice.holders.size(), 1) - 1);
  };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return load(a) > load(b); });
  if (order.size() > max) order.resize(max);
  for (const std::uint32_t bucket : order) {
    const balancer::Slice& slice = input.model.slices[bucket];
    rpc::BalanceSlice said;
    said.bucket = bucket;
    said.load = whole(load(bucket));
    said.bytes = slice.bytes;
    double reads = 0;
    double writes = 0;
    for (std::uint16_t node = 0; node < input.model.nodes.size(); ++node) {
      const NodeLoads* known = input.loads.of(node);
      if (known == nullptr || bucket >= known->rates.size()) continue;
      reads += known->rates[bucket].reads;
      writes += known->rates[bucket].writes;
    }
    for (const balancer::Holder& holder : slice.holders) {
      said.nodes.push_back(holder.node);
      const NodeLoads* known = input.loads.of(holder.node);
      const bool has = known != nullptr && bucket < known->rates.size();
      said.read_permille.push_back(permille(has && reads > 0 ? known->rates[bucket].reads / reads : 0));
    }
    said.reads = whole(reads);
    said.writes = whole(writes);
    said.why_not = why_not_moved(input, bucket);
    reply.slices.push_back(std::move(said));
  }
}

}  // namespace

std::string BalanceAnswers::doing() const {
  if (balance_mode(config()) == BalanceMode::Off) return "nothing: balancer.mode is off, and loads are not collected";
  if (known_.round.number == 0) return "collects the first loads";
  if (!known_.round.waits_for.empty()) return "waits";
  if (!known_.trigger.is_on()) {
    return fmt::format("nothing: moving begins at an imbalance of {:.2f} in {} rounds, or {:.2f}, and ends at {:.2f}",
                       kBalanceBegin, kBalanceRounds, kBalanceAtOnce, kBalanceStop);
  }
  if (!known_.proposal || !known_.proposal->is_worth_it()) {
    return fmt::format("nothing: no step lowers the imbalance by {:.2f}", kBalanceGainMin);
  }
  return balance_mode(config()) == BalanceMode::On ? "moves buckets" : "advises: `fjord balance plan` shows the moves";
}

rpc::BalancePlan BalanceAnswers::plan_message(const BalanceProposal& proposal, const std::string& reason) const {
  rpc::BalancePlan plan;
  plan.state_version = proposal.state_version;
  plan.algorithm = proposal.algorithm;
  for (const BalancedReplica& replica : proposal.moves) {
    rpc::BalanceMove move = move_of(replica);
    if (known_.round.model && replica.bucket < known_.round.model->slices.size()) {
      const balancer::Slice& slice = known_.round.model->slices[replica.bucket];
      const balancer::Holder* holder = slice.holders.find(replica.from);
      if (holder != nullptr) {
        move.load =
            whole(replica.read_permille == 0 ? slice.load_at(*holder) : slice.reads * replica.read_permille / 1000);
      }
    }
    move.reason = reason.empty() ? reason_of(proposal, replica) : reason;
    plan.bytes += replica.bytes;
    plan.moves.push_back(std::move(move));
  }
  plan.duration_s = seconds_for(proposal.moves, config());
  plan.imbalance_before = permille(proposal.before);
  plan.imbalance_after = permille(proposal.after);
  plan.rows = static_cast<std::uint32_t>(proposal.table.rows());
  plan.notes = proposal.left_out;
  plan.is_initial = proposal.is_initial;
  return plan;
}

rpc::BalanceReply BalanceAnswers::status(const rpc::Balance& request) const {
  rpc::BalanceReply reply;
  const ClusterRecord& record = records_.cluster();
  reply.mode = setting_text(*find_setting("balancer.mode"), static_cast<std::int64_t>(balance_mode(config())));
  reply.algorithm = balance_algorithm(config()).name();
  reply.unit = load_measure(config()) == LoadMeasure::Time ? "time" : "operations";
  reply.round = known_.round.number;
  reply.round_us = balance_round_time(config()).count();
  if (known_.round.number != 0) reply.round_age_us = (clock_.now() - known_.round.ended_at).count();
  reply.imbalance = permille(known_.round.model ? known_.round.imbalance : 0);
  reply.doing = doing();
  reply.waits_for = known_.round.waits_for;
  reply.state_version = records_.newest().version();
  reply.bits = records_.active().bits();
  reply.rows = static_cast<std::uint32_t>(table_of(records_.active()).rows());
  reply.rows_max = kBalanceRowsMax;
  reply.leader = options_.name;
  if (request.action == rpc::BalanceAction::History) {
    const auto bits = static_cast<unsigned>(record.nodes.exceptions_bits);
    for (const BalanceStep& step : record.balance_steps) reply.steps.push_back(step_of(step, bits));
    return reply;
  }
  add_nodes(reply, {known_.round, known_.loads, records_.active()});
  if (known_.round.model) {
    const std::size_t all = known_.round.model->slices.size();
    const std::size_t max = request.action == rpc::BalanceAction::Slices ? all : request.max == 0 ? 10 : request.max;
    add_slices(reply,
               {*known_.round.model, balancer::node_loads(*known_.round.model), known_.last_moves, known_.proposal,
                known_.loads, !known_.round.waits_for.empty()},
               max);
  }
  if (known_.proposal) reply.plan = plan_message(*known_.proposal);
  if (!record.balance_steps.empty() && !why_not_in_sync(publisher_.facts()).empty()) {
    const BalanceStep& last = record.balance_steps.back();
    const std::int64_t since_s = (clock_.wall_now().us - last.unix_us) / 1'000'000;
    const auto all_s = static_cast<std::int64_t>(seconds_for(last.moves, config()));
    reply.seconds_left = static_cast<std::uint64_t>(std::max<std::int64_t>(all_s - since_s, 1));
  }
  return reply;
}

BalanceProposal BalanceAnswers::propose_initial(const rpc::Balance& request,
                                                const balancer::BalancingAlgorithm& algorithm) const {
  balancer::Memory memory;
  BalanceProposal proposal = propose(known_, model_of_sample(*known_.round.model, request.sample), algorithm, memory);
  proposal.is_initial = true;
  // What is copied are the bytes that are stored now, and not those of the sample.
  for (BalancedReplica& move : proposal.moves) move.bytes = known_.round.model->slices[move.bucket].bytes;
  return proposal;
}

rpc::BalanceReply BalanceAnswers::plan(const rpc::Balance& request) const {
  rpc::Balance status = request;
  status.action = rpc::BalanceAction::Status;
  rpc::BalanceReply reply = this->status(status);
  const balancer::BalancingAlgorithm* chosen =
      request.algorithm.empty() ? &balance_algorithm(config()) : balancer::find_algorithm(request.algorithm);
  if (chosen == nullptr) {
    std::string names;
    for (const auto* one : balancer::algorithms()) names += (names.empty() ? "" : ", ") + std::string(one->name());
    reply.status = {StatusCode::InvalidArgument,
                    fmt::format("there is no algorithm \"{}\"; there are {}", request.algorithm, names)};
    return reply;
  }
  reply.algorithm = chosen->name();
  const bool is_initial = !request.sample.empty();
  if (balance_mode(config()) == BalanceMode::Off) {
    reply.status = {StatusCode::InvalidArgument,
                    "balancer.mode is off, so no loads are known: `fjord config set balancer.mode=advise`"};
  } else if (!known_.round.model) {
    reply.status = {StatusCode::Unavailable,
                    fmt::format("the loads are not known yet{}{}", known_.round.waits_for.empty() ? "" : ": ",
                                fmt::join(known_.round.waits_for, "; "))};
  } else if (is_initial) {
    const ClusterFacts facts = publisher_.facts();
    reply.refusals = why_not_balance(facts, value_or_default(config(), "maintenance.paused") != 0);
    // The round may have been that of another state, in which other nodes were up.
    if (known_.places.version() != facts.active.version()) reply.refusals.emplace_back(kLoadsNotKnownYet);
    if (reply.refusals.empty()) reply.plan = plan_message(propose_initial(request, *chosen));
  } else if (!known_.round.waits_for.empty()) {
    reply.refusals = known_.round.waits_for;
  } else {
    balancer::Memory memory = chosen == known_.remembered_for ? known_.memory : balancer::Memory{};
    if (chosen == known_.remembered_for && known_.proposal) {
      reply.plan = plan_message(*known_.proposal);
    } else {
      balancer::BalanceModel model = *known_.round.model;
      model.is_requested = true;
      reply.plan = plan_message(propose(known_, model, *chosen, memory));
    }
    if (reply.plan.moves.empty() && reply.plan.notes.empty()) {
      reply.plan.notes.push_back(
          fmt::format("{} moves nothing for these loads ({})", chosen->name(), chosen->summary()));
    }
  }
  return reply;
}

}  // namespace fjord::fleetcontroller
