#include "live_cluster.h"

#include <algorithm>
#include <cstdlib>

namespace fjord {

Result<LiveCluster> ask_live(Admin admin) {
  LiveCluster live;
  FJORD_TRY_ASSIGN(live.status, admin.status());
  FJORD_TRY_ASSIGN(live.config, admin.configuration());
  return live;
}

std::string live_value(const Configuration& config, std::string_view name) {
  const SettingInfo* setting = config.find(name);
  if (setting == nullptr) return "";
  return setting->live_value.empty() ? setting->value : setting->live_value;
}

void take_live(const LiveCluster& live, tuner::Workload& w) {
  std::int64_t nodes = 0;
  double replicas = 0;
  double bytes = 0;
  for (const NodeInfo& node : live.status.nodes) {
    if (!node.is_storage()) continue;
    ++nodes;
    replicas += static_cast<double>(node.documents);
    bytes += static_cast<double>(node.bytes);
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
  } else if (const auto at = live.status.distribution.find("redundancy"); at != std::string::npos) {
    const auto digit = live.status.distribution.find_first_of("0123456789", at);
    if (digit != std::string::npos) w.redundancy = std::strtoll(&live.status.distribution[digit], nullptr, 10);
  }
  w.redundancy = std::clamp<std::int64_t>(w.redundancy, 1, std::max<std::int64_t>(1, w.nodes));
  if (replicas > 0) {
    w.documents = std::max(1.0, replicas / static_cast<double>(w.redundancy));
    w.document_bytes = std::max(1.0, bytes / replicas);
    w.document_bytes_p99 = std::max(w.document_bytes_p99, w.document_bytes);
  }
}

tuner::ClusterCondition condition_of(const LiveCluster& live) {
  tuner::ClusterCondition condition;
  condition.is_degraded = live.status.health != Health::Healthy;
  condition.is_under_maintenance = live_value(live.config, "maintenance.paused") == "true";
  for (const NodeInfo& node : live.status.nodes) {
    condition.is_under_maintenance = condition.is_under_maintenance || !node.wanted.empty();
  }
  return condition;
}

tuner::ClusterSize size_of(const LiveCluster& live) {
  tuner::Workload workload;
  take_live(live, workload);
  tuner::ClusterSize size;
  for (const NodeInfo& node : live.status.nodes) {
    if (node.is_storage()) size.bytes += static_cast<double>(node.bytes);
  }
  size.nodes = static_cast<double>(workload.nodes);
  size.redundancy = static_cast<double>(workload.redundancy);
  size.bytes /= size.redundancy;
  return size;
}

}  // namespace fjord
