#include "status_reports.h"

#include <algorithm>
#include <fmt/format.h>

#include "folder_watch.h"
#include "live_config.h"
#include "node_changes.h"

namespace fjord::fleetcontroller {
namespace {

std::string wanted_text(const WantedState& wanted) {
  if (wanted.state == NodeState::Up) return {};
  std::string text(to_string(wanted.state));
  if (!wanted.reason.empty()) text += ": " + wanted.reason;
  if (!wanted.who.empty()) text += " (" + wanted.who + ")";
  return text;
}

}  // namespace

std::vector<SettingUser> setting_users(const std::string& controller, const LeaderRecords& records,
                                       const ControllerSettings& settings, const NodePoller& poller) {
  std::vector<SettingUser> users = {{.name = controller, .base = settings.base()}};
  for (const PolledNode& node : poller.nodes()) {
    if (node.address.empty()) continue;
    users.push_back({.name = node.id().to_string(),
                     .base = node.settings,
                     .has_live = node.last.config_version >= records.cluster().config_version(),
                     .refused = node.last.config_errors});
  }
  return users;
}

rpc::GetClusterInfoReply StatusReports::cluster_info(const rpc::GetClusterInfo& request) const {
  rpc::PollReply known;
  known.state_version = request.known_state_version;
  known.schema_version = request.known_schema_version;
  rpc::GetClusterInfoReply reply;
  reply.info = records_.news_for(known, settings_.lease());
  return reply;
}

rpc::Setting StatusReports::setting_report(const SettingDeclaration& setting,
                                           const std::vector<SettingUser>& users) const {
  const SettingValues& live = records_.cluster().config();
  const ClusterState& active = records_.active();
  rpc::Setting said;
  said.name = setting.name;
  static constexpr const char* kTypes[] = {"integer", "bytes", "duration", "ratio", "bool"};
  said.type = setting.type == SettingType::Choice ? std::string(setting.choices)
                                                  : std::string(kTypes[static_cast<std::size_t>(setting.type)]);
  if (setting.has_default()) said.default_value = setting_text(setting, setting.default_value);
  said.min = setting_text(setting, setting.min);
  said.max = setting_text(setting, setting.max);
  if (live.contains(said.name)) said.value = setting_text(setting, value_or(live, setting.name, 0));
  said.used_by = setting.used_by;
  said.meaning = setting.meaning;
  add_value_in_force(said, setting, live, users);
  if (setting.name == "controller.lease") {
    said.in_force = setting_text(setting, std::chrono::duration_cast<milliseconds>(settings_.lease()).count());
  }
  const bool bits_wait = setting.name == "cluster.distribution_bits" && active.version() != 0 &&
                         said.in_force != std::to_string(active.bits());
  if (bits_wait) {
    said.elsewhere.push_back(fmt::format("cluster state {}: {} (a bucket has fewer bits, or the change is on its way)",
                                         active.version(), active.bits()));
  }
  return said;
}

rpc::GetConfigReply StatusReports::config() const {
  const ClusterRecord& record = records_.cluster();
  rpc::GetConfigReply reply;
  reply.config_version = record.config_version();
  const std::vector<SettingUser> users = setting_users(options_.name, records_, settings_, poller_);
  for (const SettingDeclaration& setting : settings()) {
    if (setting.is_live) reply.settings.push_back(setting_report(setting, users));
  }
  for (const ConfigVersion& version : record.configs) {
    reply.versions.push_back({version.version, version.unix_us, version.who, {}});
    for (const auto& [name, value] : version.values) {
      const SettingDeclaration* setting = find_live_setting(name);
      reply.versions.back().values.push_back(
          name + "=" + (setting == nullptr ? value : setting_text(*setting, value_or(version.values, name, 0))));
    }
  }
  for (const PolledNode& node : poller_.nodes()) {
    if (node.address.empty()) continue;
    if (node.last.config_version < reply.config_version) reply.waiting.push_back(node.id().to_string());
    for (const std::string& error : node.last.config_errors)
      reply.errors.push_back(node.id().to_string() + ": " + error);
  }
  for (std::string& broken : broken_rules(record.config(), users)) reply.errors.push_back(std::move(broken));
  return reply;
}

rpc::GetHistoryReply StatusReports::history(const rpc::GetHistory& request) const {
  rpc::GetHistoryReply reply;
  reply.term = records_.published_term();
  reply.leader = options_.name;
  reply.info = records_.news_for({}, settings_.lease());
  reply.info.schemas.clear();
  reply.waits_for = publisher_.waits_for();
  const std::vector<HistoryEntry>& history = records_.cluster().history;
  const std::size_t wanted = request.max == 0 ? history.size() : std::min<std::size_t>(request.max, history.size());
  for (std::size_t i = history.size() - wanted; i < history.size(); ++i) {
    const HistoryEntry& entry = history[i];
    reply.changes.push_back(
        {entry.version, entry.term, entry.unix_us, entry.active_unix_us, entry.what, entry.why, entry.who});
  }
  return reply;
}

void StatusReports::add_maintenance(rpc::NodeStatus& status, const NodeReport& report) const {
  const NodeState state = records_.active().node(report.id).state;
  const std::int64_t limit = settings_.maintenance_max().count();
  if (report.wanted.state == NodeState::Maintenance) {
    const std::int64_t since = std::max<std::int64_t>(clock_.wall_now().us - report.wanted.since_unix_us, 0);
    if (state == NodeState::Maintenance) {
      status.maintenance_us = since;
      if (limit > 0) status.maintenance_left_us = std::max<std::int64_t>(limit - since, 0);
    } else if (state == NodeState::Down && limit > 0 && since > limit) {
      status.reason = fmt::format("in maintenance for {}, longer than controller.maintenance_max={}",
                                  duration_text(Duration(since)), duration_text(Duration(limit)));
    }
  } else if (state == NodeState::Maintenance && report.answered) {
    const bool is_starting = report.reported.state == NodeState::Initializing;
    const bool is_silent = report.reported.state != NodeState::Stopping && !is_starting;
    const MonotonicTime since = is_silent     ? report.last_answer
                                : is_starting ? report.away_since
                                              : report.stopping_since;
    const Duration away = clock_.now() - since;
    const Duration least = is_silent ? Duration(0) : kStopGrace;
    const Duration until = std::max(settings_.transition_time(), least) +
                           (is_silent && !report.is_gone ? settings_.down_after() : Duration(0));
    status.maintenance_us = away.count();
    status.maintenance_left_us = std::max<std::int64_t>((until - away).count(), 0);
  }
}

std::string StatusReports::reason_of(const NodeReport& report) const {
  if (!report.mistaken.empty()) return report.mistaken;
  if (!report.answered) return "never answered";
  if (report.crashes > settings_.monitor().crashes_max) {
    return "crashed " + std::to_string(report.crashes) + " times; it is down until it is stable";
  }
  if (report.reported.state == NodeState::Stopping) {
    const bool is_there = !report.is_gone && clock_.now() - report.last_answer <= settings_.down_after();
    return is_there ? "is being stopped" : "was stopped";
  }
  if (report.is_gone) return "refuses connections: its process has ended";
  const Duration silent = clock_.now() - report.last_answer;
  if (silent <= settings_.down_after()) {
    return report.reported.state == NodeState::Initializing ? "is starting: lists its buckets" : std::string();
  }
  return "no answer for " + std::to_string(silent.count() / 1'000'000) + " s";
}

std::string StatusReports::lost_reason_of(const NodeReport& report) const {
  const auto& folders = records_.identity().folders;
  const auto found = folders.find(report.id.to_string());
  return found == folders.end() || found->second.lost == 0 ? std::string() : lost_text(found->second);
}

rpc::NodeStatus StatusReports::status_of(const PolledNode& node) const {
  const NodeReport& report = node.monitor.report();
  rpc::NodeStatus status;
  status.node = report.id.to_string();
  status.address = node.address;
  status.state = std::string(to_string(records_.active().node(report.id).state));
  status.last = node.last;
  status.wanted = wanted_text(report.wanted);
  const auto& afterwards = records_.cluster().wanted_after;
  if (const auto after = afterwards.find(status.node); after != afterwards.end()) {
    status.wanted += "; then " + wanted_text(after->second);
  }
  status.reason = node.refusal.empty() ? reason_of(report) : node.refusal;
  if (status.reason.empty()) status.reason = lost_reason_of(report);
  if (status.reason.empty()) status.reason = node.last.fault;
  if (report.mistaken.empty() && report.answered) {
    status.answered_us_ago = (clock_.now() - report.last_answer).count();
  }
  if (report.id.type == NodeType::Storage) {
    status.slow = poller_.slow().reason(report.id.index);
    add_maintenance(status, report);
  }
  return status;
}

rpc::GetStatusReply StatusReports::status() const {
  rpc::GetStatusReply reply;
  reply.info = records_.news_for({}, settings_.lease());
  reply.changed_unix_us = records_.cluster().changed_unix_us();
  const Result<DistributionConfig> groups = settings_.distribution();
  for (const PolledNode& node : poller_.nodes()) {
    if (node.address.empty()) continue;
    rpc::NodeStatus status = status_of(node);
    if (groups && node.id().type == NodeType::Storage) {
      status.group = group_of(*groups, node.id().index);
      for (const DistributionGroup::Node& weighed : groups->flat_nodes()) {
        if (weighed.index == node.id().index) status.capacity = fmt::format("{:g}", weighed.capacity);
      }
    }
    reply.nodes.push_back(std::move(status));
  }
  return reply;
}

}  // namespace fjord::fleetcontroller
