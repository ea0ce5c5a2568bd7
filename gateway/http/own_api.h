#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/metrics.h"
#include "fjord/gateway/http_gateway.h"
#include "fjord/library/client.h"
#include "http/call_threads.h"
#include "http/document_api.h"
#include "http/load_sampler.h"
#include "http/route_table.h"

namespace fjord::gateway {

struct OwnApiOptions {
  std::string addresses;                        ///< The distributors, "host:port,host:port".
  std::vector<std::string> metrics_shown;       ///< Addresses of the nodes' metrics.
  std::vector<std::string> metrics_nodes = {};  ///< Names of these nodes, in their order.
  std::vector<OtherProcess> others = {};        ///< Fleet controllers and gateways.
  std::string node = {};                        ///< Name of this gateway, for the console.
  bool console_edits = true;                    ///< The console may change and remove documents.
  const MetricRegistry* of_client = nullptr;    ///< Metrics of the client for documents, shown beside the gateway's.
};

/// Fjord's own paths: `/cluster/v1` and the others of openapi.yaml. It has a client and threads of its own, so that
/// long calls delay no operation on documents.
///
/// Threading: any thread. Lifetime: end() before the receivers of answers end, and after all tasks of `streams`.
class OwnApi {
 public:
  /// Answers that last, such as streams, are given on threads of `streams`.
  OwnApi(OwnApiOptions options, VisitThreads& streams, MetricRegistry& metrics);

  void handle(const HttpRequest& request, const std::vector<std::string>& path, HttpReply reply) const {
    routes_.handle(request, path, std::move(reply));
  }
  std::vector<RouteTable::Name> names() const { return routes_.names(); }

  /// Lets calls that wait for a client end soon.
  void begin_end() { threads_.begin_end(); }
  /// Waits for calls in progress; later ones are refused.
  void end();

 private:
  std::unique_ptr<Client> client_;
  CallThreads threads_;
  LoadSampler load_;
  RouteTable routes_;
};

/// Each function adds the paths of one subject. Lifetime: the arguments outlive the table.
/// `others` are shown among the nodes, with what `sampler` knows of them.
void add_cluster_routes(RouteTable& routes, Client& client, LoadSampler& sampler, std::vector<OtherProcess> others);
void add_bucket_routes(RouteTable& routes, Client& client);
void add_setting_routes(RouteTable& routes, Client& client);
void add_schema_routes(RouteTable& routes, Client& client);
void add_gateway_routes(RouteTable& routes, Client& client, MetricRegistry& metrics, const MetricRegistry* of_client);
void add_aggregate_routes(RouteTable& routes, Client& client);
void add_job_routes(RouteTable& routes, Client& client);
void add_change_routes(RouteTable& routes, Client& client);
void add_search_routes(RouteTable& routes, Client& client);
void add_node_routes(RouteTable& routes, Client& client);
/// `metrics` are addresses of the nodes' metrics.
void add_tuner_routes(RouteTable& routes, Client& client, std::vector<std::string> metrics);
void add_balancer_routes(RouteTable& routes, Client& client);

void add_load_routes(RouteTable& routes, LoadSampler& sampler);
void add_console_routes(RouteTable& routes, const OwnApiOptions& options);

/// Returns the text of openapi.yaml.
std::string openapi_text();

}  // namespace fjord::gateway
