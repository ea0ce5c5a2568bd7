#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/metrics.h"
#include "http/reply.h"
#include "http/transport/http_server.h"
#include "http/transport/session.h"

namespace fjord::gateway {

/// A request that a handler received; the test answers it.
struct GivenRequest {
  HttpRequest request;
  HttpReply reply;
};

/// The connection of a session under test: keeps what changed until pump().
class TestHost final : public SessionHost, public std::enable_shared_from_this<TestHost> {
 public:
  void answer_changed(std::shared_ptr<Exchange> exchange) override { changed.push_back(std::move(exchange)); }
  void later(std::chrono::milliseconds /*after*/, std::function<void()> task) override {
    waiting.push_back(std::move(task));
  }
  std::weak_ptr<ExchangeHost> weak_host() override { return weak_from_this(); }

  std::vector<std::shared_ptr<Exchange>> changed;
  std::vector<std::function<void()>> waiting;
};

/// A server whose handler keeps the requests for the test, and one session of that server.
class SessionWorld {
 public:
  explicit SessionWorld(HttpGatewayOptions options = {});

  template <typename Kind>
  void open() {
    session = std::make_unique<Kind>(server, *host);
  }
  /// Passes bytes to the session, and returns what it sends.
  std::string exchange(std::string_view bytes);
  /// Returns what the session sends.
  std::string pump();
  /// Returns the value of fjord_http_refusals_total.
  std::uint64_t refusals(const std::string& reason);

  MetricRegistry metrics;
  std::vector<GivenRequest> given;
  HttpServer server;
  std::shared_ptr<TestHost> host = std::make_shared<TestHost>();
  std::unique_ptr<Session> session;
};

}  // namespace fjord::gateway
