#include "fjord/monitoring/metric_http_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <pthread.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <thread>
#include <utility>

#include "fjord/common/fatal_signals.h"
#include "fjord/common/log.h"
#include "fjord/monitoring/metric_text.h"
#include "fjord/monitoring/resource_sampler.h"

namespace fjord {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr const char* kIndexPage =
    "<!DOCTYPE html><html><head><title>Fjord</title></head><body><h1>Fjord</h1><ul>"
    "<li><a href=\"/metrics\">/metrics</a>: Prometheus text format</li>"
    "<li><a href=\"/health\">/health</a>: JSON</li></ul></body></html>\n";

std::string to_json(const Health& health) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  const auto text = [&](const std::string& value) {
    writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  writer.StartObject();
  writer.Key("status");
  text(health.status);
  writer.Key("healthy");
  writer.Bool(health.healthy);
  writer.Key("node");
  text(health.node);
  writer.Key("state_version");
  writer.Uint64(health.state_version);
  writer.Key("reasons");
  writer.StartArray();
  for (const std::string& reason : health.reasons) text(reason);
  writer.EndArray();
  writer.EndObject();
  return buffer.GetString() + std::string("\n");
}

/// Answers requests.
class Pages {
 public:
  Pages(MetricRegistry& registry, std::function<Health()> health, std::function<void()> before_metrics)
      : registry_(registry),
        sampler_(registry),
        health_(std::move(health)),
        before_metrics_(std::move(before_metrics)) {}

  http::response<http::string_body> answer(const http::request<http::empty_body>& request) {
    http::response<http::string_body> response;
    response.version(request.version());
    response.keep_alive(request.keep_alive());
    response.set(http::field::cache_control, "no-store");
    fill(request, response);
    response.prepare_payload();
    return response;
  }

 private:
  void fill(const http::request<http::empty_body>& request, http::response<http::string_body>& response) {
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      response.result(http::status::method_not_allowed);
      response.set(http::field::allow, "GET, HEAD");
      set_body(response, "text/plain", "only GET and HEAD\n");
      return;
    }
    const std::string target(request.target().substr(0, request.target().find('?')));
    response.result(http::status::ok);
    if (target == "/metrics") {
      sampler_.sample();
      if (before_metrics_) before_metrics_();
      set_body(response, "text/plain; version=0.0.4; charset=utf-8", metric_text(registry_));
    } else if (target == "/health") {
      const Health health = health_();
      if (!health.healthy) response.result(http::status::service_unavailable);
      set_body(response, "application/json", to_json(health));
    } else if (target == "/") {
      set_body(response, "text/html; charset=utf-8", kIndexPage);
    } else {
      response.result(http::status::not_found);
      set_body(response, "text/plain", "no such page\n");
    }
  }

  static void set_body(http::response<http::string_body>& response, const char* type, std::string body) {
    response.set(http::field::content_type, type);
    response.body() = std::move(body);
  }

  MetricRegistry& registry_;
  ResourceSampler sampler_;
  std::function<Health()> health_;
  std::function<void()> before_metrics_;
};

