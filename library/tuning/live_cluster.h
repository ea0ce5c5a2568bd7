#pragma once

#include <string>
#include <string_view>

#include "fjord/library/admin.h"
#include "fjord/tuner/controllers.h"
#include "fjord/tuner/guard_rails.h"
#include "fjord/tuner/workload.h"

namespace fjord {

/// Status and live configuration of a running cluster, without its metrics.
struct LiveCluster {
  ClusterStatus status;
  Configuration config;
};

/// Asks for the status and the live configuration. Errors: those of the calls.
Result<LiveCluster> ask_live(Admin admin);

/// Returns the value of a setting, or its default; empty if the default is in the configuration file.
std::string live_value(const Configuration& config, std::string_view name);
/// Updates the workload with the cluster's number and size of documents, nodes, redundancy and settings.
void take_live(const LiveCluster& live, tuner::Workload& workload);
/// Returns the condition for the guard rails, without disk fill and free memory, which the status does not contain.
tuner::ClusterCondition condition_of(const LiveCluster& live);
tuner::ClusterSize size_of(const LiveCluster& live);

}  // namespace fjord
