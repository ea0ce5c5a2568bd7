#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/monitoring/metric_scraper.h"
#include "fjord/tuner/expression.h"
#include "fjord/tuner/period_figures.h"
#include "fjord/tuner/workload.h"

/// Reads /metrics of the nodes for the tuner. Only this file uses the names of metrics.
namespace fjord {

/// The metrics of all nodes at one moment.
struct ClusterReading {
  MonotonicTime at;
  std::vector<Result<MetricPage>> pages;  ///< One for each address, in order.
};
ClusterReading read_cluster(const std::vector<std::string>& addresses);

/// Returns the figures of the period between two readings of the same addresses. A node that is missing in one of them
/// is left out and counted in nodes_silent.
tuner::PeriodFigures figures_between(const ClusterReading& before, const ClusterReading& after);

/// Returns the values that the nodes use, by name of the setting; the smallest one if they differ.
std::map<std::string, std::int64_t, std::less<>> settings_in_use(const ClusterReading& reading);

/// Updates the workload with the measured figures; the rates stay if the period had no operations. `has_file`: a
/// workload file gives the weight of visits, which stays. Returns each input with its origin, for the report.
std::vector<tuner::Input> take_figures(const tuner::PeriodFigures& figures, bool has_file,
                                       const tuner::HardwareProfile& profile, tuner::Workload& workload);
/// Returns the inputs that take_figures() returns, for the case that nothing was measured.
std::vector<tuner::Input> inputs_not_measured(bool has_file, const tuner::Workload& workload);

}  // namespace fjord
