// The HTTP/1.1 server. The only file of the module that uses Boost.Beast, which takes long to compile.

#include "fjord/gateway/http_gateway.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <thread>
#include <utility>

#include "fjord/common/fatal_signals.h"
#include "fjord/common/log.h"
#include "fjord/common/random.h"
#include "fjord/library/client.h"
#include "http/router.h"

namespace fjord::gateway {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using SteadyClock = std::chrono::steady_clock;

constexpr int kVisitThreads = 16;
constexpr int kVisitsWaitingMax = 64;
/// The stop waits so long for answers in progress.
constexpr auto kDrainTime = std::chrono::seconds(5);
/// What still arrives after a refusal is read and dropped up to these bounds: a reset could overtake the answer.
constexpr std::size_t kLingerBytesMax = std::size_t{128} << 20;
constexpr auto kLingerTime = std::chrono::seconds(5);
constexpr std::size_t kLoggedBytesMax = 1000;

/// Returns the target as one word of printable ASCII, cut to a length for the log.
std::string escaped_target(std::string_view target) {
  std::string word;
  for (const char c : target.substr(0, kLoggedBytesMax)) {
    const bool is_plain = c > ' ' && c < '\x7f' && c != '"' && c != '\\';
    if (is_plain) {
      word += c;
    } else {
      word += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return target.size() > kLoggedBytesMax ? word + "..." : word;
}

/// Threads of visits: more than a few visits at once do not make a cluster faster.
class PoolOfVisits final : public VisitThreads {
 public:
  void begin_end() { is_ending_ = true; }
  /// Waits for all tasks.
  void end() {
    begin_end();
    pool_.join();
  }
  bool is_ending() const override { return is_ending_; }
  bool run(std::function<void()> task) override {
    if (in_progress_.fetch_add(1) >= kVisitThreads + kVisitsWaitingMax) {
      in_progress_.fetch_sub(1);
      return false;
    }
    asio::post(pool_, [this, task = std::move(task)] {
      task();
      in_progress_.fetch_sub(1);
    });
    return true;
  }

 private:
  std::atomic<int> in_progress_{0};
  std::atomic<bool> is_ending_{false};
  asio::thread_pool pool_{kVisitThreads};
};

/// What all connections share. Threading: any thread.
struct Shared {
  Shared(HttpGatewayOptions given, MetricRegistry& registry)
      : options(std::move(given)),
        metrics(registry),
        client(std::make_unique<Client>(connect_to(options))),
        router(*client, visits, registry),
        connections_open(registry.gauge("fjord_http_connections", "Open connections of HTTP clients.")),
        id_prefix(Random::from_system().next()) {}

  static Client connect_to(const HttpGatewayOptions& options) {
    std::string addresses;
    for (const std::string& one : options.distributors) addresses += (addresses.empty() ? "" : ",") + one;
    return connect(addresses);
  }

  /// Ends all requests: their answers are posted to the executors of their connections.
  void end() {
    visits.end();
    client.reset();
  }

  /// Takes a request in. Returns false if there are too many.
  bool admit() {
    if (requests.fetch_add(1) < options.requests_max) return true;
    requests.fetch_sub(1);
    return false;
  }
  /// Counts bytes of a body. Returns false if all bodies together would have too many.
  bool take_bytes(std::size_t bytes) {
    if (waiting_bytes.fetch_add(bytes) + bytes <= options.waiting_bytes_max) return true;
    waiting_bytes.fetch_sub(bytes);
    return false;
  }
  void begin_answer() {
    const std::lock_guard lock(mutex);
    ++answers;
  }
  void end_answer() {
    const std::lock_guard lock(mutex);
    if (--answers == 0) no_answers.notify_all();
  }
  /// Requests in progress get their answers, within a bound; connections end after them.
  void drain() {
    is_ending = true;
    visits.begin_end();
    std::unique_lock lock(mutex);
    no_answers.wait_for(lock, kDrainTime, [this] { return answers == 0; });
  }
  std::string new_request_id() { return fmt::format("{:016x}-{}", id_prefix, next_id.fetch_add(1)); }

  const HttpGatewayOptions options;
  MetricRegistry& metrics;
  std::unique_ptr<Client> client;
  PoolOfVisits visits;
  Router router;
  Gauge& connections_open;
  const std::uint64_t id_prefix;
  std::atomic<std::uint64_t> next_id{0};
  std::atomic<bool> is_ending{false};
  std::mutex mutex;
  std::condition_variable no_answers;
  int answers = 0;  ///< Requests whose header has arrived and whose answer is not written. Guarded by the mutex.
  std::atomic<std::size_t> requests{0};
  std::atomic<std::size_t> waiting_bytes{0};
  std::atomic<std::size_t> connections{0};
};

/// One connection, one request at a time. Pending operations and requests keep it alive.
/// Threading: the strand of its socket.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(tcp::socket socket, Shared& shared)
      : stream_(std::move(socket)), buffer_(shared.options.header_bytes_max + kReadBytes), shared_(shared) {
    shared_.connections_open.set(static_cast<double>(++shared_.connections));
  }
  ~HttpConnection() {
    release_bytes();
    end_answer();
    shared_.connections_open.set(static_cast<double>(--shared_.connections));
  }

  void begin() {
    const bool is_refused = shared_.connections > shared_.options.connections_max;
    asio::post(stream_.get_executor(), [self = shared_from_this(), is_refused] {
      beast::error_code ignored;
      self->stream_.socket().set_option(tcp::no_delay(true), ignored);
      if (!is_refused) return self->read();
      self->begin_request();
      self->refuse(503, "too many connections; try again later");
    });
  }

 private:
  static constexpr std::size_t kReadBytes = 64 << 10;

  void begin_request() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.options.header_bytes_max));
    parser_->body_limit(shared_.options.body_bytes_max);
    request_id_ = shared_.new_request_id();
    request_ = {};
    keep_alive_ = true;
  }

  void read() {
    begin_request();
    stream_.expires_after(shared_.options.idle_timeout);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const beast::error_code& error, std::size_t) { self->on_header(error); });
  }

  void on_header(const beast::error_code& error) {
    begun_ = SteadyClock::now();
    is_answering_ = true;
    shared_.begin_answer();
    if (error) return on_read_error(error);
    const auto& head = parser_->get();
    request_.method = std::string(head.method_string());
    request_.target = std::string(head.target());
    stream_.expires_after(shared_.options.request_timeout);
    if (!beast::iequals(head[http::field::expect], "100-continue")) return read_body();
    go_on_ = {http::status::continue_, head.version()};
    http::async_write(stream_, go_on_, [self = shared_from_this()](const beast::error_code& failed, std::size_t) {
      if (!failed) self->read_body();
    });
  }

  void read_body() {
    if (parser_->is_done()) return on_body({});
    http::async_read_some(stream_, buffer_, *parser_,
                          [self = shared_from_this()](const beast::error_code& error, std::size_t) {
                            if (error) return self->on_body(error);
                            if (self->hold_bytes(self->parser_->get().body().size())) return self->read_body();
                            self->keep_alive_ = false;
                            self->delay_refusal();
                          });
  }

  /// Counts the body, which has `size` bytes by now, in the limit of all bodies. Returns false if it does not fit.
  bool hold_bytes(std::size_t size) {
    if (size <= bytes_held_) return true;
    if (!shared_.take_bytes(size - bytes_held_)) return false;
    bytes_held_ = size;
    return true;
  }
  void release_bytes() {
    shared_.waiting_bytes.fetch_sub(bytes_held_);
    bytes_held_ = 0;
  }
  void end_answer() {
    if (is_answering_) shared_.end_answer();
    is_answering_ = false;
  }

  void on_read_error(const beast::error_code& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return refuse(431, fmt::format("the header has more than {} bytes", shared_.options.header_bytes_max));
    }
    if (error == http::error::body_limit) {
      return refuse(413, fmt::format("the body has more than {} bytes", shared_.options.body_bytes_max));
    }
    const bool is_malformed = error.category() == http::make_error_code(http::error::bad_method).category() &&
                              error != http::error::end_of_stream && error != http::error::partial_message;
    if (is_malformed) refuse(400, "malformed HTTP request: " + error.message());
  }

  /// Answers and closes the connection: later bytes cannot be trusted to be a request.
  void refuse(unsigned status, const std::string& message) {
    keep_alive_ = false;
    write(message_answer(request_, status, message));
  }

  void on_body(const beast::error_code& error) {
    if (error) return on_read_error(error);
    const auto& head = parser_->get();
    keep_alive_ = head.keep_alive();
    stream_.expires_never();
    // Two lengths, or a length beside chunks: a proxy may have read another request than this server.
    if (head.count(http::field::content_length) > 1 ||
        (head.count(http::field::content_length) > 0 && head.count(http::field::transfer_encoding) > 0)) {
      return refuse(400, "malformed HTTP request: more than one length of the body");
    }
    const std::string encoding(head[http::field::content_encoding]);
    request_.body = std::move(parser_->get().body());
    if (!encoding.empty() && !beast::iequals(encoding, "identity")) {
      if (!beast::iequals(encoding, "gzip")) return refuse(415, "Content-Encoding: expected gzip");
      auto text = gunzip(request_.body, shared_.options.body_bytes_max);
      if (!text) return write(error_answer(request_, text.error()));
      request_.body = std::move(*text);
    }
    run();
  }

  void run() {
    if (!hold_bytes(request_.body.size()) || !shared_.admit()) return delay_refusal();
    shared_.router.handle(request_, [self = shared_from_this()](HttpAnswer answer) {
      self->shared_.requests.fetch_sub(1);
      asio::post(self->stream_.get_executor(),
                 [self, answer = std::move(answer)]() mutable { self->write(std::move(answer)); });
    });
  }

  /// Some clients repeat a refused request at once: a short delay keeps both sides from a busy loop.
  void delay_refusal() {
    const auto timer = std::make_shared<asio::steady_timer>(stream_.get_executor(), std::chrono::milliseconds(20));
    timer->async_wait([self = shared_from_this(), timer](const boost::system::error_code&) {
      self->write(message_answer(self->request_, 429, "too many requests are in progress; try again later"));
    });
  }

  void write(HttpAnswer answer) {
    request_.body = {};
    release_bytes();
    if (shared_.is_ending) keep_alive_ = false;
    response_ = {static_cast<http::status>(answer.status), 11};
    response_.keep_alive(keep_alive_);
    response_.set("X-Request-Id", request_id_);
    if (!answer.allow.empty()) response_.set(http::field::allow, answer.allow);
    if (answer.retry_after_seconds > 0) {
      response_.set(http::field::retry_after, std::to_string(answer.retry_after_seconds));
    }
    if (answer.status != 204) response_.set(http::field::content_type, answer.content_type);
    response_.body() = std::move(answer.body);
    response_.prepare_payload();
    stream_.expires_after(shared_.options.request_timeout);
    serializer_.emplace(response_);
    auto then = [self = shared_from_this()](const beast::error_code& error, std::size_t) { self->on_written(error); };
    if (request_.method == "HEAD") return http::async_write_header(stream_, *serializer_, std::move(then));
    http::async_write(stream_, *serializer_, std::move(then));
  }

  void on_written(const beast::error_code& error) {
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - begun_);
    note(took);
    end_answer();
    if (!error && keep_alive_) return read();
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (error) return;
    parser_.reset();
    buffer_.clear();
    stream_.expires_after(kLingerTime);
    linger(kLingerBytesMax);
  }

  /// Reads and drops until the client ends the connection.
  void linger(std::size_t bytes_left) {
    stream_.async_read_some(buffer_.prepare(kReadBytes),
                            [self = shared_from_this(), bytes_left](const beast::error_code& error, std::size_t bytes) {
                              if (!error && bytes < bytes_left) self->linger(bytes_left - bytes);
                            });
  }

  void note(std::chrono::microseconds took) {
    const Labels labels{{"api", std::string(Router::group_of(request_.target))},
                        {"code", std::to_string(response_.result_int())}};
    shared_.metrics.counter("fjord_http_requests_total", "Requests of HTTP clients, by API and status.", labels).add();
    log::info("access", "{} {} {} {} {} us {} bytes", request_id_, request_.method, escaped_target(request_.target),
              response_.result_int(), took.count(), response_.body().size());
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  Shared& shared_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::empty_body> go_on_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  HttpRequest request_;
  std::string request_id_;
  SteadyClock::time_point begun_ = SteadyClock::now();
  bool keep_alive_ = true;
  bool is_answering_ = false;
  std::size_t bytes_held_ = 0;  ///< Part of Shared::waiting_bytes for this body.
};

}  // namespace

