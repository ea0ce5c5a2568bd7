#pragma once

#include "publisher.h"

namespace fjord::fleetcontroller {

/// Returns each process that uses settings: the controller called `controller` and all nodes.
std::vector<SettingUser> setting_users(const std::string& controller, const LeaderRecords& records,
                                       const ControllerSettings& settings, const NodePoller& poller);

/// Answers of a leader about the cluster. A view of the leader's other parts.
class StatusReports {
 public:
  StatusReports(const FleetControllerOptions& options, const Clock& clock, const LeaderRecords& records,
                const ControllerSettings& settings, const NodePoller& poller, const Publisher& publisher)
      : options_(options),
        clock_(clock),
        records_(records),
        settings_(settings),
        poller_(poller),
        publisher_(publisher) {}

  rpc::GetClusterInfoReply cluster_info(const rpc::GetClusterInfo& request) const;
  rpc::GetStatusReply status() const;
  rpc::GetConfigReply config() const;
  rpc::GetHistoryReply history(const rpc::GetHistory& request) const;

 private:
  rpc::NodeStatus status_of(const PolledNode& node) const;
  /// Returns why the node is not simply up; empty: no reason is known.
  std::string reason_of(const NodeReport& report) const;
  /// Returns why the node's earlier data counts as lost; empty: it does not.
  std::string lost_reason_of(const NodeReport& report) const;
  /// Sets the time that a node has been in maintenance and the time until a limit ends it.
  void add_maintenance(rpc::NodeStatus& status, const NodeReport& report) const;
  rpc::Setting setting_report(const SettingDeclaration& setting, const std::vector<SettingUser>& users) const;

  const FleetControllerOptions& options_;
  const Clock& clock_;
  const LeaderRecords& records_;
  const ControllerSettings& settings_;
  const NodePoller& poller_;
  const Publisher& publisher_;
};

}  // namespace fjord::fleetcontroller
