#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cli.h"
#include "fjord/client/connect.h"
#include "fjord/tuner/controllers.h"
#include "fjord/tuner/guard_rails.h"
#include "fjord/tuner/workload.h"

/// Status and live configuration of a running cluster, without its metrics.
namespace fjord::cli {

struct LiveCluster {
  rpc::GetStatusReply status;
  rpc::GetConfigReply config;
};

/// Asks for the status and the live configuration. Errors: those of the calls.
Result<LiveCluster> ask_live(Connection& connection, Duration timeout);
Result<LiveCluster> ask_live(const Common& common);

/// Returns the value of a setting, or its default; empty if the default is in the configuration file.
std::string live_value(const rpc::GetConfigReply& config, std::string_view name);
/// Updates the workload with the cluster's number and size of documents, nodes, redundancy and settings.
void take_live(const LiveCluster& live, tuner::Workload& workload);
/// Returns the condition for the guard rails, without disk fill and free memory, which the status does not contain.
tuner::ClusterCondition condition_of(const LiveCluster& live);
tuner::ClusterSize size_of(const LiveCluster& live);

}  // namespace fjord::cli
