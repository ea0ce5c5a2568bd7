#include "http/router.h"

#include <fmt/format.h>
#include <utility>

#include "fjord/library/detail/client_core.h"
#include "fjord/monitoring/metric_text.h"

namespace fjord::gateway {
namespace {

/// `vespa visit` looks here for the document API before each visit.
constexpr const char* kRootPage =
    R"({"handlers":[{"id":"fjord.DocumentV1ApiHandler","class":"fjord.DocumentV1ApiHandler","bundle":"fjord",)"
    R"("serverBindings":["http://*/document/v1/","http://*/document/v1/*"]}]})";
constexpr const char* kUpPage = R"({"status":{"code":"up"}})";
constexpr Duration kHealthTimeout = seconds(2);

}  // namespace

std::string_view Router::group_of(std::string_view target) {
  if (target.starts_with("/document/v1")) return "document";
  if (target.starts_with("/state/v1") || target.starts_with("/metrics")) return "state";
  return "other";
}

void Router::handle(const HttpRequest& request, HttpReply reply) {
  const auto path = split_path(request.raw_path());
  if (!path) return reply(error_answer(request, path.error()));
  if (path->size() >= 2 && (*path)[0] == "document" && (*path)[1] == "v1") {
    return documents_.handle(request, *path, std::move(reply));
  }
  if (request.raw_path() == "/state/v1/health" && request.method == "GET") {
    return answer_health(request, reply);
  }
  reply(answer_page(request));
}

void Router::answer_health(const HttpRequest& request, HttpDone done) {
  HttpRequest asked{.method = request.method, .target = request.target, .body = {}};
  client_.core().client().refresh_schemas(
      kHealthTimeout, [asked = std::move(asked), done = std::move(done)](const Status& status) {
        if (status) return done({.status = 200, .body = kUpPage});
        done(message_answer(asked, 503, "no distributor answers: " + status.message()));
      });
}

HttpAnswer Router::answer_page(const HttpRequest& request) const {
  const std::string_view path = request.raw_path();
  HttpAnswer answer;
  if (path == "/") {
    answer.body = kRootPage;
  } else if (path == "/ApplicationStatus" || path == "/status.html" || path == "/state/v1/health") {
    answer.body = kUpPage;
  } else if (path == "/metrics") {
    answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    answer.body = metric_text(metrics_);
  } else {
    return message_answer(
        request, 404,
        fmt::format("Nothing at '{}'. Available paths are: /document/v1/, /state/v1/health, /metrics, "
                    "/ApplicationStatus, /status.html",
                    path));
  }
  if (request.method == "GET") return answer;
  answer = message_answer(request, 405,
                          fmt::format("'{}' not allowed at '{}'. Allowed methods are: GET", request.method, path));
  answer.allow = "GET";
  return answer;
}

}  // namespace fjord::gateway
