#include "http/own_api.h"

#include <utility>

#include "fjord/library/detail/client_core.h"

namespace fjord::gateway {
namespace {

/// A call without an answer ends as TIMEOUT after this time. The limit also lets the process end soon.
constexpr Duration kCallTimeout = seconds(5);

std::vector<MetricsAddress> metrics_addresses(const OwnApiOptions& options) {
  std::vector<MetricsAddress> all;
  for (std::size_t i = 0; i < options.metrics_shown.size(); ++i) {
    const bool is_named = i < options.metrics_nodes.size();
    all.push_back({is_named ? options.metrics_nodes[i] : options.metrics_shown[i], options.metrics_shown[i]});
  }
  for (const OtherProcess& one : options.others) {
    if (one.name.starts_with("gateway.")) all.push_back({one.name, one.http});
  }
  return all;
}

}  // namespace

OwnApi::OwnApi(OwnApiOptions options, VisitThreads& streams, MetricRegistry& metrics)
    : client_(std::make_unique<Client>(connect(options.addresses, {.timeout = kCallTimeout}))),
      load_(metrics_addresses(options)),
      routes_([this](auto task) { return threads_.run(std::move(task)); },
              [&streams](auto task) { return streams.run_stream(std::move(task)); }) {
  add_gateway_routes(routes_, *client_, metrics, options.of_client);
  add_cluster_routes(routes_, *client_, load_, options.others);
  add_bucket_routes(routes_, *client_);
  add_setting_routes(routes_, *client_);
  add_schema_routes(routes_, *client_);
  add_load_routes(routes_, load_);
  add_console_routes(routes_, options);
  add_aggregate_routes(routes_, *client_);
  add_job_routes(routes_, *client_);
  add_change_routes(routes_, *client_);
  add_search_routes(routes_, *client_);
  add_node_routes(routes_, *client_);
  add_tuner_routes(routes_, *client_, options.metrics_shown);
  add_balancer_routes(routes_, *client_);
}

void OwnApi::end() {
  load_.end();
  threads_.end();
  client_.reset();
}

}  // namespace fjord::gateway
