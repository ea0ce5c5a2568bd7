#include "fjord/rpc/thrift_transport.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include "client_connection.h"
#include "io_loop.h"

namespace fjord::rpc {

class ThriftTransport::Impl {
 public:
  Impl(const ThriftTransportOptions& options, MetricRegistry& registry) : options_(options), metrics_(registry) {
    if (options_.shared_threads == nullptr) {
      options_.shared_threads = std::make_shared<IoThreads>("rpc-client", options.io_threads);
    }
    for (const auto& io : options_.shared_threads->loops()) loops_.push_back(std::make_unique<Loop>(*io));
  }

  /// The threads may go on, so no handler may be left that uses this object.
  ~Impl() {
    for (const auto& loop : loops_) {
      loop->io.run_and_settle([&connections = loop->connections] {
        for (const auto& [address, connection] : connections) connection->end();
        connections.clear();
      });
    }
  }

  void call(const Address& to, ClientCall call) {
    Loop& loop = *loops_[std::hash<Address>()(to) % loops_.size()];
    if (loop.io.inbox()->is_current()) {
      connection(loop, to).call(std::move(call));
      return;
    }
    loop.io.inbox()->submit(
        [this, &loop, to, call = std::move(call)]() mutable { connection(loop, to).call(std::move(call)); });
  }

 private:
  struct Loop {
    explicit Loop(IoLoop& io_loop) : io(io_loop) {}
    IoLoop& io;
    std::unordered_map<Address, std::shared_ptr<ClientConnection>> connections;  ///< Used by the loop's thread only.
  };

  ClientConnection& connection(Loop& loop, const Address& to) {
    auto& connection = loop.connections[to];
    if (!connection) connection = std::make_shared<ClientConnection>(loop.io.context(), to, options_, metrics_);
    return *connection;
  }

  ThriftTransportOptions options_;  // Holds the threads, which the loops refer to.
  RpcClientMetrics metrics_;
  std::vector<std::unique_ptr<Loop>> loops_;
};

ThriftTransport::ThriftTransport(const ThriftTransportOptions& options, MetricRegistry& metrics)
    : impl_(std::make_unique<Impl>(options, metrics)) {}

ThriftTransport::~ThriftTransport() = default;

void ThriftTransport::call(const Address& to, Request request, Duration timeout, Executor& executor,
                           ReplyFunction done) {
  constexpr Duration kForever = std::chrono::hours(24 * 365);
  const SteadyTime deadline = std::chrono::steady_clock::now() + std::clamp(timeout, Duration(0), kForever);
  impl_->call(to, ClientCall{std::move(request), deadline, &executor, std::move(done)});
}

}  // namespace fjord::rpc
