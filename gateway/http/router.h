#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/metrics.h"
#include "http/document_api.h"
#include "http/message.h"
#include "http/own_api.h"

namespace fjord::gateway {

/// Finds the handler of a request. Threading: any thread. Lifetime: the collaborators outlive the requests in progress.
class Router {
 public:
  /// `confirms_removals`: see DocumentApi.
  Router(Client& client, VisitThreads& threads, MetricRegistry& metrics, bool confirms_removals, OwnApiOptions options)
      : documents_(client, threads, confirms_removals), own_(std::move(options), threads, metrics) {}

  void handle(const HttpRequest& request, HttpReply reply);
  OwnApi& own() { return own_; }

  /// Returns all paths with their methods.
  std::vector<RouteTable::Name> routes() const;
  /// Returns the group of paths, for metrics: "document", "cluster", "state", "other". Never a part of the path itself.
  static std::string_view group_of(std::string_view target);

 private:
  DocumentApi documents_;
  OwnApi own_;
};

}  // namespace fjord::gateway
