#include "fjord/rpc/thrift_transport.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include "client_connection.h"
#include "fjord/common/check.h"
#include "io_loop.h"

namespace fjord::rpc {

class ThriftTransport::Impl {
 public:
  Impl(const ThriftTransportOptions& options, MetricRegistry& registry) : options_(options), metrics_(registry) {
    FJORD_CHECK(options.io_threads > 0);
    for (int i = 0; i < options.io_threads; ++i)
      loops_.push_back(std::make_unique<Loop>("rpc-client-" + std::to_string(i)));
  }

  ~Impl() {
    for (const auto& loop : loops_) loop->io.stop();
  }

  void call(const Address& to, ClientCall call) {
    Loop& loop = *loops_[std::hash<Address>()(to) % loops_.size()];
    loop.io.inbox()->submit([this, &loop, to, call = std::move(call)]() mutable {
      auto& connection = loop.connections[to];
      if (!connection) connection = std::make_shared<ClientConnection>(loop.io.context(), to, options_, metrics_);
      connection->call(std::move(call));
    });
  }

 private:
  struct Loop {
    explicit Loop(const std::string& name) : io(name) {}
    IoLoop io;
    std::unordered_map<Address, std::shared_ptr<ClientConnection>> connections;  ///< Used by the loop's thread only.
  };

  ThriftTransportOptions options_;
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
