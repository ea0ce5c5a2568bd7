#include "tune/tune_cluster.h"

#include <algorithm>
#include <cstdlib>

#include "commands/ask_cluster.h"
#include "fjord/library/detail/cluster_health.h"

namespace fjord::cli {

Result<LiveCluster> ask_live(Connection& connection, Duration timeout) {
  LiveCluster live;
  FJORD_TRY_ASSIGN(live.status, connection.sync().status());
  FJORD_TRY_ASSIGN(live.config, ask_cluster(connection, rpc::GetConfig{}, timeout));
  return live;
}

Result<LiveCluster> ask_live(const Common& common) {
  FJORD_TRY_ASSIGN(const auto connection, connect_to(common));
  return ask_live(*connection, common.timeout());
}

std::string live_value(const rpc::GetConfigReply& config, std::string_view name) {
  for (const rpc::Setting& setting : config.settings) {
    if (setting.name != name) continue;
    if (!setting.value.empty()) return setting.value;
    return setting.in_force.empty() ? setting.default_value : setting.in_force;
  }
  return "";
}

void take_live(const LiveCluster& live, tuner::Workload& w) {
  std::int64_t nodes = 0;
  double copies = 0;
  double bytes = 0;
  for (const rpc::NodeStatus& node : live.status.nodes) {
    if (!node.node.starts_with("storage.")) continue;
    ++nodes;
    copies += static_cast<double>(node.last.documents);
    bytes += static_cast<double>(node.last.bytes);
  }
  if (nodes > 0) w.nodes = nodes;
  for (const tuner::Knob& knob : tuner::knobs()) {
    if (knob.place != tuner::KnobPlace::Live) continue;
    if (const auto value = tuner::parse_value(knob, live_value(live.config, knob.name)))
      w.current.*(knob.member) = *value;
  }
  const std::string redundancy = live_value(live.config, "cluster.redundancy");
  if (!redundancy.empty()) {
    w.redundancy = std::strtoll(redundancy.c_str(), nullptr, 10);
  } else if (const auto at = live.status.info.distribution.find("redundancy"); at != std::string::npos) {
    const auto digit = live.status.info.distribution.find_first_of("0123456789", at);
    if (digit != std::string::npos) w.redundancy = std::strtoll(&live.status.info.distribution[digit], nullptr, 10);
  }
  w.redundancy = std::clamp<std::int64_t>(w.redundancy, 1, std::max<std::int64_t>(1, w.nodes));
  if (copies > 0) {
    w.documents = std::max(1.0, copies / static_cast<double>(w.redundancy));
    w.document_bytes = std::max(1.0, bytes / copies);
    w.document_bytes_p99 = std::max(w.document_bytes_p99, w.document_bytes);
  }
}

tuner::ClusterCondition condition_of(const LiveCluster& live) {
  tuner::ClusterCondition condition;
  condition.is_degraded = health_of(live.status).level != 0;
  condition.is_under_maintenance = live_value(live.config, "maintenance.paused") == "true";
  for (const rpc::NodeStatus& node : live.status.nodes) {
    condition.is_under_maintenance = condition.is_under_maintenance || !node.wanted.empty();
  }
  return condition;
}

tuner::ClusterSize size_of(const LiveCluster& live) {
  tuner::Workload workload;
  take_live(live, workload);
  tuner::ClusterSize size;
  for (const rpc::NodeStatus& node : live.status.nodes) {
    if (node.node.starts_with("storage.")) size.bytes += static_cast<double>(node.last.bytes);
  }
  size.nodes = static_cast<double>(workload.nodes);
  size.redundancy = static_cast<double>(workload.redundancy);
  size.bytes /= size.redundancy;
  return size;
}

}  // namespace fjord::cli