class HttpGateway::Impl {
 public:
  Impl(HttpGatewayOptions options, MetricRegistry& metrics)
      : shared_(std::move(options), metrics), acceptor_(context_), accept_again_(context_) {}

  ~Impl() {
    asio::post(context_, [this] {
      boost::system::error_code ignored;
      acceptor_.close(ignored);
    });
    if (!threads_.empty()) shared_.drain();
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
    shared_.end();
  }

  Status listen() {
    const std::string& wanted = shared_.options.address;
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
    for (int i = 0; i < shared_.options.io_threads; ++i) {
      threads_.emplace_back([this] {
        const SignalStack signal_stack;
        context_.run();
      });
      ::pthread_setname_np(threads_.back().native_handle(), "http");
    }
    return Status::ok();
  }

  const std::string& address() const { return address_; }

 private:
  void accept() {
    acceptor_.async_accept(asio::make_strand(context_),
                           [this](const boost::system::error_code& error, tcp::socket socket) {
                             if (error == asio::error::operation_aborted) return;
                             if (!error) {
                               std::make_shared<HttpConnection>(std::move(socket), shared_)->begin();
                               return accept();
                             }
                             log::warning("http", "cannot accept a connection on {}: {}", address_, error.message());
                             accept_again_.expires_after(std::chrono::milliseconds(100));
                             accept_again_.async_wait([this](const boost::system::error_code& cancelled) {
                               if (!cancelled) accept();
                             });
                           });
  }

  std::string address_;
  Shared shared_;  // Outlives the context, whose handlers hold the connections.
  asio::io_context context_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_again_;
  std::vector<std::thread> threads_;
};

HttpGateway::HttpGateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpGateway::~HttpGateway() = default;

const std::string& HttpGateway::address() const { return impl_->address(); }

Result<std::unique_ptr<HttpGateway>> HttpGateway::start(HttpGatewayOptions options, MetricRegistry& metrics) {
  auto impl = std::make_unique<Impl>(std::move(options), metrics);
  FJORD_TRY(impl->listen());
  return std::unique_ptr<HttpGateway>(new HttpGateway(std::move(impl)));
}

}  // namespace fjord::gateway
