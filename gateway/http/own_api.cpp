#include "http/own_api.h"

#include <utility>

#include "fjord/library/detail/client_core.h"

namespace fjord::gateway {
namespace {

/// A call that is not answered by then ends as TIMEOUT, also so that the process can end soon.
constexpr Duration kCallTimeout = seconds(5);

}  // namespace

OwnApi::OwnApi(OwnApiOptions options, MetricRegistry& metrics)
    : client_(std::make_unique<Client>(connect(options.addresses, {.timeout = kCallTimeout}))),
      routes_([this](auto task) { return threads_.run(std::move(task)); }) {
  add_gateway_routes(routes_, *client_, metrics);
  add_cluster_routes(routes_, *client_);
  add_bucket_routes(routes_, *client_);
  add_setting_routes(routes_, *client_);
  add_schema_routes(routes_, *client_);
}

void OwnApi::end() {
  threads_.end();
  client_.reset();
}

}  // namespace fjord::gateway