/// One connection. Pending asynchronous operations keep it alive.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Pages& pages, const MetricHttpServerOptions& options)
      : stream_(std::move(socket)), buffer_(options.request_bytes_max), pages_(pages), options_(options) {}

  void read() {
    // The body limit refuses requests with a body before it is read.
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(options_.request_bytes_max));
    parser_->body_limit(0);
    stream_.expires_after(options_.idle_timeout);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const beast::error_code& error, std::size_t) { self->on_read(error); });
  }

 private:
  void on_read(const beast::error_code& error) {
    if (error == http::error::end_of_stream || error == beast::error::timeout ||
        error == asio::error::operation_aborted) {
      return;
    }
    // An error of the socket ends the session.
    if (error && error.category() != http::make_error_code(http::error::bad_method).category()) return;
    if (error || !parser_->is_done()) {
      refuse();
      return;
    }
    response_ = pages_.answer(parser_->get());
    write(parser_->get().method() == http::verb::head);
  }

  /// Refuses a request that is malformed, too long or has a body, and closes the connection: later bytes cannot be
  /// trusted to be a request.
  void refuse() {
    const auto& request = parser_->get();
    const bool method_known = request.method() != http::verb::unknown;
    if (method_known && request.method() != http::verb::get && request.method() != http::verb::head) {
      response_ = pages_.answer(request);
    } else {
      response_ = {};
      response_.result(http::status::bad_request);
      response_.set(http::field::content_type, "text/plain");
      response_.body() =
          "malformed request, or one longer than " + std::to_string(options_.request_bytes_max) + " bytes\n";
      response_.prepare_payload();
    }
    response_.keep_alive(false);
    write(false);
  }

  void write(bool head_only) {
    stream_.expires_after(options_.idle_timeout);
    auto done = [self = shared_from_this()](const beast::error_code& error, std::size_t) {
      if (!error && self->response_.keep_alive()) {
        self->read();
      } else {
        beast::error_code ignored;
        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      }
    };
    serializer_.emplace(response_);
    if (head_only) {
      http::async_write_header(stream_, *serializer_, std::move(done));
    } else {
      http::async_write(stream_, *serializer_, std::move(done));
    }
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  Pages& pages_;
  const MetricHttpServerOptions& options_;
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
};

}  // namespace

class MetricHttpServer::Impl {
 public:
  Impl(const MetricHttpServerOptions& options, MetricRegistry& registry, std::function<Health()> health)
      : options_(options),
        pages_(registry, std::move(health), options.before_metrics),
        acceptor_(context_),
        accept_again_(context_) {}

  ~Impl() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Status listen() {
    const std::size_t colon = options_.address.rfind(':');
    if (colon == std::string::npos) {
      return Status(StatusCode::InvalidArgument, "the address to listen on is not host:port: " + options_.address);
    }
    boost::system::error_code error;
    tcp::resolver resolver(context_);
    const auto found = resolver.resolve(options_.address.substr(0, colon), options_.address.substr(colon + 1),
                                        tcp::resolver::passive, error);
    if (error || found.empty()) {
      return Status(StatusCode::InvalidArgument, "cannot listen on " + options_.address + ": " + error.message());
    }
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    const tcp::endpoint bound = error ? tcp::endpoint() : acceptor_.local_endpoint(error);
    if (error) return Status(StatusCode::IoError, "cannot listen on " + options_.address + ": " + error.message());
    address_ = options_.address.substr(0, colon) + ":" + std::to_string(bound.port());
    accept();
    thread_ = std::thread([this] {
      const SignalStack signal_stack;
      context_.run();
    });
    ::pthread_setname_np(thread_.native_handle(), "monitoring");
    return Status::ok();
  }

  const std::string& address() const { return address_; }

 private:
  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        std::make_shared<Session>(std::move(socket), pages_, options_)->read();
        accept();
        return;
      }
      log::warning("monitoring", "cannot accept a connection on {}: {}", address_, error.message());
      accept_again_.expires_after(std::chrono::milliseconds(100));
      accept_again_.async_wait([this](const boost::system::error_code& cancelled) {
        if (!cancelled) accept();
      });
    });
  }

  const MetricHttpServerOptions options_;
  Pages pages_;
  std::string address_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer accept_again_;
  std::thread thread_;
};

MetricHttpServer::MetricHttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MetricHttpServer::~MetricHttpServer() = default;

const std::string& MetricHttpServer::address() const { return impl_->address(); }

Result<std::unique_ptr<MetricHttpServer>> MetricHttpServer::listen(const MetricHttpServerOptions& options,
                                                                   MetricRegistry& registry,
                                                                   std::function<Health()> health) {
  auto impl = std::make_unique<Impl>(options, registry, std::move(health));
  FJORD_TRY(impl->listen());
  return std::unique_ptr<MetricHttpServer>(new MetricHttpServer(std::move(impl)));
}

}  // namespace fjord
