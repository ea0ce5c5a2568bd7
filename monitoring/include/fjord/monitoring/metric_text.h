#pragma once

#include <string>

#include "fjord/common/metrics.h"

namespace fjord {

/// Returns all metrics of a registry in Prometheus' text format.
std::string metric_text(const MetricRegistry& registry);

}  // namespace fjord
