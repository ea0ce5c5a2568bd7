#include "fjord/monitoring/metric_http_server.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <ctime>

namespace fjord {
namespace {

namespace asio = boost::asio;

/// Sends `text` and returns everything received until the server closes the connection.
std::string send_and_read(const std::string& address, const std::string& text) {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  asio::ip::tcp::socket socket(context);
  const auto colon = address.rfind(':');
  asio::connect(socket, resolver.resolve(address.substr(0, colon), address.substr(colon + 1)));
  boost::system::error_code error;
  asio::write(socket, asio::buffer(text), error);
  std::string answer;
  asio::read(socket, asio::dynamic_buffer(answer), error);
  return answer;
}

std::string request(const std::string& method, const std::string& target) {
  return method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Server {
  explicit Server(MetricHttpServerOptions options = {}) {
    auto listening = MetricHttpServer::listen(options, registry, [this] { return health; });
    REQUIRE(listening);
    server = std::move(*listening);
  }
  std::string get(const std::string& target) { return send_and_read(server->address(), request("GET", target)); }

  MetricRegistry registry;
  Health health{true, "up", "storage.2", 17, 0, {}};
  std::unique_ptr<MetricHttpServer> server;
};

TEST_CASE("monitoring: metrics show in Prometheus' text format", "[monitoring]") {
  Server server;
  server.registry.counter("fjord_test_puts_total", "Puts.", {{"type", "music"}}).add(3);
  server.registry.gauge("fjord_test_depth", "Depth.").set(2.5);
  auto& histogram = server.registry.histogram("fjord_test_seconds", "Time.");
  histogram.observe(microseconds(10));
  histogram.observe(seconds(100));
  const std::string answer = server.get("/metrics");
  CHECK(contains(answer, "HTTP/1.1 200 OK"));
  CHECK(contains(answer, "# TYPE fjord_test_puts_total counter"));
  CHECK(contains(answer, "fjord_test_puts_total{type=\"music\"} 3"));
  CHECK(contains(answer, "fjord_test_depth 2.5"));
  CHECK(contains(answer, "fjord_test_seconds_count 2"));
  CHECK(contains(answer, "fjord_test_seconds_bucket{le=\"+Inf\"} 2"));
  CHECK(contains(answer, "fjord_test_seconds_bucket{le=\"1.6e-05\"} 1"));
}

TEST_CASE("monitoring: the process's resources are sampled when metrics are read", "[monitoring]") {
  Server server;
  CHECK(server.registry.gauge("fjord_process_threads", "").value() == 0);
  const std::string answer = server.get("/metrics");
  CHECK(contains(answer, "fjord_process_open_fds"));
  CHECK(server.registry.gauge("fjord_process_threads", "").value() >= 2);
  CHECK(server.registry.gauge("fjord_process_open_fds", "").value() >= 3);
  const double resident = server.registry.gauge("fjord_process_resident_bytes", "").value();
  const double own = server.registry.gauge("fjord_process_own_bytes", "").value();
  CHECK(own > 100'000);
  CHECK(resident > own + 100'000);  // The program itself is a mapped file.
  CHECK(server.registry.gauge("fjord_process_cpu_seconds", "").value() > 0);
  const double clock = server.registry.gauge("fjord_process_clock_seconds", "").value();
  CHECK(std::abs(clock - static_cast<double>(std::time(nullptr))) < 60);
}

TEST_CASE("monitoring: gauges are brought up to date before metrics are written", "[monitoring]") {
  MetricRegistry registry;
  MetricHttpServerOptions options;
  int pages = 0;
  options.before_metrics = [&] { registry.gauge("fjord_test_pages", "Pages.").set(++pages); };
  auto server = MetricHttpServer::listen(options, registry, [] { return Health{}; });
  REQUIRE(server);
  const std::string text = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  CHECK(contains(send_and_read((*server)->address(), text), "fjord_test_pages 1"));
  CHECK(contains(send_and_read((*server)->address(), text), "fjord_test_pages 2"));
}

TEST_CASE("monitoring: health is 200 or 503 with the reasons", "[monitoring]") {
  Server server;
  const std::string up = server.get("/health?verbose");
  CHECK(contains(up, "HTTP/1.1 200 OK"));
  CHECK(contains(up, R"({"status":"up","healthy":true,"node":"storage.2","state_version":17,"reasons":[]})"));
  server.health = {false, "stopping", "storage.2", 18, 0, {"asked to \"stop\""}};
  const std::string down = server.get("/health");
  CHECK(contains(down, "HTTP/1.1 503 Service Unavailable"));
  CHECK(contains(down, R"("reasons":["asked to \"stop\""])"));
}

TEST_CASE("monitoring: other paths, methods and malformed requests are refused", "[monitoring]") {
  Server server;
  CHECK(contains(server.get("/"), "/metrics"));
  CHECK(contains(server.get("/secret"), "HTTP/1.1 404"));
  CHECK(contains(send_and_read(server.server->address(), request("DELETE", "/metrics")), "HTTP/1.1 405"));
  CHECK(
      contains(send_and_read(server.server->address(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
               "HTTP/1.1 405"));
  CHECK(contains(send_and_read(server.server->address(), "\x82\x21\x01garbage\r\n\r\n"), "HTTP/1.1 400"));
  CHECK(contains(send_and_read(server.server->address(), request("GET", "/" + std::string(20'000, 'a'))),
                 "HTTP/1.1 400"));
  CHECK(contains(server.get("/health"), "HTTP/1.1 200"));
}

TEST_CASE("monitoring: HEAD gives the head of the answer to GET", "[monitoring]") {
  Server server;
  const std::string answer = send_and_read(server.server->address(), request("HEAD", "/"));
  CHECK(contains(answer, "HTTP/1.1 200 OK"));
  CHECK(contains(answer, "Content-Length: "));
  CHECK_FALSE(contains(answer, "<html>"));
}

TEST_CASE("monitoring: one connection carries several requests, and an idle one is closed", "[monitoring]") {
  MetricHttpServerOptions options;
  options.idle_timeout = milliseconds(100);
  Server server(options);
  const std::string keep = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string answer = send_and_read(server.server->address(), keep + keep);
  CHECK(contains(answer.substr(answer.find("HTTP/1.1 200") + 1), "HTTP/1.1 200"));
}

TEST_CASE("monitoring: an address that cannot be had is an error", "[monitoring]") {
  Server server;
  MetricRegistry registry;
  const auto listen = [&](const std::string& address) {
    MetricHttpServerOptions options;
    options.address = address;
    return MetricHttpServer::listen(options, registry, [] { return Health{}; }).status().code();
  };
  CHECK(listen(server.server->address()) == StatusCode::IoError);
  CHECK(listen("nonsense") == StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace fjord
