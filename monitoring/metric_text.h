#pragma once

#include <string>

#include "fjord/common/metrics.h"

namespace fjord {

/// All metrics of a registry in Prometheus' text format.
std::string metric_text(const MetricRegistry& registry);

}  // namespace fjord
