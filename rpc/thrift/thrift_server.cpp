#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "connection_table.h"
#include "fjord/common/log.h"
#include "fjord/rpc/thrift_transport.h"
#include "io_loop.h"
#include "server_connection.h"

namespace fjord::rpc {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// Time that a peer has to close its end after the goodbye, so that a peer that never does cannot delay the shutdown.
constexpr std::chrono::milliseconds kGoodbyeTime{200};
/// Connections are looked at several times in each of the times after which they end, and not less often than this.
constexpr Duration kCheckIntervalMax = milliseconds(250);
constexpr Duration kCheckIntervalMin = milliseconds(5);
constexpr int kChecksInTime = 4;

Duration check_interval(const ThriftServerOptions& options) {
  return std::clamp(std::min(options.frame_timeout, options.idle_timeout) / kChecksInTime, kCheckIntervalMin,
                    kCheckIntervalMax);
}

ConnectionTable::Limits limits_of(const ThriftServerOptions& options) {
  constexpr std::size_t kReservedMin = 8;
  constexpr std::size_t kReservedPart = 16;
  constexpr std::size_t kHalfFramePart = 4;
  return {.clients_max = options.connections_max,
          .reserved = std::max(kReservedMin, options.connections_max / kReservedPart),
          .bytes_max = std::max(options.received_bytes_max, 2 * options.max_frame_bytes),
          .half_frame_bytes_max = std::max(options.received_bytes_max / kHalfFramePart, options.max_frame_bytes)};
}

}  // namespace

class ThriftServer::Impl {
 public:
  Impl(const ThriftServerOptions& options, std::vector<Service*> services, MetricRegistry& registry)
      : options_(options),
        services_(std::move(services)),
        metrics_(registry),
        table_(limits_of(options)),
        check_interval_(check_interval(options)) {
    if (options_.shared_threads == nullptr) {
      options_.shared_threads = std::make_shared<IoThreads>("rpc-server", options.io_threads);
    }
    for (const auto& io : options_.shared_threads->loops()) loops_.push_back(std::make_unique<Loop>(*io));
    acceptor_ = std::make_unique<tcp::acceptor>(loops_[0]->io.context());
    accept_again_ = std::make_unique<asio::steady_timer>(loops_[0]->io.context());
  }

  /// The threads may go on, so no handler may be left that uses this object. The first loop comes first, because it
  /// gives new connections to the others.
  ~Impl() {
    for (const auto& loop : loops_) {
      loop->io.run_and_settle([this, &loop = *loop] {
        loop.draining = true;
        loop.next_check.reset();
        if (&loop == loops_[0].get()) {
          accept_again_.reset();
          acceptor_.reset();
        }
        for (const auto& [raw, connection] : loop.connections) connection->end();
        loop.connections.clear();
      });
    }
  }

  Status listen() {
    const std::size_t colon = options_.address.rfind(':');
    if (colon == std::string::npos) {
      return Status(StatusCode::InvalidArgument, "the address to listen on is not host:port: " + options_.address);
    }
    boost::system::error_code error;
    tcp::resolver resolver(loops_[0]->io.context());
    const auto found = resolver.resolve(options_.address.substr(0, colon), options_.address.substr(colon + 1),
                                        tcp::resolver::passive, error);
    if (error || found.empty()) {
      return Status(StatusCode::InvalidArgument, "cannot listen on " + options_.address + ": " + error.message());
    }
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_->open(endpoint.protocol(), error);
    if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(tcp::acceptor::max_listen_connections, error);
    const tcp::endpoint bound = error ? tcp::endpoint() : acceptor_->local_endpoint(error);
    if (error) return Status(StatusCode::IoError, "cannot listen on " + options_.address + ": " + error.message());
    address_ = options_.address.substr(0, colon) + ":" + std::to_string(bound.port());
    loops_[0]->io.inbox()->submit([this] { accept(); });
    for (const auto& loop : loops_) loop->io.inbox()->submit([this, raw = loop.get()] { check_later(*raw); });
    return Status::ok();
  }

  const Address& address() const { return address_; }

