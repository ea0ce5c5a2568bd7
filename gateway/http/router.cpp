#include "http/router.h"

#include <utility>

namespace fjord::gateway {

std::string_view Router::group_of(std::string_view target) {
  // The target of a malformed request is empty.
  for (const std::string_view path :
       {"/document/v1", "/aggregate/v1", "/changes/v1", "/cluster/v1", "/jobs/v1", "/schemas/v1", "/search/v1"}) {
    if (target.starts_with(path)) return path.substr(1, path.find('/', 1) - 1);
  }
  if (target.starts_with("/state/v1") || target.starts_with("/metrics")) return "state";
  return "other";
}

void Router::handle(const HttpRequest& request, HttpReply reply) {
  const auto path = split_path(request.raw_path());
  if (!path) return reply(error_answer(request, path.error()));
  if (const Status status = check_accept(request.header("accept")); !status)
    return reply(error_answer(request, status));
  if (path->size() >= 2 && (*path)[0] == "document" && (*path)[1] == "v1") {
    return documents_.handle(request, *path, std::move(reply));
  }
  own_.handle(request, *path, std::move(reply));
}

std::vector<RouteTable::Name> Router::routes() const {
  std::vector<RouteTable::Name> names = DocumentApi::names();
  for (RouteTable::Name& name : own_.names()) names.push_back(std::move(name));
  return names;
}

}  // namespace fjord::gateway
