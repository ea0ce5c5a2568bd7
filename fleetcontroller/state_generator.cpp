#include "state_generator.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <optional>

#include "fjord/cluster/cluster_view.h"
#include "fjord/cluster/feature.h"

namespace fjord::fleetcontroller {
namespace {

std::string seconds_text(Duration d) { return fmt::format("{:.1f} s", static_cast<double>(d.count()) / 1e6); }

struct Judged {
  NodeState state = NodeState::Down;
  std::string reason;
};

class Generator {
 public:
  Generator(const ClusterState& current, const std::vector<NodeReport>& reports, const DistributionConfig& distribution,
            const GeneratorOptions& options, MonotonicTime now)
      : current_(current), reports_(reports), distribution_(distribution), options_(options), now_(now) {}

  GeneratedState run() {
    out_.state = current_;
    out_.state.set_version(current_.version() + 1);
    for (const NodeReport& report : reports_) add_node(report);
    if (options_.group_up_ratio_min > 0) take_groups_down();
    date_nodes();
    out_.state.set_bits(bits());
    const bool fits = out_.state.bits() == options_.exceptions_bits;
    out_.state.set_exceptions(fits ? options_.exceptions : std::vector<PlacementException>{});
    out_.state.set_replicas_assured(replicas_assured());
    out_.state.set_features(common_features());
    const bool has_reads = fits && out_.state.announces(feature::kReadShares);
    out_.state.set_read_shares(has_reads ? options_.read_shares : std::vector<ReadShare>{});
    judge_cluster();
    out_.is_new = current_.version() == 0 || restarted_ || !current_.is_similar_ignoring_progress(out_.state) ||
                  current_.description() != out_.state.description();
    if (!out_.is_new) out_.state = current_;
    return std::move(out_);
  }

 private:
  /// Returns the state that follows from the node's own report or from its silence.
  Judged own_state(const NodeReport& report) const {
    const bool is_storage = report.id.type == NodeType::Storage;
    if (!report.mistaken.empty()) return {NodeState::Down, report.mistaken};
    if (!report.answered) {
      if (now_ < options_.grace_until) return {current_.node(report.id).state, "has not answered yet"};
      return {NodeState::Down, "never answered"};
    }
    const Duration silent = now_ - report.last_answer;
    const bool is_silent = silent > options_.down_after && !report.is_gone;
    if (report.reported.state == NodeState::Stopping) {
      if (is_storage && now_ - report.stopping_since < restart_time()) {
        return {NodeState::Maintenance, "is being stopped"};
      }
      return {NodeState::Down, "was stopped"};
    }
    if (is_silent || report.is_gone || report.reported.state == NodeState::Down) {
      const std::string reason = report.is_gone ? "refuses connections: its process has ended"
                                 : is_silent    ? "no answer for " + seconds_text(silent)
                                                : "says that it is down";
      const Duration away = is_silent ? silent - options_.down_after : silent;
      if (is_storage && away < options_.transition_time) return {NodeState::Maintenance, reason};
      return {NodeState::Down, reason};
    }
    if (report.reported.state == NodeState::Initializing) {
      if (is_storage && report.reported.init_progress < kListingProgressLimit) {
        const bool was_down = current_.node(report.id).state == NodeState::Down;
        const bool is_back_soon = !was_down && now_ - report.away_since < restart_time();
        return {is_back_soon ? NodeState::Maintenance : NodeState::Down, "is starting: lists its buckets"};
      }
      return {NodeState::Initializing, "is starting"};
    }
    return {report.reported.state, {}};
  }

  Duration restart_time() const { return std::max(options_.transition_time, options_.stop_grace); }

  Judged judge(const NodeReport& report) const {
    Judged judged = own_state(report);
    const bool is_transient = judged.state == NodeState::Maintenance;
    if (report.crashes > options_.crashes_max) {
      judged = {NodeState::Down,
                fmt::format("crashed {} times, which is more than {}", report.crashes, options_.crashes_max)};
    } else if (report.is_held_down) {
      judged = {NodeState::Down, "its start went wrong; it is taken again when it is up"};
    }
    NodeState wanted = report.wanted.state;
    if (report.id.type == NodeType::Distributor && wanted != NodeState::Up) wanted = NodeState::Down;
    if (wanted == NodeState::Up) return judged;
    const Duration wanted_for = in_maintenance_for(report.wanted);
    if (options_.maintenance_max > Duration(0) && wanted_for > options_.maintenance_max) {
      return {NodeState::Down, fmt::format("in maintenance for {}, longer than controller.maintenance_max={}",
                                           duration_text(wanted_for), duration_text(options_.maintenance_max))};
    }
    const bool ends_grace = is_transient && wanted == NodeState::Down;
    if (wanted_may_override(judged.state, wanted) || ends_grace) return {wanted, report.wanted.reason};
    return judged;
  }

