#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cli.h"
#include "fjord/client/connect.h"
#include "fjord/tuner/controllers.h"
#include "fjord/tuner/guard_rails.h"
#include "fjord/tuner/workload.h"

/// What a running cluster says of itself, apart from its metrics.
namespace fjord::cli {

struct LiveCluster {
  rpc::GetStatusReply status;
  rpc::GetConfigReply config;
};

/// Asks for both. Errors: those of the calls.
Result<LiveCluster> ask_live(Connection& connection, Duration timeout);
Result<LiveCluster> ask_live(const Common& common);

/// The value that a setting has, or its default; empty if that is in the configuration file.
std::string live_value(const rpc::GetConfigReply& config, std::string_view name);
/// Fills in what the cluster knows: documents, their size, nodes, copies and settings.
void take_live(const LiveCluster& live, tuner::Workload& workload);
/// For the guard rails. How full the disks are and what memory is left is not known here.
tuner::ClusterCondition condition_of(const LiveCluster& live);
tuner::ClusterSize size_of(const LiveCluster& live);

}  // namespace fjord::cli
