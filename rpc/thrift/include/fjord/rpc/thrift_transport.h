#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fjord/common/metrics.h"
#include "fjord/common/result.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc {

struct ThriftTransportOptions {
  int io_threads = 1;
  std::size_t max_frame_bytes = 64u << 20;  ///< A longer answer breaks its connection.
  Duration connect_timeout = seconds(1);
  /// After a failed connect the next one is tried this much later, twice as long after each failure up to the maximum.
  /// Calls in between are NotReady at once.
  Duration back_off_min = milliseconds(50);
  Duration back_off_max = seconds(1);
  /// A connection breaks when its peer's system has acknowledged, or taken, nothing of what was sent for so long. After
  /// a link was cut for a while TCP would repeat itself as long again; a new connection gets through at once.
  Duration unacknowledged_max = seconds(5);
};

/// Calls over framed TCP in Thrift's compact protocol, one connection a peer address with any number of calls on it.
///
/// A connection is made by the first call to its address and again by the next one after it broke. Bytes that a broken
/// connection had not handed to the kernel yet were never sent: those calls are NotReady, the others Timeout.
///
/// Threading: as Transport; messages are encoded and decoded on the transport's own I/O threads.
/// Lifetime: `metrics` outlives it. An executor outlives the transport or at least the calls that name it. Calls
/// without an answer when the transport is destroyed are dropped.
class ThriftTransport final : public Transport {
 public:
  ThriftTransport(const ThriftTransportOptions& options, MetricRegistry& metrics);
  ~ThriftTransport() override;

  void call(const Address& to, Request request, Duration timeout, Executor& executor, ReplyFunction done) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct ThriftServerOptions {
  Address address = "127.0.0.1:0";  ///< Port 0: the system chooses.
  int io_threads = 1;
  std::size_t max_frame_bytes = 64u << 20;
  /// A connection with this many unanswered requests, or with requests and unsent answers of this size, is not read
  /// from until it has fewer.
  std::size_t unanswered_max = 4096;
  std::size_t unanswered_bytes_max = 64u << 20;
};

/// Answers framed Thrift calls in the protocol in which they come, compact or binary.
///
/// What a connection sends that is no call, or too long, closes it; other connections do not notice. Answers leave in
/// the order in which they are given, whatever the order of the requests.
///
/// Threading: Service::handle runs on an I/O thread; responders may be called from anywhere, also after the server is
/// gone. Lifetime: services and `metrics` outlive it. The destructor closes all connections.
class ThriftServer {
 public:
  /// Errors: InvalidArgument for something that is not host:port; IoError if the address cannot be had.
  static Result<std::unique_ptr<ThriftServer>> listen(const ThriftServerOptions& options,
                                                      std::vector<Service*> services, MetricRegistry& metrics);
  ~ThriftServer();

  /// Ends in order: no new connections, nothing more is taken up from the others, what was taken up is answered. A
  /// ThriftTransport on the other side then knows of each of its other calls that it was not, which is NotReady instead
  /// of Timeout. Returns when that is done, or after `timeout`; then only the destructor is left to call.
  void drain(Duration timeout);

  /// host:port with the port that it listens on.
  const Address& address() const;

 private:
  class Impl;
  explicit ThriftServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::rpc
