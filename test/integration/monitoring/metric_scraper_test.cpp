#include "fjord/monitoring/metric_scraper.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <thread>

#include "fjord/monitoring/metric_http_server.h"

namespace fjord {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// A loopback server that answers its first connection with `answer`; if that is empty it never answers.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer)
      : answer_(std::move(answer)), acceptor_(context_, {asio::ip::address_v4::loopback(), 0}), socket_(context_) {
    if (answer_.empty()) return;  // The operating system accepts the connection by itself; there is no answer.
    acceptor_.async_accept(socket_, [this](const boost::system::error_code& error) {
      if (error) return;
      boost::system::error_code ignored;
      char request[1024];
      socket_.read_some(asio::buffer(request), ignored);
      asio::write(socket_, asio::buffer(answer_), ignored);
      socket_.shutdown(tcp::socket::shutdown_both, ignored);
      socket_.close(ignored);
    });
    thread_ = std::thread([this] { context_.run(); });
  }
  ~OneAnswer() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

 private:
  const std::string answer_;
  asio::io_context context_;
  tcp::acceptor acceptor_;
  tcp::socket socket_;
  std::thread thread_;
};

StatusCode code_of(const std::string& address, const ScrapeOptions& options = {}) {
  const auto results = scrape({address}, options);
  REQUIRE(results.size() == 1);
  REQUIRE_FALSE(results[0]);
  CHECK(results[0].error().message().find(address) != std::string::npos);
  return results[0].error().code();
}

std::unique_ptr<MetricHttpServer> serve(MetricRegistry& registry) {
  auto server = MetricHttpServer::listen({}, registry, [] { return Health{}; });
  REQUIRE(server);
  return std::move(*server);
}

}  // namespace

TEST_CASE("scraper: reads our own server, several at once, in the order asked", "[monitoring]") {
  MetricRegistry first;
  MetricRegistry second;
  first.counter("fjord_test_total", "").add(1);
  second.counter("fjord_test_total", "").add(2);
  const auto one = serve(first);
  const auto two = serve(second);
  const auto results = scrape({two->address(), "127.0.0.1", one->address()});
  REQUIRE(results.size() == 3);
  REQUIRE(results[0]);
  CHECK(results[0]->sum("fjord_test_total") == 2);
  CHECK(results[1].error().code() == StatusCode::InvalidArgument);
  REQUIRE(results[2]);
  CHECK(results[2]->sum("fjord_test_total") == 1);
  CHECK(results[2]->sum("fjord_process_threads").has_value());
  CHECK(scrape({}).empty());
}

TEST_CASE("scraper: nobody listens", "[monitoring]") {
  std::string address;
  {
    const OneAnswer gone("");
    address = gone.address();
  }
  CHECK(code_of(address) == StatusCode::NotReady);
}

TEST_CASE("scraper: who takes the connection and says nothing is given up", "[monitoring]") {
  const OneAnswer silent("");
  ScrapeOptions options;
  options.timeout = milliseconds(50);
  CHECK(code_of(silent.address(), options) == StatusCode::Timeout);
}

TEST_CASE("scraper: garbage, other pages, answers broken off and too long ones are errors", "[monitoring]") {
  CHECK(code_of(OneAnswer("SSH-2.0-something\r\n\r\n").address()) == StatusCode::Corruption);
  CHECK(code_of(OneAnswer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<html>...").address()) ==
        StatusCode::Corruption);
  CHECK(code_of(OneAnswer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").address()) == StatusCode::IoError);
  CHECK(code_of(OneAnswer("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nfjord_a 1\n").address()) ==
        StatusCode::IoError);
  ScrapeOptions options;
  options.page_bytes_max = 100;
  CHECK(code_of(OneAnswer("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + std::string(900, '\n')).address(),
                options) == StatusCode::TooLarge);
}

}  // namespace fjord
