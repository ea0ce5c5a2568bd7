// The HTTP server of a gateway: its ports, its threads, and the client of the cluster.

#include "fjord/gateway/http_gateway.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <pthread.h>
#include <thread>
#include <utility>

#include "fjord/common/fatal_signals.h"
#include "fjord/common/log.h"
#include "fjord/library/client.h"
#include "fjord/library/detail/client_core.h"
#include "http/router.h"
#include "http/stream_threads.h"
#include "http/transport/http_connection.h"
#include "http/transport/http_server.h"
#include "http/transport/tls.h"

namespace fjord::gateway {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int kVisitThreads = 16;
constexpr int kVisitsWaitingMax = 64;

/// Threads for visits. They are few: more visits at once do not make a cluster faster. Streams have threads of their
/// own, as they last as long as a slow reader likes.
class PoolOfVisits final : public VisitThreads {
 public:
  void begin_end() { is_ending_ = true; }
  /// Waits for all tasks.
  void end() {
    begin_end();
    pool_.join();
    streams_.end();
  }
  bool is_ending() const override { return is_ending_; }
  bool run(std::function<void()> task) override {
    return run_in(pool_, in_progress_, kVisitThreads + kVisitsWaitingMax, std::move(task));
  }
  bool run_stream(std::function<void()> task) override { return streams_.run(std::move(task)); }

 private:
  static bool run_in(asio::thread_pool& pool, std::atomic<int>& count, int most, std::function<void()> task) {
    if (count.fetch_add(1) >= most) {
      count.fetch_sub(1);
      return false;
    }
    asio::post(pool, [&count, task = std::move(task)]() mutable {
      task();
      task = {};  // Destroys what the task holds before the next task can be counted.
      count.fetch_sub(1);
    });
    return true;
  }

  std::atomic<int> in_progress_{0};
  std::atomic<bool> is_ending_{false};
  asio::thread_pool pool_{kVisitThreads};
  StreamThreads streams_;
};

std::string addresses_of(const std::vector<std::string>& distributors) {
  std::string addresses;
  for (const std::string& one : distributors) addresses += (addresses.empty() ? "" : ",") + one;
  return addresses;
}

/// A port: accepts connections and gives each a strand. Threading: the calls of this class come before the threads
/// start; then only those threads use it.
class Port {
 public:
  Port(asio::io_context& context, HttpServer& server, std::unique_ptr<TlsContext> tls)
      : context_(context), server_(server), tls_(std::move(tls)), acceptor_(context), accept_again_(context) {}

  /// Errors: InvalidArgument if the address is not host:port; IoError if it cannot be bound.
  Status listen(const std::string& wanted) {
    const std::size_t colon = wanted.rfind(':');
    if (colon == std::string::npos) {
      return {StatusCode::InvalidArgument, "the address to listen on is not host:port: " + wanted};
    }
    boost::system::error_code error;
    tcp::resolver resolver(context_);
    const auto found =
        resolver.resolve(wanted.substr(0, colon), wanted.substr(colon + 1), tcp::resolver::passive, error);
    if (error || found.empty())
      return {StatusCode::InvalidArgument, "cannot listen on " + wanted + ": " + error.message()};
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    const tcp::endpoint bound = error ? tcp::endpoint() : acceptor_.local_endpoint(error);
    if (error) return {StatusCode::IoError, "cannot listen on " + wanted + ": " + error.message()};
    address_ = wanted.substr(0, colon) + ":" + std::to_string(bound.port());
    accept();
    return Status::ok();
  }

  void close() {
    asio::post(acceptor_.get_executor(), [this] {
      boost::system::error_code ignored;
      acceptor_.close(ignored);
    });
  }

  const std::string& address() const { return address_; }

