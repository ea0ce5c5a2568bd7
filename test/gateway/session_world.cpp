#include "session_world.h"

namespace fjord::gateway {
namespace {

HttpGatewayOptions without_log(HttpGatewayOptions options) {
  options.access_log = false;
  options.allowed_hosts = {"*"};
  return options;
}

}  // namespace

SessionWorld::SessionWorld(HttpGatewayOptions options)
    : server(without_log(std::move(options)),
             {.handle =
                  [this](const HttpRequest& request, HttpReply reply) {
                    given.push_back({request, std::move(reply)});
                  },
              .group_of = [](std::string_view) { return std::string_view("other"); }},
             metrics) {}

std::string SessionWorld::exchange(std::string_view bytes) {
  session->receive(bytes);
  return pump();
}

std::string SessionWorld::pump() {
  std::string sent;
  while (true) {
    for (const auto& one : std::exchange(host->changed, {})) session->answer_changed(*one);
    const std::size_t before = sent.size();
    session->produce(sent, sent.size() + 100'000);
    if (sent.size() > before) continue;
    session->flushed();
    if (host->changed.empty()) return sent;
  }
}

std::uint64_t SessionWorld::refusals(const std::string& reason) {
  for (const auto& entry : metrics.entries()) {
    if (entry.name == "fjord_http_refusals_total" && entry.labels.at("reason") == reason) return entry.counter->value();
  }
  return 0;
}

}  // namespace fjord::gateway
