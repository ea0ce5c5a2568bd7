#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/check.h"
#include "fjord/common/metrics.h"
#include "http/reply.h"
#include "http/transport/http_server.h"
#include "http/transport/session.h"

namespace fjord::gateway {

/// A connection without a socket. It runs at once what a real one would run later.
class FuzzHost final : public SessionHost, public std::enable_shared_from_this<FuzzHost> {
 public:
  void answer_changed(std::shared_ptr<Exchange> exchange) override { changed.push_back(std::move(exchange)); }
  void later(std::chrono::milliseconds /*after*/, std::function<void()> task) override { task(); }
  std::weak_ptr<ExchangeHost> weak_host() override { return weak_from_this(); }

  std::vector<std::shared_ptr<Exchange>> changed;
};

/// A server that answers at once: whole, in pieces, or not at all, by the last character of the target.
class FuzzServer {
 public:
  FuzzServer()
      : server(options(),
               {.handle = [this](const auto& request, auto reply) { answer(request, reply); },
                .group_of = [](std::string_view) { return std::string_view("other"); }},
               metrics) {}

  std::string seen;  ///< All requests that the handlers received.
  MetricRegistry metrics;
  HttpServer server;

 private:
  static HttpGatewayOptions options() {
    HttpGatewayOptions small;
    small.access_log = false;
    small.allowed_hosts = {"*"};
    small.body_bytes_max = 64 << 10;
    small.header_bytes_max = 4 << 10;
    small.waiting_bytes_max = 1 << 20;
    return small;
  }
  void answer(const HttpRequest& request, const HttpReply& reply) {
    seen +=
        request.method + " " + request.target + " " + std::to_string(request.body.size()) + " " + request.body + "\n";
    const char kind = request.target.back();
    if (kind == '0') return;
    if (kind != '1') return reply({.body = std::string(2000, 'x')});
    reply.begin({.body = "some"});
    reply.write("more", [](bool) {});
    reply.end();
  }
};

/// Gives a session bytes and takes what it sends until it is silent.
inline void talk(Session& session, FuzzHost& host, std::string_view bytes) {
  if (!session.is_over() && session.wants_input()) session.receive(bytes);
  while (true) {
    std::string sent;
    for (const auto& one : std::exchange(host.changed, {})) session.answer_changed(*one);
    session.produce(sent, 100'000);
    if (!sent.empty()) continue;
    session.flushed();
    if (host.changed.empty()) return;
  }
}

}  // namespace fjord::gateway
