#include "fjord/library/detail/cluster_health.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
#include "fjord/cluster/limits.h"

namespace fjord {
namespace {

class Reasons {
 public:
  explicit Reasons(ClusterHealth& health) : health_(health) {}
  void add(int level, std::string reason) {
    health_.level = std::max(health_.level, level);
    health_.reasons.push_back(std::move(reason));
  }

 private:
  ClusterHealth& health_;
};

// Values of PollReply::space_stage.
constexpr std::uint32_t kThrottles = 2;
constexpr std::uint32_t kRefusesPuts = 3;

/// Adds the lack of space. A full node refuses puts to its buckets; if all nodes are full, every put is refused. A full
/// node without buckets, such as one that was retired and is empty, refuses none.
void add_space(const rpc::GetStatusReply& status, ClusterHealth& health, Reasons& reasons) {
  std::size_t serving = 0;
  for (const rpc::NodeStatus& node : status.nodes) {
    if (!node.node.starts_with("storage.") || (node.state != "up" && node.state != "retired")) continue;
    ++serving;
    if (node.last.space_stage >= kRefusesPuts) ++health.nodes_without_space;
    if (node.last.space_stage >= kRefusesPuts && node.last.buckets == 0) {
      reasons.add(1,
                  fmt::format("{} has no space, and no bucket that a put could go to: {}", node.node, node.last.space));
    } else if (node.last.space_stage >= kRefusesPuts) {
      reasons.add(2, fmt::format("{} has no space and refuses puts: {}", node.node, node.last.space));
    } else if (node.last.space_stage > 0) {
      reasons.add(1, fmt::format("{} {}: {}", node.node,
                                 node.last.space_stage == kThrottles ? "throttles puts" : "is short of space",
                                 node.last.space));
    }
  }
  if (serving == 0) reasons.add(2, "no storage node is up: nothing can be served");
  if (serving > 0 && health.nodes_without_space == serving) {
    reasons.add(2, "no storage node has space: every put is refused");
  }
}

/// Adds merges that fail repeatedly and need an operator. A merge that fails once is retried.
void add_failing(const rpc::GetStatusReply& status, ClusterHealth& health, Reasons& reasons) {
  for (const rpc::NodeStatus& node : status.nodes) {
    if (node.state != "up" || node.last.buckets_failing == 0) continue;
    health.buckets_failing += node.last.buckets_failing;
    reasons.add(1, fmt::format("{}: the merges of {} buckets fail again and again, last {}", node.node,
                               node.last.buckets_failing, node.last.failing));
  }
}

/// Adds the nodes with more buckets than are repaired quickly after a failure.
void add_many_buckets(const rpc::GetStatusReply& status, Reasons& reasons) {
  for (const rpc::NodeStatus& node : status.nodes) {
    if (node.state != "up" || node.last.buckets <= kBucketsPerNodeWarn) continue;
    reasons.add(1, fmt::format("{} has {} buckets, and repairs are slow with more than {}: add nodes, or lower "
                               "cluster.distribution_bits",
                               node.node, node.last.buckets, kBucketsPerNodeMax));
  }
}

/// Adds the buckets whose next loss may be the last: with a redundancy of 2 they have one current replica.
void add_too_few_replicas(const rpc::GetStatusReply& status, const ClusterHealth& health, Reasons& reasons) {
  if (health.buckets_under_replicated == 0) return;
  const Result<DistributionConfig> distribution = DistributionConfig::parse(status.info.distribution);
  const unsigned redundancy = distribution ? distribution->redundancy() : 0;
  const std::string what = redundancy == 2
                               ? "only one current replica: if it is lost, their documents are lost"
                               : fmt::format("fewer current replicas than cluster.redundancy={} asks for", redundancy);
  reasons.add(1, fmt::format("{} buckets have too few replicas: `fjord bucket list`; they have {}",
                             health.buckets_under_replicated, what));
}

/// Adds the buckets that cannot be served, with the storage nodes that are away and may have them.
void add_unavailable(const rpc::GetStatusReply& status, const ClusterHealth& health, Reasons& reasons) {
  if (health.buckets_unavailable == 0) return;
  std::vector<std::string> away;
  for (const rpc::NodeStatus& node : status.nodes) {
    const bool serves = node.state == "up" || node.state == "retired";
    if (node.node.starts_with("storage.") && !serves) away.push_back(node.node);
  }
  reasons.add(2, fmt::format("{} buckets cannot be served: `fjord bucket list`{}", health.buckets_unavailable,
                             away.empty() ? "" : fmt::format("; away: {}", fmt::join(away, ", "))));
}

void add_unserved(const rpc::GetStatusReply& status, ClusterHealth& health, Reasons& reasons) {
  for (const rpc::NodeStatus& node : status.nodes) {
    if (node.state == "up") health.buckets_unplaced += node.last.buckets_unplaced;
  }
  if (health.buckets_unplaced > 0) {
    reasons.add(2, fmt::format("{} buckets have no storage node that they belong on", health.buckets_unplaced));
  }
  if (health.buckets > 0 && health.buckets_unavailable >= health.buckets) {
    reasons.add(2, fmt::format("none of the {} buckets is served", health.buckets));
  }
}

std::string time_text(std::int64_t us) {
  const double s = static_cast<double>(us) / 1e6;
  if (s < 120) return fmt::format("{:.0f} s", s);
  return s < 7200 ? fmt::format("{:.0f} min", s / 60) : fmt::format("{:.1f} h", s / 3600);
}

/// Returns a text such as "maintenance for 5 min, counts as down in 55 min".
std::string state_text(const rpc::NodeStatus& node) {
  std::string text = node.state;
  if (node.maintenance_us >= 0) text += " for " + time_text(node.maintenance_us);
  if (node.maintenance_left_us >= 0) text += ", counts as down in " + time_text(node.maintenance_left_us);
  return text;
}

/// Adds a reason if all storage nodes are retired: they keep their buckets, because no node can take them over.
void add_nowhere_to_go(const rpc::GetStatusReply& status, Reasons& reasons) {
  std::size_t retired = 0;
  for (const rpc::NodeStatus& node : status.nodes) {
    if (!node.node.starts_with("storage.") || node.state == "down") continue;
    if (node.state != "retired") return;
    ++retired;
  }
  if (retired == 0) return;
  reasons.add(1,
              fmt::format("all {} storage nodes that are there are retired: they go on serving, as there is nowhere to "
                          "move their buckets to: `fjord node add` or `fjord node up`",
                          retired));
}

/// Says how far a retired storage node is. One that is empty is not a problem: it waits for an operator.
void add_retired(const rpc::GetStatusReply& status, const rpc::NodeStatus& node, ClusterHealth& health,
                 Reasons& reasons) {
  const bool is_reported = node.last.state_version == status.info.state_version;
  if (is_reported && node.last.buckets == 0) {
    health.notes.push_back(
        fmt::format("{} is retired and empty: `fjord node remove {}` takes it out", node.node, node.node));
    return;
  }
  reasons.add(1, fmt::format("{} is retired: {} buckets are still on it", node.node, node.last.buckets));
}

/// Adds a note on each feature that some serving nodes announce and others do not.
void add_features(const rpc::GetStatusReply& status, ClusterHealth& health) {
  std::map<std::string, std::vector<std::string>> missing;
  const auto serves = [](const rpc::NodeStatus& node) { return node.state != "down" && node.state != "maintenance"; };
  for (const rpc::NodeStatus& node : status.nodes) {
    if (!serves(node)) continue;
    for (const std::string& name : node.last.features) missing[name];
  }
  for (auto& [name, nodes] : missing) {
    for (const rpc::NodeStatus& node : status.nodes) {
      const auto& names = node.last.features;
      if (serves(node) && std::find(names.begin(), names.end(), name) == names.end()) nodes.push_back(node.node);
    }
    if (nodes.empty()) continue;
    health.notes.push_back(fmt::format("feature {} is not used until {} {} it, too", name, fmt::join(nodes, ", "),
                                       nodes.size() == 1 ? "announces" : "announce"));
  }
}

}  // namespace

ClusterHealth health_of(const rpc::GetStatusReply& status) {
  ClusterHealth health;
  Reasons reasons(health);
  std::size_t distributors_up = 0;
  for (const rpc::NodeStatus& node : status.nodes) {
    const bool is_distributor = node.node.starts_with("distributor.");
    if (node.state == "retired" && !is_distributor) {
      add_retired(status, node, health, reasons);
      continue;
    }
    if (node.state != "up" || !node.reason.empty()) {
      reasons.add(
          1, fmt::format("{} is {}{}", node.node, state_text(node), node.reason.empty() ? "" : ": " + node.reason));
      if (node.state != "up") continue;
    }
    if (node.last.state_version != status.info.state_version) {
      reasons.add(1, fmt::format("{} has not taken in state version {} yet", node.node, status.info.state_version));
    }
    if (!node.slow.empty()) reasons.add(1, fmt::format("{} is slow: {}", node.node, node.slow));
    if (is_distributor) {
      ++distributors_up;
      health.buckets += node.last.buckets;
      health.buckets_out_of_sync += node.last.buckets_out_of_sync;
      health.buckets_collecting += node.last.buckets_collecting;
      health.buckets_unavailable += node.last.buckets_unavailable;
      health.buckets_damaged += node.last.buckets_damaged;
      health.buckets_under_replicated += node.last.buckets_under_replicated;
    } else {
      health.document_replicas += node.last.documents;
      health.bytes += node.last.bytes;
    }
  }
  // Most buckets with too few replicas are out of sync as well, unless they wait for a node in maintenance.
  const std::uint64_t bad =
      health.buckets_unavailable + std::max(health.buckets_out_of_sync, health.buckets_under_replicated);
  health.buckets_in_sync = health.buckets > bad ? health.buckets - bad : 0;
  if (health.buckets_collecting > 0) {
    reasons.add(1, fmt::format("{} buckets are being collected: storage nodes are asked for them since the cluster "
                               "state changed",
                               health.buckets_collecting));
  }
  if (health.buckets_out_of_sync > health.buckets_collecting) {
    reasons.add(1, fmt::format("{} buckets are out of sync", health.buckets_out_of_sync - health.buckets_collecting));
  }
  add_too_few_replicas(status, health, reasons);
  if (health.buckets_damaged > 0)
    reasons.add(1, fmt::format("{} buckets have a damaged replica: `fjord bucket list`", health.buckets_damaged));
  add_unavailable(status, health, reasons);
  add_unserved(status, health, reasons);
  add_space(status, health, reasons);
  add_failing(status, health, reasons);
  add_many_buckets(status, reasons);
  add_nowhere_to_go(status, reasons);
  add_features(status, health);
  const Result<ClusterState> state = ClusterState::parse(status.info.state);
  if (state && !state->is_cluster_up()) reasons.add(2, "the cluster is down: " + state->description());
  if (distributors_up == 0) reasons.add(2, "no distributor is up");
  return health;
}

}  // namespace fjord
