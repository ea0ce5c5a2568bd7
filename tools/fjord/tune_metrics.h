#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/monitoring/metric_scraper.h"
#include "fjord/tuner/expression.h"
#include "fjord/tuner/period_figures.h"
#include "fjord/tuner/workload.h"

/// What the nodes of a cluster say at /metrics, as the tuner needs it. Only this file knows the names of metrics.
namespace fjord::cli {

/// All nodes at one moment.
struct ClusterReading {
  MonotonicTime at;
  std::vector<Result<MetricPage>> pages;  ///< In the order of the addresses.
};
ClusterReading read_cluster(const std::vector<std::string>& addresses);

/// --metrics, or the http lines of --cluster-config. Errors: InvalidArgument; those of load_config().
Result<std::vector<std::string>> metric_addresses(const std::string& metrics, const std::string& cluster_config);

/// Between two readings of the same addresses. A node that is missing in one of them is left out, and counted.
tuner::PeriodFigures figures_between(const ClusterReading& before, const ClusterReading& after);

/// What the nodes use, by the name of the setting; where they differ, the least.
std::map<std::string, std::int64_t, std::less<>> settings_in_use(const ClusterReading& reading);

/// Puts what was measured into the workload; what nobody asked for in the period stays. `has_file`: how much visits
/// matter was said, and stays. Returns each input with where it is from, for the report.
std::vector<tuner::Input> take_figures(const tuner::PeriodFigures& figures, bool has_file,
                                       const tuner::HardwareProfile& profile, tuner::Workload& workload);
/// The same inputs where nothing was measured.
std::vector<tuner::Input> inputs_not_measured(bool has_file, const tuner::Workload& workload);

}  // namespace fjord::cli
