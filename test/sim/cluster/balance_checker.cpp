#include "balance_checker.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/cluster/feature.h"

namespace fjord::sim {
namespace {

constexpr std::uint64_t kCoolDownRounds = 6;
constexpr std::size_t kRowsMax = 4096;

rpc::BucketLoad sum_of(const std::vector<rpc::BucketLoad>& loads) {
  rpc::BucketLoad sum;
  for (const rpc::BucketLoad& load : loads) {
    sum.read_ns += load.read_ns;
    sum.write_ns += load.write_ns;
    sum.reads += load.reads;
    sum.writes += load.writes;
    sum.read_bytes += load.read_bytes;
    sum.written_bytes += load.written_bytes;
    sum.stored_bytes += load.stored_bytes;
    sum.search_ns += load.search_ns;
    sum.search_candidates += load.search_candidates;
    sum.search_pages += load.search_pages;
  }
  return sum;
}

}  // namespace

void BalanceChecker::watch(SimCluster& cluster, double bytes_part) {
  cluster_ = &cluster;
  bytes_part_ = bytes_part;
  ask();
}

void BalanceChecker::ask() {
  if (stopped_) return;
  ask_history([](bool) {});
  rpc::Balance question;
  question.action = rpc::BalanceAction::Status;
  // see_answer() reads the answer on its way.
  cluster_->admin().call_any(std::move(question), seconds(2), [](const Result<rpc::BalanceReply>&) {});
  cluster_->scheduler().outside().post_after(seconds(1), [this] { ask(); });
}

void BalanceChecker::ask_history(std::function<void(bool is_answered)> then) {
  rpc::Balance question;
  question.action = rpc::BalanceAction::History;
  cluster_->admin().call_any(
      std::move(question), seconds(2), [this, then = std::move(then)](const Result<rpc::BalanceReply>& reply) {
        const bool is_answered = reply && reply->status;
        const bool had_steps = !steps_.empty() || std::ranges::any_of(states_, [](const auto& one) {
          return !table_of(*one.second.state).empty();
        });
        if (is_answered && reply->steps.empty() && had_steps) is_history_lost_ = true;
        then(is_answered);
      });
}

std::string BalanceChecker::end() {
  constexpr int kAttempts = 100;
  stop();
  if (!is_watching()) return {};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::size_t states = states_.size();
    bool has_ended = false;
    bool is_answered = false;
    ask_history([&](bool answered) {
      has_ended = true;
      is_answered = answered;
    });
    FJORD_CHECK(cluster_->run_until([&] { return has_ended; }, seconds(60)));
    // The answer may lack the steps of states that became known meanwhile.
    if (is_answered && states == states_.size()) return check();
  }
  return "I20: no controller says which steps it made";
}

void BalanceChecker::keep(std::string failure) {
  if (failure_.empty()) failure_ = std::move(failure);
}

std::size_t BalanceChecker::moves() const {
  std::size_t count = 0;
  for (const auto& [id, step] : steps_) count += step.moves.size();
  return count;
}

void BalanceChecker::see_state(std::uint64_t version, const std::string& state, const std::string& distribution) {
  if (states_.contains(version) || distribution.empty()) return;
  Result<ClusterState> parsed = ClusterState::parse(state);
  Result<DistributionConfig> groups = DistributionConfig::parse(distribution);
  if (parsed && groups) states_.emplace(version, ClusterView::make(std::move(*parsed), std::move(*groups)));
}

void BalanceChecker::see_loads(const std::string& from, const rpc::GetLoadsReply& reply) {
  if (!reply.status) return;
  ++loads_seen_;
  const rpc::BucketLoad sum = sum_of(reply.buckets);
  if (sum != reply.total) {
    keep(fmt::format("I23: the buckets of {} have {} reads and {} writes, the node has {} and {}", from, sum.reads,
                     sum.writes, reply.total.reads, reply.total.writes));
  }
  counted_[{from, reply.incarnation}].insert(reply.total.reads + reply.total.writes + reply.total.search_candidates);
}

