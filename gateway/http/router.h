#pragma once

#include <string>
#include <string_view>

#include "fjord/common/metrics.h"
#include "http/document_api.h"
#include "http/message.h"
#include "http/reply.h"

namespace fjord::gateway {

/// Finds who answers a request. Threading: any thread. Lifetime: the collaborators outlive the requests in progress.
class Router {
 public:
  Router(Client& client, VisitThreads& threads, MetricRegistry& metrics)
      : client_(client), metrics_(metrics), documents_(client, threads) {}

  void handle(const HttpRequest& request, HttpReply reply);

  /// Returns the group of paths, for metrics: "document", "state", "other". Never a part of the path itself.
  static std::string_view group_of(std::string_view target);

 private:
  /// Asks a distributor: a gateway without one serves nothing.
  void answer_health(const HttpRequest& request, HttpDone done);
  HttpAnswer answer_page(const HttpRequest& request) const;

  Client& client_;
  MetricRegistry& metrics_;
  DocumentApi documents_;
};

}  // namespace fjord::gateway
