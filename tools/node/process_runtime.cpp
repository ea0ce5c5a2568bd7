#include "process_runtime.h"

#include <algorithm>

#include "fjord/common/log.h"
#include "fjord/common/open_files.h"
#include "fjord/monitoring/metric_http_server.h"
#include "fjord/rpc/thrift_transport.h"

namespace fjord {
namespace {

/// Longest time for which an ending node still works on accepted calls.
constexpr Duration kDrainMax = seconds(2);

std::unique_ptr<rpc::Transport> make_transport(const config::ClusterConfig& config,
                                               std::shared_ptr<rpc::IoThreads> threads, MetricRegistry& metrics) {
  rpc::ThriftTransportOptions options;
  options.shared_threads = std::move(threads);
  options.max_frame_bytes = static_cast<std::size_t>(config.frame_bytes_max);
  return std::make_unique<rpc::ThriftTransport>(options, metrics);
}

}  // namespace

ProcessRuntime::ProcessRuntime(const config::ClusterConfig& config)
    : bulk_(make_tbb_bulk_executor()),
      env_(make_posix_env()),
      random_(Random::from_system()),
      runtime_{clock_, scheduler_, *bulk_, *env_, random_, metrics_, tunables_},
      io_threads_(std::make_shared<rpc::IoThreads>("rpc", static_cast<int>(config.io_threads),
                                                   std::chrono::microseconds(config.poll_us))),
      transport_(std::make_unique<rpc::GatedTransport>(make_transport(config, io_threads_, metrics_))) {}

ProcessRuntime::~ProcessRuntime() = default;

Status ProcessRuntime::serve(const config::ClusterConfig& config, config::ProcessName name,
                             std::vector<rpc::Service*> services, std::function<Health()> health,
                             rpc::FrameService* other_calls) {
  const config::ProcessConfig& process = *config.find(name);
  rpc::ThriftServerOptions options;
  options.address = process.address;
  options.shared_threads = io_threads_;
  options.max_frame_bytes = static_cast<std::size_t>(config.frame_bytes_max);
  // The other files that a process needs have to be there whatever its peers do.
  constexpr std::uint64_t kFilesPart = 4;
  options.connections_max = std::min(static_cast<std::size_t>(config.connections_max),
                                     static_cast<std::size_t>(open_files_max() / kFilesPart));
  options.received_bytes_max = static_cast<std::size_t>(config.received_bytes_max);
  options.frame_timeout = milliseconds(config.frame_timeout_ms);
  options.idle_timeout = milliseconds(config.idle_timeout_ms);
  options.other_calls = other_calls;
  auto server = rpc::ThriftServer::listen(options, std::move(services), metrics_);
  if (!server) return server.error().with_context(name.to_string() + ": address");
  server_ = std::move(*server);
  address_ = server_->address();
  if (!process.http.empty()) {
    MetricHttpServerOptions page;
    page.address = process.http;
    page.before_metrics = [this, health] {
      show_settings();
      show_versions(health());
    };
    auto http = MetricHttpServer::listen(page, metrics_, std::move(health));
    if (!http) return http.error().with_context(name.to_string() + ": http");
    http_ = std::move(*http);
    http_address_ = http_->address();
  }
  log::info("fjordd", "{} listens on {}{}", name.to_string(), address_,
            http_address_.empty() ? std::string() : ", metrics on http://" + http_address_ + "/metrics");
  return Status::ok();
}

void ProcessRuntime::show_settings() {
  for (const Tunable* setting : tunables_.all()) {
    metrics_
        .gauge("fjord_setting_value", "Settings as this process uses them, from file or live configuration",
               {{"setting", setting->declaration().name}})
        .set(static_cast<double>(setting->value()));
  }
}

void ProcessRuntime::show_versions(const Health& health) {
  if (health.state_version == 0) return;
  metrics_
      .gauge("fjord_process_state_version",
             "Version of the cluster state that this node uses; not there before the first one, nor on a fleet "
             "controller or a gateway.")
      .set(static_cast<double>(health.state_version));
  metrics_
      .gauge("fjord_process_config_version",
             "Version of the live configuration that this node uses; not there before the first cluster state.")
      .set(static_cast<double>(health.config_version));
}

void ProcessRuntime::stop_serving() {
  if (server_ != nullptr) server_->drain(kDrainMax);
  http_.reset();
  server_.reset();
}

}  // namespace fjord