  /// Returns the time since an operator set the node to maintenance; 0: it is not in maintenance.
  Duration in_maintenance_for(const WantedState& wanted) const {
    if (wanted.state != NodeState::Maintenance || wanted.since_unix_us == 0) return Duration(0);
    return Duration(std::max<std::int64_t>(options_.wall_now_us - wanted.since_unix_us, 0));
  }

  void add_node(const NodeReport& report) {
    const Judged judged = judge(report);
    NodeStateInfo info = current_.node(report.id);
    info.state = judged.state;
    info.init_progress = judged.state == NodeState::Initializing ? report.reported.init_progress : 0;
    info.description = judged.reason;
    if (!report.has_lost_data) {
      info.lost_version = 0;
    } else if (info.lost_version == 0) {
      info.lost_version = out_.state.version();
    }
    if (!judged.reason.empty()) out_.reasons[report.id] = judged.reason;
    out_.state.set_node(report.id, std::move(info));
  }

  void take_groups_down() {
    const auto groups = distribution_.flat_groups();
    const auto nodes = distribution_.flat_nodes();
    const auto leaves = std::count_if(groups.begin(), groups.end(), [](const auto& group) { return group.is_leaf; });
    if (leaves < 2) return;
    for (const DistributionConfig::FlatGroup& group : groups) {
      if (!group.is_leaf || group.first_node == group.node_end) continue;
      unsigned there = 0;
      for (std::uint32_t i = group.first_node; i < group.node_end; ++i) {
        const NodeState state = out_.state.node(NodeId::storage(nodes[i].index)).state;
        // A retired node serves until it is empty, and a node in maintenance comes back, so both count.
        there += state == NodeState::Down || state == NodeState::Stopping ? 0 : 1;
      }
      const double share = static_cast<double>(there) / static_cast<double>(group.node_end - group.first_node);
      if (share >= options_.group_up_ratio_min) continue;
      for (std::uint32_t i = group.first_node; i < group.node_end; ++i) {
        const NodeId id = NodeId::storage(nodes[i].index);
        NodeStateInfo info = out_.state.node(id);
        if (info.state == NodeState::Down || info.state == NodeState::Maintenance) continue;
        info.state = NodeState::Down;
        info.description = "too few nodes of its group are available";
        out_.reasons[id] = info.description;
        out_.state.set_node(id, std::move(info));
      }
    }
  }

  void date_nodes() {
    for (const NodeReport& report : reports_) {
      NodeStateInfo info = out_.state.node(report.id);
      const bool restarted = report.answered && report.incarnation != report.published_incarnation;
      if (is_available(info.state)) {
        const NodeStateInfo& before = current_.node(report.id);
        const bool has_other_folder = restarted && (before.lost_version == 0) != (info.lost_version == 0);
        const bool was_away = !is_available(before.state) || has_other_folder;
        if (!was_away && restarted) info.available_since_version = before.available_since();
        if (restarted || was_away) info.up_since_version = out_.state.version();
        if (was_away) info.available_since_version = 0;
        restarted_ = restarted_ || restarted;
      } else {
        info.up_since_version = info.available_since_version = 0;
      }
      if (report.id.type == NodeType::Storage) info.past = past_of(report.id, info, restarted && !has_kept(report));
      out_.state.set_node(report.id, std::move(info));
    }
  }

  /// Returns true if the node's process has everything that the published one has acknowledged.
  static bool has_kept(const NodeReport& report) {
    const auto& kept = report.kept_from;
    return !report.has_lost_data && std::find(kept.begin(), kept.end(), report.published_incarnation) != kept.end();
  }

  /// Returns the past of a storage node that is in state `now`. `may_have_lost`: its process may lack what the one
  /// before has acknowledged.
  /// Absences follow from the state in force, because no node acts under a pending state that is replaced. Restarts
  /// follow from the newest state: the published incarnations belong to it.
  std::optional<NodePast> past_of(NodeId id, const NodeStateInfo& now, bool may_have_lost) const {
    const ClusterState& in_force = options_.in_force != nullptr ? *options_.in_force : current_;
    const std::uint64_t version = out_.state.version();
    const NodeStateInfo& newest = current_.node(id);
    const NodeStateInfo& before = in_force.node(id);
    const bool was_available = is_available(before.state);
    const bool is_listed = id.index < in_force.node_count(NodeType::Storage);
    NodePast past = before.past.value_or(NodePast{});
    const bool is_known = newest.past || is_available(newest.state);
    past.alive_since_version = may_have_lost || !is_known ? version : newest.alive_since();
    const bool is_open = !past.absences.empty() && past.absences.back().until == 0;
    if (was_available && !is_available(now.state)) {
      past.add({version, 0});
    } else if (!was_available && !is_open && (is_listed || !is_available(now.state))) {
      past.add({in_force.version() != 0 ? in_force.version() : version, 0});
    }
    if (is_available(now.state) && !past.absences.empty() && past.absences.back().until == 0) {
      past.absences.back().until = version;
    }
    const bool says_nothing = past.absences.empty() && past.alive_since_version == now.up_since_version;
    return says_nothing ? std::nullopt : std::optional(std::move(past));
  }

