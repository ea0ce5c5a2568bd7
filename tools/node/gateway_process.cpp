#include <algorithm>
#include <array>
#include <unistd.h>

#include "fjord/common/log.h"
#include "fjord/common/open_files.h"
#include "fjord/gateway/http_gateway.h"
#include "fjord/node/node.h"
#include "process_runtime.h"

namespace fjord {
namespace {

/// A gateway has neither files nor a Thrift server: only the HTTP server, which is a client of the cluster.
class GatewayProcess final : public Node {
 public:
  Status start(const config::ClusterConfig& config, config::ProcessName name) {
    gateway::HttpGatewayOptions options;
    options.node = name.to_string();
    const config::ProcessConfig& process = *config.find(name);
    options.address = process.address;
    options.tls_address = process.tls_address;
    options.certificate = process.certificate;
    options.key = process.key;
    options.console_edits = process.console_edits != "false";
    options.confirm_removals = process.confirm_removals != "false";
    options.access_log = process.access_log != "false";
    options.logs_problems_only = process.access_log != "true";
    std::array<char, 256> name_of_machine{};
    if (::gethostname(name_of_machine.data(), name_of_machine.size() - 1) == 0) {
      options.machine_name = name_of_machine.data();
    }
    // Connections of clients are nearly all files of a gateway; the rest is for its own calls, the log and metrics.
    constexpr std::uint64_t kOtherFilesPart = 8;
    const std::uint64_t files = open_files_max() - open_files_max() / kOtherFilesPart;
    options.connections_max = std::min(options.connections_max, static_cast<std::size_t>(files));
    for (std::size_t at = 0; at < process.allowed_hosts.size();) {
      const std::size_t end = std::min(process.allowed_hosts.find(',', at), process.allowed_hosts.size());
      options.allowed_hosts.push_back(process.allowed_hosts.substr(at, end - at));
      at = end + 1;
    }
    options.distributors = config.distributor_addresses();
    for (const config::ProcessName& node : config.names()) {
      const config::ProcessConfig& one = *config.find(node);
      if (node.role == config::Role::Gateway) {
        options.others.push_back({node.to_string(), one.address, one.address});
        continue;
      }
      if (node.role == config::Role::FleetController) {
        options.others.push_back({node.to_string(), one.address, one.http});
      }
      if (one.http.empty()) continue;
      options.metrics_shown.push_back(one.http);
      options.metrics_nodes.push_back(node.to_string());
    }
    auto started = gateway::HttpGateway::start(options, metrics_);
    if (!started) return started.error().with_context(name.to_string() + ": address");
    http_ = std::move(*started);
    log::info("fjordd", "{} serves http://{}{}", name.to_string(), http_->address(),
              http_->tls_address().empty() ? std::string() : " and https://" + http_->tls_address());
    return Status::ok();
  }

  const std::string& address() const override { return http_->address(); }
  std::string http_address() const override { return http_->address(); }

 private:
  MetricRegistry metrics_;
  std::unique_ptr<gateway::HttpGateway> http_;
};

}  // namespace

Result<std::unique_ptr<Node>> start_gateway(const config::ClusterConfig& config, config::ProcessName name) {
  auto process = std::make_unique<GatewayProcess>();
  FJORD_TRY(process->start(config, name));
  return std::unique_ptr<Node>(std::move(process));
}

}  // namespace fjord
