#pragma once

#include <string>
#include <vector>

#include "fjord/common/result.h"

namespace fjord::cli {

/// Returns the addresses of --metrics, or the http lines of --cluster-config. Errors: InvalidArgument; those of
/// load_config().
Result<std::vector<std::string>> metric_addresses(const std::string& metrics, const std::string& cluster_config);

}  // namespace fjord::cli