  unsigned bits() const {
    const unsigned wanted = options_.distribution_bits;
    unsigned lowest = wanted;
    for (const NodeReport& report : reports_) {
      if (report.id.type != NodeType::Storage || report.min_bucket_bits == 0) continue;
      if (is_available(out_.state.node(report.id).state)) lowest = std::min(lowest, report.min_bucket_bits);
    }
    if (lowest == wanted || current_.version() == 0) return lowest;
    return std::min({lowest, wanted, current_.bits()});
  }

  unsigned replicas_assured() const {
    const unsigned wanted = replicas_at_birth(out_.state, distribution_);
    if (current_.version() == 0) return wanted;
    unsigned assured = current_.replicas_assured();
    if (!options_.is_complete) assured -= std::min(assured, accepted_losses());
    // A state by an earlier version of the fleet controller does not say how many replicas are assured: then one is.
    return std::min(wanted, std::max({1U, assured, options_.replicas_in_sync}));
  }

  /// Returns the number of nodes that lose the mark of lost data with this state.
  unsigned accepted_losses() const {
    return static_cast<unsigned>(std::count_if(reports_.begin(), reports_.end(), [&](const NodeReport& report) {
      return current_.node(report.id).lost_version != 0 && out_.state.node(report.id).lost_version == 0;
    }));
  }

  std::vector<std::string> common_features() const {
    std::optional<std::vector<std::string>> common;
    for (const NodeReport& report : reports_) {
      const NodeState state = out_.state.node(report.id).state;
      if (state == NodeState::Down || state == NodeState::Maintenance) continue;
      const std::vector<std::string>& announced = report.answered ? report.features : current_.features();
      if (!common) {
        common = announced;
        continue;
      }
      std::vector<std::string> both;
      std::set_intersection(common->begin(), common->end(), announced.begin(), announced.end(),
                            std::back_inserter(both));
      common = std::move(both);
    }
    return common.value_or(std::vector<std::string>{});
  }

  struct Count {
    unsigned there = 0;
    unsigned all = 0;
  };
  Count count(NodeType type) const {
    Count count;
    for (const NodeReport& report : reports_) {
      if (report.id.type != type || report.is_removed) continue;
      ++count.all;
      const NodeState state = out_.state.node(report.id).state;
      count.there += is_available(state) || state == NodeState::Initializing ? 1 : 0;
    }
    return count;
  }

  /// Sets `cluster_reason` if fewer than `least` nodes of a type are available, or a share of them below `ratio`.
  void limit(NodeType type, unsigned least, double ratio) {
    const Count nodes = count(type);
    const std::string_view name = fjord::to_string(type);
    if (nodes.there < least) {
      out_.cluster_reason = fmt::format("too few {} nodes available: {} of {} are up, and {} are needed", name,
                                        nodes.there, nodes.all, least);
    }
    const double share = nodes.all == 0 ? 1.0 : static_cast<double>(nodes.there) / nodes.all;
    if (share < ratio) {
      const std::string_view plural = type == NodeType::Storage ? "storage" : "distributors";
      out_.cluster_reason = fmt::format(
          "too low available {} node ratio: {} of {} are up ({:.2f}), and controller.{}_up_ratio_min is {:.2f}", name,
          nodes.there, nodes.all, share, plural, ratio);
    }
  }

  void judge_cluster() {
    limit(NodeType::Distributor, options_.distributors_up_min, options_.distributors_up_ratio_min);
    limit(NodeType::Storage, options_.storage_up_min, options_.storage_up_ratio_min);
    const std::string& reason = out_.cluster_reason;
    out_.state.set_cluster(reason.empty() ? NodeState::Up : NodeState::Down);
    out_.state.set_description(reason);
  }

  const ClusterState& current_;
  const std::vector<NodeReport>& reports_;
  const DistributionConfig& distribution_;
  const GeneratorOptions& options_;
  MonotonicTime now_;
  GeneratedState out_;
  bool restarted_ = false;
};

}  // namespace

std::string duration_text(Duration d) {
  const double s = static_cast<double>(d.count()) / 1e6;
  if (s < 120) return fmt::format("{:.3g} s", s);
  return s < 7200 ? fmt::format("{:.3g} min", s / 60) : fmt::format("{:.4g} h", s / 3600);
}

bool is_available(NodeState state) { return state == NodeState::Up || state == NodeState::Retired; }

GeneratedState generate_state(const ClusterState& current, const std::vector<NodeReport>& reports,
                              const DistributionConfig& distribution, const GeneratorOptions& options,
                              MonotonicTime now) {
  return Generator(current, reports, distribution, options, now).run();
}

}  // namespace fjord::fleetcontroller
