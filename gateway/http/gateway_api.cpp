// Handlers of the paths about the gateway itself.

#include <memory>
#include <mutex>

#include "fjord/common/thread_annotations.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/monitoring/metric_text.h"
#include "fjord/monitoring/resource_sampler.h"
#include "fjord/version/version.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

/// `vespa visit` looks here for the document API before each visit.
constexpr const char* kRootPage =
    R"({"handlers":[{"id":"fjord.DocumentV1ApiHandler","class":"fjord.DocumentV1ApiHandler","bundle":"fjord",)"
    R"("serverBindings":["http://*/document/v1/","http://*/document/v1/*"]}],)"
    R"("links":{"description":"/openapi.yaml","console":"/console/","health":"/state/v1/health"}})";
constexpr const char* kUpPage = R"({"status":{"code":"up"}})";
constexpr Duration kHealthTimeout = seconds(2);

/// Asks a distributor for an answer, because a gateway without a distributor can serve nothing.
void answer_health(Client& client, const HttpRequest& request, const HttpReply& reply) {
  client.core().client().refresh_schemas(kHealthTimeout, [request, reply](const Status& status) {
    if (status) return reply({.status = 200, .body = kUpPage});
    reply(message_answer(request, 503, "no distributor answers: " + status.message()));
  });
}

/// The metrics of the gateway, of its process, and of its client for documents. Threading: any thread.
class MetricsPage {
 public:
  MetricsPage(MetricRegistry& metrics, const MetricRegistry* of_client)
      : metrics_(metrics), of_client_(of_client), sampler_(metrics) {}
  std::string text() {
    const std::lock_guard lock(mutex_);
    sampler_.sample();
    return metric_text(metrics_) + (of_client_ == nullptr ? std::string() : metric_text(*of_client_));
  }

 private:
  MetricRegistry& metrics_;
  const MetricRegistry* const of_client_;
  std::mutex mutex_;
  ResourceSampler sampler_ FJORD_GUARDED_BY(mutex_);
};

void add_page(RouteTable& routes, std::string_view path, const char* json) {
  routes.add("GET", path, {}, [json](const ApiCall&, const HttpReply& reply) { reply({.status = 200, .body = json}); });
}

}  // namespace

void add_gateway_routes(RouteTable& routes, Client& client, MetricRegistry& metrics, const MetricRegistry* of_client) {
  routes.add("GET", "/", {}, [](const ApiCall& call, const HttpReply& reply) {
    // Browsers name HTML among what they accept; clients of the document API name JSON, anything or nothing.
    if (call.request.header("accept").find("text/html") == std::string_view::npos) {
      return reply({.status = 200, .body = kRootPage, .headers = {{"Vary", "Accept"}}});
    }
    reply({.status = 302, .content_type = "text/plain", .headers = {{"Location", "/console/"}, {"Vary", "Accept"}}});
  });
  add_page(routes, "/ApplicationStatus", kUpPage);
  add_page(routes, "/status.html", kUpPage);
  routes.add("GET", "/state/v1/health", {},
             [&client](const ApiCall& call, const HttpReply& reply) { answer_health(client, call.request, reply); });
  routes.add("GET", "/state/v1/version", {}, [](const ApiCall&, const HttpReply& reply) {
    JsonText json;
    json.begin_object().member("version", version()).end_object();
    reply({.status = 200, .body = json.str()});
  });
  routes.add("GET", "/metrics", {},
             [page = std::make_shared<MetricsPage>(metrics, of_client)](const ApiCall&, const HttpReply& reply) {
               reply({.status = 200, .body = page->text(), .content_type = "text/plain; version=0.0.4; charset=utf-8"});
             });
  routes.add("GET", "/openapi.yaml", {}, [](const ApiCall&, const HttpReply& reply) {
    reply({.status = 200, .body = openapi_text(), .content_type = "application/yaml"});
  });
}

}  // namespace fjord::gateway