void BalanceChecker::see_answer(const rpc::BalanceReply& reply) {
  for (const rpc::BalanceStep& step : reply.steps) {
    const auto [known, is_new] = steps_.try_emplace(step.step, step);
    if (!is_new && known->second != step) keep(fmt::format("I20: step {} has two meanings", step.step));
  }
  for (const rpc::BalanceNode& node : reply.nodes) {
    const auto reported = counted_.find({NodeId::storage(node.node).to_string(), node.incarnation});
    if (node.incarnation == 0 || reported == counted_.end()) continue;
    if (!reported->second.contains(node.counted_before + node.counted)) {
      keep(fmt::format("I23: {} operations of storage.{} are counted, which it never reported",
                       node.counted_before + node.counted, node.node));
    }
  }
}

BalanceChecker::Table BalanceChecker::table_of(const ClusterState& state) {
  Table table;
  for (const PlacementException& row : state.exceptions())
    table.insert({row.bucket, Kind::Elsewhere, row.from, row.to});
  for (const ReadShare& row : state.read_shares()) table.insert({row.bucket, Kind::Reads, row.node, row.permille});
  return table;
}

BalanceChecker::Table BalanceChecker::visible_in(const ClusterState& state, Table table) {
  if (!state.announces(feature::kReadShares)) {
    std::erase_if(table, [](const Row& row) { return std::get<Kind>(row) == Kind::Reads; });
  }
  return table;
}

std::string BalanceChecker::replay(const rpc::BalanceStep& step, Table& table) {
  std::vector<Row> removed;
  std::vector<Row> added;
  for (const auto& row : step.removed) removed.push_back({row.bucket, Kind::Elsewhere, row.source, row.target});
  for (const auto& row : step.added) added.push_back({row.bucket, Kind::Elsewhere, row.source, row.target});
  for (const auto& row : step.reads_removed) removed.push_back({row.bucket, Kind::Reads, row.node, row.permille});
  for (const auto& row : step.reads_added) added.push_back({row.bucket, Kind::Reads, row.node, row.permille});
  for (const Row& row : removed) {
    if (table.erase(row) != 0) continue;
    return fmt::format("I20: step {} removes a row of bucket {:x} that was not there", step.step, std::get<0>(row));
  }
  for (const Row& row : added) {
    if (table.insert(row).second) continue;
    return fmt::format("I20: step {} adds a row of bucket {:x} that was there", step.step, std::get<0>(row));
  }
  return {};
}

std::string BalanceChecker::check() const {
  if (!failure_.empty()) return failure_;
  std::map<std::uint64_t, Tables> tables;
  if (std::string problem = replay(tables); !problem.empty()) return problem;
  if (std::string problem = check_states(tables); !problem.empty()) return problem;
  return check_rules();
}

std::string BalanceChecker::replay(std::map<std::uint64_t, Tables>& tables) const {
  Table table;
  std::uint32_t bits = 0;
  std::uint64_t last_version = 0;
  for (const auto& [id, step] : steps_) {
    // A change of the number of bits empties the table, as all buckets are placed again. Until then nothing is checked
    // after a step that was never seen.
    const bool is_next = id == 1 || tables.contains(id - 1);
    if (step.bits != bits) {
      table.clear();
    } else if (!is_next) {
      bits = 0;
      continue;
    }
    bits = step.bits;
    Table before = table;
    std::string problem = replay(step, table);
    if (!problem.empty() && had_other_bits(last_version, step)) {
      // Balancing by bytes may have emptied the table meanwhile, which is no step.
      before.clear();
      table.clear();
      problem = replay(step, table);
    }
    if (!problem.empty()) return problem;
    last_version = step.state_version;
    Tables& known = tables[id];
    known.before = std::move(before);
    known.after = table;
    if (step.reverts == 0) continue;
    const auto reverted = tables.find(step.reverts);
    if (reverted != tables.end() && reverted->second.before != table) {
      return fmt::format("I20: step {} does not restore the table before step {}", id, step.reverts);
    }
  }
  return {};
}

bool BalanceChecker::had_other_bits(std::uint64_t after, const rpc::BalanceStep& step) const {
  if (step.state_version <= after) return false;
  return std::any_of(states_.upper_bound(after), states_.upper_bound(step.state_version),
                     [&](const auto& state) { return state.second.bits() != step.bits; });
}

