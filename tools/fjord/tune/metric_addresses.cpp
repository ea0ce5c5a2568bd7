#include "tune/metric_addresses.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/config/cluster_config.h"

namespace fjord::cli {

Result<std::vector<std::string>> metric_addresses(const std::string& metrics, const std::string& cluster_config) {
  std::vector<std::string> addresses;
  for (std::size_t at = 0; at < metrics.size();) {
    const std::size_t end = std::min(metrics.find(',', at), metrics.size());
    const std::string address = metrics.substr(at, end - at);
    if (!address.empty() && address.find(':') == std::string::npos) {
      return Status(StatusCode::InvalidArgument, fmt::format("--metrics: \"{}\": expected host:port", address));
    }
    if (!address.empty()) addresses.push_back(address);
    at = end + 1;
  }
  if (!addresses.empty() || cluster_config.empty()) return addresses;
  FJORD_TRY_ASSIGN(const config::ClusterConfig config, config::load_config(cluster_config));
  for (const config::ProcessName& name : config.names()) {
    if (const std::string& http = config.find(name)->http; !http.empty()) addresses.push_back(http);
  }
  if (!addresses.empty()) return addresses;
  return Status(StatusCode::InvalidArgument, cluster_config + ": no process has a line http");
}

}  // namespace fjord::cli
