#include "balance_loop.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "balance_steps.h"
#include "fjord/cluster/feature.h"
#include "fjord/common/log.h"
#include "live_config.h"

namespace fjord::fleetcontroller {
namespace {

// Longest time that a storage node has for its loads.
constexpr Duration kLoadsTimeout = seconds(5);
// Disk stage from which a node gets no more replicas (rpc::PollReply::space_stage): warn.
constexpr std::uint32_t kFullFrom = 1;

}  // namespace

BalanceLoop::BalanceLoop(const FleetControllerOptions& options, const Clock& clock, MetricRegistry& metrics,
                         rpc::Transport& transport, Executor& executor, Candidate& candidate, LeaderRecords& records,
                         NodePoller& poller, Publisher& publisher, Administration& administration)
    : options_(options),
      clock_(clock),
      transport_(transport),
      executor_(executor),
      candidate_(candidate),
      records_(records),
      poller_(poller),
      publisher_(publisher),
      administration_(administration),
      imbalance_percent_(metrics.gauge("fjord_fleetcontroller_imbalance_percent",
                                       "How far the load of the hottest storage node is above the mean")),
      rows_(metrics.gauge("fjord_fleetcontroller_override_rows", "Rows of the table of placement overrides")),
      steps_(
          metrics.counter("fjord_fleetcontroller_balance_steps_total", "Steps of the balancer that were carried out")),
      moves_(metrics.counter("fjord_fleetcontroller_balance_moves_total", "Replicas that the balancer has moved")),
      answers_(options, clock, records, publisher, known_) {}

void BalanceLoop::handle(rpc::Balance request, rpc::Responder respond) {
  switch (request.action) {
    case rpc::BalanceAction::Status:
    case rpc::BalanceAction::Slices:
    case rpc::BalanceAction::History:
      return respond(answers_.status(request));
    case rpc::BalanceAction::Plan:
      return respond(answers_.plan(request));
    case rpc::BalanceAction::Apply:
    case rpc::BalanceAction::Revert:
      return administration_.enqueue(std::move(request), std::move(respond),
                                     [this](const rpc::Request& change, rpc::Responder answer) {
                                       const auto& balance = std::get<rpc::Balance>(change);
                                       if (balance.action == rpc::BalanceAction::Apply) {
                                         run_apply(balance, std::move(answer));
                                       } else {
                                         run_revert(balance, std::move(answer));
                                       }
                                     });
    case rpc::BalanceAction::Unknown:
      break;
  }
  respond(rpc::error_reply(request, {StatusCode::InvalidArgument, "missing action: status, plan, apply or revert"}));
}

// ---------------------------------------------------------------------------------------------------------------------
// Rounds

void BalanceLoop::tick() {
  if (balance_mode(config()) == BalanceMode::Off) {
    if (known_.round.number != 0 || is_asking_) forget();
    return;
  }
  if (is_asking_ || clock_.now() < next_at_ || records_.active().version() == 0) return;
  begin_round();
}

void BalanceLoop::end_term() { forget(); }

void BalanceLoop::forget() {
  ++asking_;
  is_asking_ = false;
  next_at_ = {};
  known_ = {};
  watch_.end();
}

void BalanceLoop::begin_round() {
  is_asking_ = true;
  ++asking_;
  next_at_ = clock_.now() + balance_round_time(config());
  silent_.clear();
  missing_ = 1;
  for (const PolledNode& node : poller_.nodes()) {
    const NodeId id = node.id();
    if (id.type != NodeType::Storage || node.address.empty()) continue;
    if (!is_available(records_.active().node(id).state)) continue;
    ++missing_;
    rpc::call(transport_, node.address, rpc::GetLoads{},
              std::min<Duration>(balance_round_time(config()), kLoadsTimeout), executor_,
              candidate_.in_this_term([this, asking = asking_, index = id.index](Result<rpc::GetLoadsReply> reply) {
                on_loads(asking, index, reply);
              }));
  }
  if (--missing_ == 0) end_round();
}

void BalanceLoop::on_loads(std::uint64_t asking, std::uint16_t node, const Result<rpc::GetLoadsReply>& reply) {
  if (asking != asking_ || !is_asking_) return;
  const Status status = reply ? reply->status : reply.error();
  if (!status) {
    silent_.push_back(fmt::format("storage.{} does not report its loads: {}", node, status.to_string()));
  } else {
    known_.loads.add(node, *reply);
  }
  if (--missing_ == 0) end_round();
}

void BalanceLoop::end_round() {
  is_asking_ = false;
  if (known_.round.number == 0) {
    for (const BalanceStep& step : records_.cluster().balance_steps) {
      known_.round.number = std::max(known_.round.number, step.round);
    }
  }
  ++known_.round.number;
  known_.round.ended_at = clock_.now();
  make_round_model();
  judge_round();
}

void BalanceLoop::make_round_model() {
  const ClusterFacts facts = publisher_.facts();
  if (known_.places.version() != facts.active.version()) {
    if (known_.places.view().bits() != facts.active.bits()) known_.memory = {};
    known_.places.update(facts.active);
  }
  known_.last_moves.update(records_.cluster().balance_steps, known_.round.number);
  known_.round.waits_for = why_not_balance(facts, value_or_default(config(), "maintenance.paused") != 0);
  std::vector<std::string> unknown = silent_;
  if (unknown.empty()) unknown = unknown_loads(known_.places, known_.loads);
  known_.round.model.reset();
  known_.proposal.reset();
  known_.round.measure = load_measure(config());
  rows_.set(static_cast<double>(table_of(records_.active()).rows()));
  if (!unknown.empty() || known_.places.holders().empty()) {
    known_.round.waits_for.insert(known_.round.waits_for.end(), unknown.begin(), unknown.end());
    return;
  }
  std::vector<std::uint16_t> full;
  for (const PolledNode& node : poller_.nodes()) {
    if (node.id().type == NodeType::Storage && node.last.space_stage >= kFullFrom) full.push_back(node.id().index);
  }
  const auto part = static_cast<double>(value_or_default(config(), "balancer.bytes_part")) / 100;
  known_.round.model = make_model({.places = known_.places,
                                   .loads = known_.loads,
                                   .last = known_.last_moves,
                                   .full = full,
                                   .measure = known_.round.measure,
                                   .reads_at_random = value_or_default(config(), "balancer.reads") == 0,
                                   .bytes_part = part,
                                   .round = known_.round.number});
  known_.round.imbalance = balancer::imbalance(*known_.round.model, balancer::node_loads(*known_.round.model));
  imbalance_percent_.set((known_.round.imbalance - 1) * 100);
  std::uint64_t operations = 0;
  std::uint64_t nodes = 0;
  for (std::uint16_t i = 0; i < known_.round.model->nodes.size(); ++i) {
    if (!known_.round.model->nodes[i].usable) continue;
    ++nodes;
    operations += known_.loads.of(i)->operations;
  }
  const auto least = static_cast<std::uint64_t>(value_or_default(config(), "balancer.operations_min"));
  if (operations < least * nodes) {
    known_.round.waits_for.push_back(fmt::format(
        "{} operations on {} nodes in a round say too little (balancer.operations_min={})", operations, nodes, least));
  }
}

void BalanceLoop::judge_round() {
  if (!known_.round.model || !known_.round.waits_for.empty()) {
    known_.trigger.interrupt();
    return;
  }
  known_.trigger.note(known_.round.imbalance);
  const balancer::BalancingAlgorithm& chosen = balance_algorithm(config());
  if (known_.remembered_for != &chosen) known_.memory = {};
  known_.remembered_for = &chosen;
  known_.proposal = propose(known_, *known_.round.model, chosen, known_.memory);
  if (balance_mode(config()) != BalanceMode::On) return;
  if (const std::uint64_t worse = watch_.note(known_.round.imbalance); worse != 0) return take_back(worse);
  if (watch_.is_worse()) return;
  if (known_.trigger.is_on() && known_.proposal->is_worth_it()) carry_out(*known_.proposal);
}

// ---------------------------------------------------------------------------------------------------------------------
// Steps

void BalanceLoop::carry_out(const BalanceProposal& proposal) {
  rpc::Balance request;
  request.action = rpc::BalanceAction::Apply;
  request.state_version = proposal.state_version;
  request.moves = answers_.plan_message(proposal).moves;
  request.who = options_.name;
  request.reason =
      fmt::format("the hottest node has {:.2f} times the mean load ({}{})", proposal.before, proposal.algorithm,
                  proposal.is_by_forecast() ? fmt::format("; it expects {:.2f}, and {:.2f} after the step",
                                                          proposal.expected_before, proposal.expected_after)
                                            : "");
  administration_.enqueue(
      request, [](const rpc::Reply&) {},
      [this](const rpc::Request& change, rpc::Responder answer) {
        run_apply(std::get<rpc::Balance>(change), std::move(answer));
      });
}

void BalanceLoop::take_back(std::uint64_t step) {
  if (records_.cluster().balance_step != step) return;
  rpc::Balance request;
  request.action = rpc::BalanceAction::Revert;
  request.step = step;
  request.who = options_.name;
  request.reason = fmt::format("the imbalance was {:.0f} % above that before step {} in {} rounds",
                               (kBalanceWorse - 1) * 100, step, kBalanceWorseRounds);
  administration_.enqueue(
      request, [](const rpc::Reply&) {},
      [this](const rpc::Request& change, rpc::Responder answer) {
        run_revert(std::get<rpc::Balance>(change), std::move(answer));
      });
}

std::vector<std::string> BalanceLoop::reasons_against() const {
  return why_not_balance(publisher_.facts(), value_or_default(config(), "maintenance.paused") != 0);
}

Status BalanceLoop::check_base(std::uint64_t state_version) const {
  const ClusterState& now = records_.newest();
  const NodeTable& nodes = records_.cluster().nodes;
  // The record may have a newer table than the newest cluster state, if the next state is not generated yet.
  OverrideTable stored = nodes.exceptions_bits == now.bits() ? table_of(nodes) : OverrideTable{};
  if (!now.announces(feature::kReadShares)) stored.reads.clear();
  const bool is_same_table = stored == table_of(now);
  if (state_version == now.version() && is_same_table) return Status::ok();
  return {StatusCode::TestAndSetFailed,
          fmt::format("the plan was made on cluster state {}, and the cluster is in state {}{}: plan again",
                      state_version, now.version(), is_same_table ? "" : " with another change on its way")};
}

void BalanceLoop::run_apply(const rpc::Balance& request, rpc::Responder respond) {
  rpc::BalanceReply reply;
  reply.state_version = records_.newest().version();
  reply.status = check_base(request.state_version);
  if (!reply.status) return respond(std::move(reply));
  reply.refusals = reasons_against();
  if (!known_.round.model || known_.places.version() != request.state_version) {
    reply.refusals.emplace_back(kLoadsNotKnownYet);
  }
  if (!reply.refusals.empty()) return respond(std::move(reply));
  std::vector<BalancedReplica> wanted;
  for (const rpc::BalanceMove& move : request.moves) {
    const bool is_known = move.bucket < known_.round.model->slices.size();
    const bool is_copied = is_known && move.read_permille == 0;
    wanted.push_back({move.bucket, move.source, move.target,
                      is_copied ? known_.round.model->slices[move.bucket].bytes : 0,
                      static_cast<std::uint16_t>(std::min<std::uint32_t>(move.read_permille, 1000))});
  }
  CheckedMoves checked = check_moves(wanted, *known_.round.model, known_.last_moves);
  TableChange change = with_moves(known_.places.view(), checked.moves, kBalanceRowsMax);
  reply.refusals = std::move(checked.left_out);
  reply.refusals.insert(reply.refusals.end(), change.left_out.begin(), change.left_out.end());
  if (!reply.refusals.empty() || change.moves.empty()) return respond(std::move(reply));
  const double after = imbalance_after(*known_.round.model, change.moves);
  BalanceStep step;
  step.kind = request.is_initial ? "initial" : "load";
  step.state_version = request.state_version;
  step.moves = std::move(change.moves);
  step.bytes_total = known_.round.model->bytes();
  step.imbalance_before = permille(known_.round.imbalance);
  step.imbalance_after = permille(after);
  step.who = request.who.empty() ? "an operator" : request.who;
  step.why = request.reason;
  if (request.dry_run) return respond(std::move(reply));
  watch_.end();
  save_step(std::move(change.table), std::move(step), std::move(reply), std::move(respond));
}

void BalanceLoop::run_revert(const rpc::Balance& request, rpc::Responder respond) {
  rpc::BalanceReply reply;
  const ClusterRecord& record = records_.cluster();
  reply.state_version = records_.newest().version();
  Result<OverrideTable> table = table_before(record, request.step);
  if (!table) {
    reply.status = table.error();
  } else if (record.nodes.exceptions_bits != records_.active().bits()) {
    reply.status = {StatusCode::InvalidArgument, "the number of distribution bits has changed since"};
  } else if (records_.pending()) {
    reply.status = {StatusCode::Unavailable, "a new cluster state is on its way: try again"};
  } else {
    reply.status = check_base(records_.active().version());
  }
  if (!reply.status) return respond(std::move(reply));
  BalanceStep step;
  step.kind = "revert";
  step.state_version = records_.active().version();
  step.reverts = request.step;
  step.who = request.who.empty() ? "an operator" : request.who;
  step.why = request.reason;
  std::vector<std::uint64_t> bytes;
  if (known_.round.model) {
    for (const balancer::Slice& slice : known_.round.model->slices) bytes.push_back(slice.bytes);
  }
  step.moves = moves_between(view_of_places(publisher_.facts().active), *table, bytes);
  BalanceProposal shown;
  shown.state_version = step.state_version;
  shown.moves = step.moves;
  shown.table = *table;
  if (known_.round.model) {
    shown.before = known_.round.imbalance;
    shown.after = imbalance_after(*known_.round.model, step.moves);
    step.imbalance_before = permille(shown.before);
    step.imbalance_after = permille(shown.after);
  }
  reply.plan = answers_.plan_message(shown, fmt::format("as before step {}", request.step));
  if (request.dry_run) return respond(std::move(reply));
  watch_.end();
  save_step(std::move(*table), std::move(step), std::move(reply), std::move(respond));
}

void BalanceLoop::save_step(OverrideTable table, BalanceStep step, rpc::BalanceReply reply, rpc::Responder respond) {
  ClusterRecord record = records_.cluster();
  step.unix_us = clock_.wall_now().us;
  step.round = known_.round.number;
  const bool is_load = step.kind == "load";
  HistoryEntry entry;
  entry.version = records_.active().version();
  entry.term = records_.published_term();
  entry.unix_us = step.unix_us;
  entry.who = step.who;
  entry.why = step.why;
  const auto count = static_cast<std::size_t>(
      std::count_if(step.moves.begin(), step.moves.end(), [](const auto& move) { return move.read_permille == 0; }));
  const std::size_t shifts = step.moves.size() - count;
  const std::uint64_t reverts = step.reverts;
  const unsigned bits = records_.active().bits();
  const std::uint64_t id = change_table(record, std::move(table), bits, std::move(step));
  if (id == 0) return respond(std::move(reply));
  entry.what = reverts == 0
                   ? fmt::format("balancer: step {} moves {} replicas, and reads of {} buckets", id, count, shifts)
                   : fmt::format("balancer: step {} takes back step {} and later ones", id, reverts);
  log::info("balancer", "{} ({}): {}", entry.what, entry.who, entry.why);
  record.add_history(std::move(entry));
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  const double before = known_.round.imbalance;
  records_.save(std::move(record),
                [this, answer, id, count, is_load, before, reply = std::move(reply)](const Status& saved) {
                  rpc::BalanceReply said = reply;
                  said.status = saved;
                  if (saved) {
                    steps_.add();
                    moves_.add(count);
                    if (is_load) watch_.begin(id, before);
                    // In mode off there are no rounds; the step then counts as made in the first round that comes.
                    if (known_.round.number != 0) {
                      known_.last_moves.update(records_.cluster().balance_steps, known_.round.number);
                    }
                    known_.proposal.reset();
                  }
                  (*answer)(std::move(said));
                });
}

}  // namespace fjord::fleetcontroller