/// Returns true if the state may be that of a step which was never seen, because it was made between the last question
/// and a change of the bits, which ends the history. Once a later step of a history is seen, all before it are.
bool BalanceChecker::may_be_of_unseen_step(std::uint64_t version) const {
  const unsigned bits = states_.at(version).bits();
  const auto change = std::find_if(states_.upper_bound(version), states_.end(),
                                   [bits](const auto& state) { return state.second.bits() != bits; });
  const bool is_seen = std::ranges::any_of(steps_, [&](const auto& step) {
    const std::uint64_t made_on = step.second.state_version;
    return made_on >= version && (change == states_.end() || made_on < change->first);
  });
  return !is_seen && (change != states_.end() || is_history_lost_);
}

std::string BalanceChecker::check_states(const std::map<std::uint64_t, Tables>& tables) const {
  std::map<unsigned, std::set<Table>> legal;
  bool is_complete = true;
  for (const auto& [id, step] : steps_) {
    const auto known = tables.find(id);
    is_complete = is_complete && known != tables.end();
    if (known == tables.end()) continue;
    legal[step.bits].insert(known->second.after);
    // The next state cannot be known: `fjord node balance` names the active state, which a pending one may follow.
    if (step.kind == "bytes") continue;
    const auto next = states_.find(step.state_version + 1);
    if (next != states_.end() && next->second.bits() == step.bits &&
        table_of(*next->second.state) != visible_in(*next->second.state, known->second.after)) {
      return fmt::format("I20: state {} has not the table of step {}, which was made on the state before", next->first,
                         id);
    }
    const auto base = states_.find(step.state_version);
    if (base == states_.end() || base->second.bits() != step.bits) continue;
    if (table_of(*base->second.state) != visible_in(*base->second.state, known->second.before)) {
      return fmt::format("I20: step {} was made on state {}, whose table is another one", id, base->first);
    }
  }
  if (!is_complete) return {};
  for (const auto& [version, view] : states_) {
    const Table table = table_of(*view.state);
    const bool is_legal = std::ranges::any_of(
        legal[view.bits()], [&](const Table& known) { return visible_in(*view.state, known) == table; });
    if (table.empty() || is_legal) continue;
    if (may_be_of_unseen_step(version)) continue;
    return fmt::format("I20: state {} has {} rows, which are the table after no step", version, table.size());
  }
  return {};
}

std::string BalanceChecker::check_rules() const {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> moved;  // By bucket: step, round of its last move.
  std::uint32_t bits = 0;
  for (const auto& [id, step] : steps_) {
    if (step.bits != bits) moved.clear();
    bits = step.bits;
    const bool is_load = step.kind == "load";
    std::uint64_t bytes = 0;
    std::set<std::uint64_t> here;
    for (const rpc::BalanceMove& move : step.moves) {
      bytes += move.bytes;
      const auto before = moved.find(move.bucket);
      if (is_load && before != moved.end() && step.round < before->second.second + kCoolDownRounds) {
        return fmt::format("I22: bucket {:x} moves in step {} (round {}) and {} (round {})", move.bucket,
                           before->second.first, before->second.second, id, step.round);
      }
      // A bucket may be in several moves of reads, but in one move of bytes.
      const bool is_again = !here.insert(move.bucket).second;
      if (is_load && is_again && move.read_permille == 0) {
        return fmt::format("I22: bucket {:x} moves twice in step {}", move.bucket, id);
      }
    }
    // The round of a step that the balancer did not make is not known.
    for (const rpc::BalanceMove& move : step.moves) {
      if (step.round != 0) moved[move.bucket] = {id, step.round};
    }
    if (!is_load) continue;
    if (static_cast<double>(bytes) > bytes_part_ * static_cast<double>(step.bytes_total)) {
      return fmt::format("I22: step {} moves {} of {} bytes", id, bytes, step.bytes_total);
    }
    const auto base = states_.find(step.state_version);
    if (base == states_.end()) continue;
    if (base->second.state->exceptions().size() > kRowsMax) return fmt::format("I22: state {} has too many rows", id);
    for (const DistributionGroup::Node& node : base->second.distribution->flat_nodes()) {
      if (base->second.is_up(NodeId::storage(node.index))) continue;
      return fmt::format("I22: step {} was made while storage.{} was not up", id, node.index);
    }
  }
  return {};
}

}  // namespace fjord::sim