 private:
  void accept() {
    acceptor_.async_accept(asio::make_strand(context_),
                           [this](const boost::system::error_code& error, tcp::socket socket) {
                             if (error == asio::error::operation_aborted) return;
                             if (!error) {
                               begin(std::move(socket));
                               return accept();
                             }
                             log::warning("http", "cannot accept a connection on {}: {}", address_, error.message());
                             accept_again_.expires_after(std::chrono::milliseconds(100));
                             accept_again_.async_wait([this](const boost::system::error_code& cancelled) {
                               if (!cancelled) accept();
                             });
                           });
  }

  void begin(tcp::socket socket) {
    const auto connection = std::make_shared<HttpConnection>(std::move(socket), server_, tls_.get());
    server_.add(connection);
    connection->begin(server_.connections() > server_.options().connections_max);
  }

  asio::io_context& context_;
  HttpServer& server_;
  const std::unique_ptr<TlsContext> tls_;
  std::string address_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_again_;
};

}  // namespace

class HttpGateway::Impl {
 public:
  Impl(HttpGatewayOptions options, MetricRegistry& metrics)
      : client_(std::make_unique<Client>(connect(addresses_of(options.distributors)))),
        metrics_(metrics),
        router_(*client_, visits_, metrics, options.confirm_removals,
                {.addresses = addresses_of(options.distributors),
                 .metrics_shown = options.metrics_shown,
                 .metrics_nodes = options.metrics_nodes,
                 .others = options.others,
                 .node = options.node,
                 .console_edits = options.console_edits,
                 .of_client = &client_->core().connection().metrics()}),
        server_(std::move(options),
                {.handle = [this](const HttpRequest& request,
                                  HttpReply reply) { router_.handle(request, std::move(reply)); },
                 .group_of = Router::group_of},
                metrics) {}

  ~Impl() {
    for (const auto& port : ports_) port->close();
    visits_.begin_end();
    router_.own().begin_end();
    if (!threads_.empty()) server_.drain();
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
    server_.end();
    visits_.end();
    router_.own().end();
    client_.reset();
  }

  Status start() {
    const HttpGatewayOptions& options = server_.options();
    FJORD_TRY(listen(options.address, nullptr));
    if (!options.tls_address.empty()) {
      FJORD_TRY_ASSIGN(auto tls, TlsContext::load(options.certificate, options.key));
      metrics_
          .gauge("fjord_gateway_certificate_end_seconds",
                 "When the certificate for TLS ends, in seconds since 1970; not there without TLS.")
          .set(static_cast<double>(tls->certificate_end()));
      FJORD_TRY(listen(options.tls_address, std::move(tls)));
    }
    for (int i = 0; i < options.io_threads; ++i) {
      threads_.emplace_back([this] {
        const SignalStack signal_stack;
        context_.run();
      });
      ::pthread_setname_np(threads_.back().native_handle(), "http");
    }
    return Status::ok();
  }

  const std::string& address() const { return ports_.front()->address(); }
  std::string tls_address() const { return ports_.size() < 2 ? std::string() : ports_[1]->address(); }

 private:
  Status listen(const std::string& address, std::unique_ptr<TlsContext> tls) {
    ports_.push_back(std::make_unique<Port>(context_, server_, std::move(tls)));
    return ports_.back()->listen(address);
  }

  PoolOfVisits visits_;
  std::unique_ptr<Client> client_;
  MetricRegistry& metrics_;
  Router router_;
  HttpServer server_;  // Outlives the context, whose handlers hold the connections.
  asio::io_context context_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<std::thread> threads_;
};

HttpGateway::HttpGateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpGateway::~HttpGateway() = default;

const std::string& HttpGateway::address() const { return impl_->address(); }
std::string HttpGateway::tls_address() const { return impl_->tls_address(); }

Result<std::unique_ptr<HttpGateway>> HttpGateway::start(HttpGatewayOptions options, MetricRegistry& metrics) {
  auto impl = std::make_unique<Impl>(std::move(options), metrics);
  FJORD_TRY(impl->start());
  return std::unique_ptr<HttpGateway>(new HttpGateway(std::move(impl)));
}

}  // namespace fjord::gateway