  void drain(Duration timeout) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::steady_clock::duration(timeout);
    {
      const std::lock_guard lock(drain_.mutex);
      drain_.loops_left = loops_.size();
    }
    for (const auto& loop : loops_) loop->io.inbox()->submit([this, raw = loop.get()] { drain(*raw); });
    std::unique_lock lock(drain_.mutex);
    drain_.changed.wait_until(lock, deadline, [this] { return drain_.loops_left == 0 && drain_.undrained == 0; });
    // Wait for the peers to close first. Closing a socket with unread bytes here may destroy a goodbye in flight.
    drain_.changed.wait_until(lock, std::min(deadline, std::chrono::steady_clock::now() + kGoodbyeTime),
                              [this] { return drain_.open == 0; });
  }

 private:
  struct Loop {
    explicit Loop(IoLoop& io_loop) : io(io_loop), next_check(std::make_unique<asio::steady_timer>(io_loop.context())) {}
    IoLoop& io;
    std::unique_ptr<asio::steady_timer> next_check;  ///< Used by the loop's thread only.
    /// Used by the loop's thread only.
    std::unordered_map<ServerConnection*, std::shared_ptr<ServerConnection>> connections;
    bool draining = false;  ///< Takes no connections any more. Used by the loop's thread only.
  };
  struct Drain {
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t loops_left = 0;  ///< Loops that have not begun to drain.
    std::size_t undrained = 0;   ///< Connections that have not called `on_drained`.
    std::size_t open = 0;        ///< Connections that are not closed.
  };

  void drain(Loop& loop) {
    loop.draining = true;
    boost::system::error_code ignored;
    if (&loop == loops_[0].get()) {
      accept_again_->cancel();
      acceptor_->close(ignored);
    }
    {
      const std::lock_guard lock(drain_.mutex);
      drain_.undrained += loop.connections.size();
      drain_.open += loop.connections.size();
    }
    for (const auto& connection : connections_of(loop)) connection->drain();
    const std::lock_guard lock(drain_.mutex);
    --drain_.loops_left;
    drain_.changed.notify_all();
  }

  /// Returns a copy, for calls that may close connections and so remove them from the map.
  static std::vector<std::shared_ptr<ServerConnection>> connections_of(const Loop& loop) {
    std::vector<std::shared_ptr<ServerConnection>> connections;
    connections.reserve(loop.connections.size());
    for (const auto& [raw, connection] : loop.connections) connections.push_back(connection);
    return connections;
  }

  void check_later(Loop& loop) {
    if (loop.draining) return;
    loop.next_check->expires_after(std::chrono::steady_clock::duration(check_interval_));
    loop.next_check->async_wait([this, &loop](const boost::system::error_code& cancelled) {
      if (cancelled || loop.draining) return;
      const auto now = ConnectionTable::Clock::now();
      for (const auto& connection : connections_of(loop)) connection->check(now);
      check_later(loop);
    });
  }

  void count_down(std::size_t Drain::*number) {
    const std::lock_guard lock(drain_.mutex);
    --(drain_.*number);
    drain_.changed.notify_all();
  }

  void on_closed(Loop& loop, ServerConnection* connection) {
    loop.connections.erase(connection);
    if (loop.draining) count_down(&Drain::open);
  }

  void accept() {
    if (loops_[0]->draining) return;
    Loop& loop = *loops_[next_loop_++ % loops_.size()];
    acceptor_->async_accept(
        loop.io.context(), [this, &loop](const boost::system::error_code& error, tcp::socket socket) {
          if (error == asio::error::operation_aborted || loops_[0]->draining) return;
          if (error) {
            // The usual reason is too many open files, so an immediate second attempt would fail too.
            log::warning("rpc", "cannot accept a connection on {}: {}", address_, error.message());
            accept_again_->expires_after(std::chrono::milliseconds(100));
            accept_again_->async_wait([this](const boost::system::error_code& cancelled) {
              if (!cancelled) accept();
            });
            return;
          }
          loop.io.inbox()->run_or_submit(
              [this, &loop, socket = std::move(socket)]() mutable { start(loop, std::move(socket)); });
          accept();
        });
  }

  void start(Loop& loop, tcp::socket socket) {
    if (loop.draining) return;
    auto connection = std::make_shared<ServerConnection>(
        std::move(socket), ServerConnection::Context{options_, services_, metrics_, loop.io.inbox(), table_,
                                                     [this] { count_down(&Drain::undrained); },
                                                     [this, &loop](ServerConnection* c) { on_closed(loop, c); }});
    if (connection->start()) loop.connections.emplace(connection.get(), connection);
  }

  ThriftServerOptions options_;  // Holds the threads, which the loops refer to.
  const std::vector<Service*> services_;
  RpcServerMetrics metrics_;
  ConnectionTable table_;
  const Duration check_interval_;
  Address address_;
  Drain drain_;  // Declared before the loops, whose handlers use it.
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::unique_ptr<asio::steady_timer> accept_again_;
  std::size_t next_loop_ = 0;  ///< Used by the first loop's thread only.
};

ThriftServer::ThriftServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ThriftServer::~ThriftServer() = default;

void ThriftServer::drain(Duration timeout) { impl_->drain(timeout); }

const Address& ThriftServer::address() const { return impl_->address(); }

Result<std::unique_ptr<ThriftServer>> ThriftServer::listen(const ThriftServerOptions& options,
                                                           std::vector<Service*> services, MetricRegistry& metrics) {
  auto impl = std::make_unique<Impl>(options, std::move(services), metrics);
  FJORD_TRY(impl->listen());
  return std::unique_ptr<ThriftServer>(new ThriftServer(std::move(impl)));
}

}  // namespace fjord::rpc
